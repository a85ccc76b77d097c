# python.py - looks at Python by its syntax tree. It sees what is written openly: imports and their aliases,
# names that are used, loops without an end, sizes that are plain numbers. What code makes of itself while it runs
# (exec, decoded texts, computed attributes) it cannot see, and says so (`dynamic`).

import ast

# By dotted name: the longest that fits counts. A module stands for everything in it; a name in a module is found
# wherever it is used, by whatever alias.
NAMES = {
    "network": """socket ssl http.client http.server urllib.request urllib.robotparser urllib3 requests httpx aiohttp
        ftplib smtplib imaplib poplib telnetlib nntplib xmlrpc socketserver paramiko websocket websockets boto3 grpc
        webbrowser pycurl asyncio.open_connection asyncio.start_server _socket wget""",
    "subprocess": """subprocess pty multiprocessing pexpect sh _posixsubprocess concurrent.futures.ProcessPoolExecutor
        os.system os.popen os.fork os.forkpty os.posix_spawn os.posix_spawnp os.execl os.execle os.execlp os.execlpe
        os.execv os.execve os.execvp os.execvpe os.spawnl os.spawnle os.spawnlp os.spawnlpe os.spawnv os.spawnve
        os.spawnvp os.spawnvpe posix asyncio.create_subprocess_exec asyncio.create_subprocess_shell
        get_ipython().system get_ipython().getoutput get_ipython().run_cell_magic""",
    "native": """ctypes _ctypes cffi _cffi_backend mmap numpy.ctypeslib numpy.f2py cython pyximport os.memfd_create""",
    "dynamic": """eval exec compile __import__ builtins importlib imp runpy code codeop pickle _pickle marshal dill
        cloudpickle shelve joblib zipimport pkgutil types.FunctionType types.CodeType globals locals vars
        __builtins__ breakpoint get_ipython().run_cell get_ipython().ex get_ipython().ev
        get_ipython().run_line_magic""",
    "internals": "sys.modules sys._getframe sys._current_frames sys.settrace sys.setprofile sys.meta_path "
                 "sys.path_hooks gc inspect faulthandler",
    "environment": "os.environ os.environb os.getenv os.getenvb os.putenv",
}
RULES = {name: rule for rule, names in NAMES.items() for name in names.split()}
HOLD_FUNCTIONS = {"os", "sys", "types", "asyncio", "concurrent.futures"}  # what is known in them is no module
INSIDE = {"__subclasses__", "__globals__", "__builtins__", "__code__", "__closure__", "__getattribute__",
          "__reduce__", "__reduce_ex__", "__mro__", "__bases__", "__base__", "__loader__", "__spec__", "gi_frame",
          "f_globals", "f_builtins", "f_back", "tb_frame", "__dict__"}
GETTERS = {"getattr", "setattr", "hasattr", "operator.attrgetter", "operator.methodcaller"}
IMPORTERS = {"__import__", "importlib.import_module", "importlib.__import__"}
SIZED = {"bytes", "bytearray", "list", "tuple", "set", "numpy.zeros", "numpy.ones", "numpy.empty", "numpy.full",
         "numpy.arange", "numpy.random.rand", "numpy.random.randn", "numpy.random.random", "numpy.random.normal",
         "numpy.eye", "numpy.identity"}
ENDS = {"exit", "quit", "sys.exit", "os._exit", "os.abort"}
ENDLESS = {"itertools.count", "itertools.cycle", "itertools.repeat"}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
SCHEMES = ("http://", "https://", "ftp://", "ftps://", "ws://", "wss://", "s3://", "ssh://")
HUGE = 1 << 27  # elements
BITS_MOST = 1 << 16  # of numbers that are worked out here


def number_of(node):
    """The value of an expression of plain numbers, None if it is something else or too large to say."""
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return node.value
    if not isinstance(node, ast.BinOp):
        return None
    left, right = number_of(node.left), number_of(node.right)
    if left is None or right is None:
        return None
    try:
        if isinstance(node.op, ast.Add):
            return left + right
        if isinstance(node.op, ast.Sub):
            return left - right
        if isinstance(node.op, ast.Mult):
            return left * right
        if isinstance(node.op, ast.LShift):
            return left << right if 0 <= right < BITS_MOST else None
        if isinstance(node.op, ast.Pow):
            small = isinstance(left, int) and 0 <= right and left.bit_length() * right < BITS_MOST
            return left ** right if small else None
    except (ArithmeticError, TypeError, ValueError):
        pass
    return None


def is_true(node):
    """A condition that no run of the program can make false."""
    if isinstance(node, ast.Constant):
        return bool(node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return isinstance(node.operand, ast.Constant) and not node.operand.value
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], (ast.Eq, ast.Is)):
        sides = (node.left, node.comparators[0])
        return all(isinstance(side, ast.Constant) for side in sides) and sides[0].value == sides[1].value
    return False


def text_of(node):
    """A text that is written there, in one piece or several."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        parts = [text_of(part) for part in node.values]
        return None if None in parts else "".join(parts)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = text_of(node.left), text_of(node.right)
        return None if left is None or right is None else left + right
    return None


def rule_of(name):
    """The rule and the name that it is about: that of the longest known name which this one begins with."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        known = ".".join(parts[:count])
        if known in RULES:
            return RULES[known], known
    return None, None


class Look:
    def __init__(self, tree, report):
        self.tree, self.report = tree, report
        self.aliases = {}

    def name_of(self, node):
        """The dotted name that an expression stands for: os.system, whatever os is called here."""
        parts = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "get_ipython":
            first = "get_ipython()"
        elif isinstance(node, ast.Call) and node.args and self.name_of(node.func) in IMPORTERS:
            first = text_of(node.args[0])
        elif isinstance(node, ast.Call) and len(node.args) > 1 and self.name_of(node.func) == "getattr":
            owner, attribute = self.name_of(node.args[0]), text_of(node.args[1])
            first = f"{owner}.{attribute}" if owner and attribute else None
        elif isinstance(node, ast.Name):
            first = self.aliases.get(node.id, node.id)
        else:
            first = None
        if first is None:
            return None
        return ".".join([first, *reversed(parts)]).removeprefix("builtins.").removeprefix("__builtins__.")

    def gather_aliases(self):
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for name in node.names:
                    self.aliases[name.asname or name.name.split(".")[0]] = (
                        name.name if name.asname else name.name.split(".")[0])
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                for name in node.names:
                    self.aliases[name.asname or name.name] = f"{node.module}.{name.name}"
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                name = self.name_of(node.value)
                if name and (rule_of(name)[0] or name in GETTERS or name in IMPORTERS):
                    self.aliases.setdefault(node.targets[0].id, name)

    def add(self, rule, node, subject, is_import=False):
        self.report.add(rule, node.lineno, node.col_offset + 1, subject, is_import)

    def add_import(self, node, name):
        rule, _ = rule_of(name)
        self.add(rule or "module", node, name, True)

    def look(self):
        self.gather_aliases()
        for node in ast.walk(self.tree):
            visit = getattr(self, "look_at_" + type(node).__name__, None)
            if visit:
                visit(node)

    def look_at_Import(self, node):
        for name in node.names:
            self.add_import(node, name.name)

    def look_at_ImportFrom(self, node):
        module = "." * node.level + (node.module or "")
        for name in node.names:
            whole = f"{module}.{name.name}"
            is_known = rule_of(whole)[1] == whole
            if is_known and module in HOLD_FUNCTIONS:
                self.add(RULES[whole], node, whole)
            self.add_import(node, whole if is_known and module not in HOLD_FUNCTIONS else module)

    def look_at_Name(self, node):
        if isinstance(node.ctx, ast.Load):
            self.look_at_use(node, self.name_of(node))

    def look_at_Attribute(self, node):
        if node.attr in INSIDE:
            self.add("internals", node, node.attr)
        self.look_at_use(node, self.name_of(node))

    def look_at_use(self, node, name):
        """Modules were told where they are imported; here it is about names in them."""
        rule, known = rule_of(name) if name else (None, None)
        if rule and known == name and (name in BARE or "." in name):
            self.add(rule, node, name)

    def look_at_Call(self, node):
        name = self.name_of(node.func)
        if name in IMPORTERS and node.args:
            module = text_of(node.args[0])
            if module is not None:
                self.add_import(node, module)
        elif name in GETTERS and len(node.args) > (0 if name.startswith("operator") else 1):
            attribute = text_of(node.args[0 if name.startswith("operator") else 1])
            if attribute is None:
                self.add("dynamic", node, name)
            elif attribute in INSIDE:
                self.add("internals", node, attribute)
            else:
                self.look_at_use(node, self.name_of(node))
        elif name in SIZED:
            self.look_at_size(node, name)
        for argument in node.args:
            text = text_of(argument)
            if text and text.lower().startswith(SCHEMES):
                self.add("network", argument, text.split("://")[0] + "://")

    def look_at_size(self, node, name):
        for argument in node.args[:2]:
            if isinstance(argument, ast.Call) and self.name_of(argument.func) == "range":
                sizes = argument.args[:2]
            else:
                sizes = argument.elts if isinstance(argument, ast.Tuple) else [argument]
            product = 1
            for size in sizes:
                number = number_of(size)
                product *= number if isinstance(number, int) else 1
            if product >= HUGE:
                self.add("allocation", node, name)

    def look_at_BinOp(self, node):
        for sequence, factor in ((node.left, node.right), (node.right, node.left)):
            is_sequence = isinstance(sequence, (ast.List, ast.Tuple)) or (
                isinstance(sequence, ast.Constant) and isinstance(sequence.value, (str, bytes)))
            number = number_of(factor) if isinstance(node.op, ast.Mult) and is_sequence else None
            if number and number * max(len(getattr(sequence, "elts", None) or getattr(sequence, "value", "x")), 1) >= HUGE:
                self.add("allocation", node, "*")
        if isinstance(node.op, ast.Pow):
            base, power = number_of(node.left), number_of(node.right)
            if isinstance(node.right, ast.BinOp) and isinstance(node.right.op, ast.Pow) and power is None:
                self.add("allocation", node, "**")
            elif isinstance(base, int) and isinstance(power, int) and base.bit_length() * power >= HUGE:
                self.add("allocation", node, "**")
        elif isinstance(node.op, ast.LShift):
            shift = number_of(node.right)
            if shift is not None and shift >= HUGE:
                self.add("allocation", node, "<<")

    def look_at_Constant(self, node):
        if isinstance(node.value, str) and node.value.startswith("/proc/") and node.value.endswith("/environ"):
            self.add("environment", node, "/proc/self/environ")

    def look_at_While(self, node):
        if is_true(node.test) and not self.ends(node.body):
            self.add("endless", node, "while")

    def look_at_For(self, node):
        call = node.iter
        if isinstance(call, ast.Call) and self.name_of(call.func) in ENDLESS and not self.ends(node.body):
            is_counted = self.name_of(call.func) == "itertools.repeat" and len(call.args) > 1
            if not is_counted:
                self.add("endless", node, self.name_of(call.func))

    def ends(self, body):
        """Whether anything in a loop may leave it."""
        waiting = [(node, True) for node in body]
        while waiting:
            node, is_ours = waiting.pop()
            if isinstance(node, (ast.Return, ast.Raise, ast.Yield, ast.YieldFrom, ast.Await)):
                return True
            if isinstance(node, ast.Break) and is_ours:
                return True
            if isinstance(node, ast.Call) and self.name_of(node.func) in ENDS:
                return True
            if isinstance(node, FUNCTIONS):
                continue
            is_loop = isinstance(node, (ast.For, ast.AsyncFor, ast.While))
            for child in ast.iter_child_nodes(node):
                after = is_loop and child in node.orelse
                waiting.append((child, is_ours and (not is_loop or after)))
        return False


BARE = {name for name in RULES if "." not in name and name in
        "eval exec compile __import__ globals locals vars __builtins__ breakpoint".split()}


def decode(text):
    """As the kernel does: a cell may name its encoding."""
    import io
    import tokenize
    encoding, _ = tokenize.detect_encoding(io.BytesIO(text).readline)
    return text.decode(encoding)


def check(text, report, is_cell):
    try:
        if is_cell and "_glovebox_magics" in sys.modules:
            text = sys.modules["_glovebox_magics"].to_python(decode(text))
        tree = ast.parse(text)
    except (RecursionError, MemoryError):
        report.add("unchecked", 0, 0, "it is nested too deeply")
        return
    except SyntaxError as error:
        report.add("syntax", error.lineno, error.offset, error.msg)
        return
    except ValueError as error:
        report.add("syntax", 0, 0, error)
        return
    Look(tree, report).look()


if __name__ == "__main__":
    findings = Report()
    check(read_text(), findings, sys.argv[2] == "cell")
    findings.end()
