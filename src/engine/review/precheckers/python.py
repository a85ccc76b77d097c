# python.py - checks Python by its syntax tree. It sees what is written openly: imports and their aliases, names
# that are used, loops without an end, sizes that are plain numbers. It cannot see code that is made while the
# program runs (exec, decoded texts, computed attributes), and reports it as `dynamic`.

import ast

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
HUGE = 1 << 27  # elements
BITS_MOST = 1 << 16  # of numbers that are computed here
DEPTH_MOST = 16  # magics that run magics
CHAIN_MOST = 16  # the most names that are followed from module to module


def number_of(node):
    """The value of an expression of plain numbers; None for anything else, or if it is too large."""
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
    """The text of a literal, or of several that are joined."""
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
    """The rule, and the longest known name that this name begins with."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        known = ".".join(parts[:count])
        if known in RULES:
            return RULES[known], known
    return None, None


class Piece:
    """A parsed text: the program, or a text within it that a magic runs."""

    def __init__(self, tree, before, is_whole):
        self.tree, self.before, self.is_whole = tree, before, is_whole  # lines of the program before its first


class Look:
    def __init__(self, report):
        self.report = report
        self.pieces, self.here = [], None
        self.aliases, self.stars, self.roots = {}, [], set(sys.stdlib_module_names)
        self.roots.update(CUSTOMARY.values())
        self.texts, self.stored = {}, {}
        self.seen, self.written = set(), set()  # names that were checked as calls

    def text_of(self, node):
        """Names that are assigned a text only once. Another cell may assign one too: this only adds findings."""
        if isinstance(node, ast.Name):
            return self.texts.get(node.id) if self.stored.get(node.id) == 1 else None
        return text_of(node)

    def raw_name_of(self, node):
        """The dotted name as written. An import in a branch that never runs does not hide the earlier meaning."""
        parts = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else None

    def name_of(self, node):
        """The full dotted name of an expression: os.system, under whatever alias os was imported."""
        parts = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        called = self.name_of(node.func) if isinstance(node, ast.Call) else None
        if called in SHELLS:
            first = "get_ipython()"
        elif called in IMPORTERS and node.args:
            first = text_of(node.args[0])
        elif called == "getattr" and len(node.args) > 1:
            owner, attribute = self.name_of(node.args[0]), text_of(node.args[1])
            first = f"{owner}.{attribute}" if owner and attribute else None
        elif isinstance(node, ast.NamedExpr):
            first = self.name_of(node.value)
        elif isinstance(node, ast.Name):
            first = self.aliases.get(node.id) or self.free_name_of(node.id)
        else:
            first = None
        if first is None:
            return None
        return ".".join([first, *reversed(parts)]).removeprefix("builtins.").removeprefix("__builtins__.")

    def free_name_of(self, name):
        """The meaning of a name that is not imported here: from a star import, or from an earlier cell."""
        starred = next((f"{module}.{name}" for module in self.stars if f"{module}.{name}" in RULES), None)
        return starred or (CUSTOMARY.get(name, name) if name not in self.stored else name)

    def read(self, text, before, is_cell, depth=0):
        """Adds a text, and all that it runs by magics."""
        if depth > DEPTH_MOST:
            self.report.add("unchecked", before + 1, 0, "it is nested too deeply")
            return
        tree = parsed(text, is_cell)
        piece = Piece(tree, before, depth == 0)
        self.pieces.append(piece)
        self.gather_names(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                look_at_magic(self, node, before, depth)

    def gather_names(self, tree):
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for name in node.names:
                    self.roots.add(name.name.split(".")[0])
                    self.aliases[name.asname or name.name.split(".")[0]] = (
                        name.name if name.asname else name.name.split(".")[0])
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                self.roots.add(node.module.split(".")[0])
                for name in node.names:
                    if name.name == "*":
                        self.stars.append(node.module)
                    else:
                        self.aliases[name.asname or name.name] = f"{node.module}.{name.name}"
        for node in ast.walk(tree):
            if isinstance(node, (ast.Name, ast.arg)) and not isinstance(getattr(node, "ctx", None), ast.Load):
                name = node.id if isinstance(node, ast.Name) else node.arg
                self.stored[name] = self.stored.get(name, 0) + 1
            if isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for target in targets:
                    self.gather_assigned(target, node.value)

    def gather_assigned(self, target, value):
        if isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, (ast.Tuple, ast.List)):
            for inner, inner_value in zip(target.elts, value.elts):
                if isinstance(inner, ast.Name):
                    self.gather_assigned(inner, inner_value)
        elif isinstance(target, ast.Name):
            self.texts[target.id] = text_of(value)
            name = self.name_of(value)
            if name and (rule_of(name)[0] or name in GETTERS or name in IMPORTERS or name.split(".")[0] in self.aliases
                         or name.startswith("get_ipython()")):
                self.aliases.setdefault(target.id, name)

    def add(self, rule, node, subject, is_import=False):
        column = node.col_offset + 1 if self.here is None or self.here.is_whole else 0
        self.report.add(rule, (self.here.before if self.here else 0) + node.lineno, column, subject, is_import)

    def add_import(self, node, name):
        rule, _ = rule_of(name)
        self.add(rule or "module", node, name, True)

    def look(self):
        for self.here in self.pieces:
            for node in ast.walk(self.here.tree):
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
            held = name.name.lstrip("_")
            if held in REACHED and not is_known and module.split(".")[0] != held:
                self.add(RULES[held], node, whole)
            elif held in PLAIN_REACHED:
                self.add_import(node, held)

    def look_at_Name(self, node):
        if isinstance(node.ctx, ast.Load):
            self.look_at_use(node, self.name_of(node))
            if node.id in BARE:
                self.add(RULES[node.id], node, node.id)

    def look_at_Assign(self, node):
        """os.environ["MPLBACKEND"] = "Agg" reads nothing."""
        self.written.update(id(target.value) for target in node.targets if isinstance(target, ast.Subscript))

    def look_at_Attribute(self, node):
        raw = self.raw_name_of(node)
        if raw == "os.environ" and id(node) in self.written:
            return
        if raw in RULES:
            self.add(RULES[raw], node, raw)
        if node.attr in INSIDE:
            self.add("internals", node, node.attr)
        elif id(node) not in self.seen and not self.look_at_use(node, self.name_of(node)):
            self.look_at_attribute(node, node.attr, self.name_of(node))

    def look_at_MatchClass(self, node):
        for attribute in node.kwd_attrs:
            self.look_at_attribute(node, attribute, None)

    def look_at_attribute(self, node, attribute, name):
        """An attribute of an object that may be anything."""
        if attribute in INSIDE:
            self.add("internals", node, attribute)
        elif attribute in BY_ATTRIBUTE and name not in HARMLESS:
            self.add(BY_ATTRIBUTE[attribute], node, name or attribute)

    def look_at_use(self, node, name):
        """Reports names within modules (modules are reported at their import). Returns whether it found one."""
        rule, known = rule_of(name) if name else (None, None)
        if rule and known == name and (name in BARE or "." in name):
            self.add(rule, node, name)
            return True
        if name in GETTERS and name != "hasattr" and id(node) not in self.seen:
            self.add("dynamic", node, name)  # passed on: which of its attributes are used is unknown
            return True
        parts = name.split(".") if name else []
        if len(parts) == 2 and parts[0] in REACHED and parts[0] not in self.aliases and parts[0] not in self.stored:
            self.add(RULES[parts[0]], node, name)
            return True
        if not 1 < len(parts) <= CHAIN_MOST or parts[0] not in self.roots:
            return False
        if parts[-1].lstrip("_") in PLAIN_REACHED:
            self.add_import(node, parts[-1].lstrip("_"))
        for first in range(1, len(parts)):  # a module within another module: shutil.os.system
            held = ".".join([parts[first].lstrip("_"), *parts[first + 1 :]])
            if held in RULES and (held in REACHED or "." in held):
                self.add(RULES[held], node, name)
                return True
        return False

    def look_at_Call(self, node):
        name = self.name_of(node.func)
        if name in IMPORTERS and node.args:
            module = text_of(node.args[0])
            if module is not None:
                self.add_import(node, module)
        elif name in GETTERS and node.args:
            self.look_at_getter(node, name)
        elif name in SIZED:
            self.look_at_size(node, name)
        elif isinstance(node.func, ast.Attribute) and node.func.attr in EXPRESSIONS and name not in RULES and node.args:
            self.look_at_expression(node)
        for argument in [*node.args, *(keyword.value for keyword in node.keywords)]:
            text = self.text_of(argument)
            if text and text.lower().startswith(SCHEMES):
                self.add("network", argument, text.split("://")[0] + "://")

    def look_at_getter(self, node, name):
        self.seen.add(id(node.func))
        if not name.startswith("operator"):
            if len(node.args) > 1:
                attribute = text_of(node.args[1])
                if attribute is None:
                    self.add("dynamic", node, name)
                elif not self.look_at_use(node, self.name_of(node)):
                    self.look_at_attribute(node, attribute, self.name_of(node))
            return
        for argument in node.args if name.endswith("attrgetter") else node.args[:1]:
            text = text_of(argument)
            if text is None:
                self.add("dynamic", node, name)
            for attribute in (text or "").split("."):
                self.look_at_attribute(node, attribute, None)

    def look_at_expression(self, node):
        """DataFrame.query("a > @b") evaluates nearly Python."""
        text = text_of(node.args[0])
        if text is None:
            self.add("dynamic", node, node.func.attr)
            return
        try:
            inner = ast.parse(text.replace("@", "").replace("`", "").strip(), mode="eval")
        except (SyntaxError, ValueError):
            return  # a query in another language
        for part in ast.walk(inner):
            if isinstance(part, ast.Attribute):
                self.look_at_attribute(node, part.attr, self.name_of(part))
            elif isinstance(part, ast.Name) and part.id in BARE:
                self.add(RULES[part.id], node, part.id)

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
        if isinstance(node.value, str) and node.value.startswith("/proc/"):
            if node.value.endswith("/environ"):
                self.add("environment", node, "/proc/self/environ")
            elif node.value.endswith("/mem"):
                self.add("native", node, "/proc/self/mem")

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


def decode(text):
    """Decodes as the kernel does: a cell may name its encoding."""
    import io
    import tokenize
    encoding, _ = tokenize.detect_encoding(io.BytesIO(text).readline)
    return text.decode(encoding)


def parsed(text, is_cell):
    magics = sys.modules.get("_glovebox_magics")
    if not is_cell or magics is None:
        return ast.parse(text)
    try:
        return ast.parse(magics.to_python(text))
    except magics.UsageError as error:
        raise SyntaxError(str(error)) from None


def check(text, report, is_cell):
    look = Look(report)
    try:
        look.read(decode(text) if is_cell else text, 0, is_cell)
    except SyntaxError as error:
        report.add("syntax", error.lineno, error.offset, error.msg)
        return
    except ValueError as error:
        report.add("syntax", 0, 0, error)
        return
    look.look()


if __name__ == "__main__":
    findings = Report()
    try:
        check(read_text(), findings, sys.argv[2] == "cell")
    except (RecursionError, MemoryError):
        findings.add("unchecked", 0, 0, "it is nested too deeply")
    findings.end()
