"""Lines that are not Python: %magic, %%magic, !command, name = !command and object?.

They become calls of get_ipython(), line by line, so that every line keeps its number. `%`, `!` and `?` count
only where a statement begins (or ends), not within brackets and strings."""

import os
import re
import sys

import _glovebox_display

CANDIDATE = re.compile(r"^[ \t]*[%!?]|=[ \t]*[%!]|\?[ \t]*(#.*)?$", re.MULTILINE)
ASSIGNED = re.compile(r"^(\s*)([\w.,\[\]'\" *]+?)\s*=\s*([%!])(?!=)(.*)$", re.DOTALL)
ASKED = re.compile(r"^(\s*)(\??\??)\s*([A-Za-z_][\w.\[\]'\"]*)\s*(\?{0,2})\s*$")
LITERAL = re.compile(r"""#.*|'''|\"\"\"|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|[()\[\]{}]""")
EXPANSION = re.compile(r"\$\$|\$([A-Za-z_]\w*)|\{([^{}\n]+)\}")


set_figure_formats = None  # _glovebox_figures puts its own here


class UsageError(Exception):
    """Wrong use of a magic."""


UsageError.__module__ = "IPython.core.error"


class Lines(list):
    """What a command printed: a list of lines; .n and .s are the whole text."""

    @property
    def l(self):  # noqa: E743
        return self

    @property
    def n(self):
        return "\n".join(self)

    nlstr = n

    @property
    def s(self):
        return " ".join(self)

    spstr = s


# --- from cell to Python ---------------------------------------------------------------------------

def to_python(text):
    """Fast for code without such lines."""
    head = text.lstrip()
    if head.startswith("%%"):
        line, _, body = head[2:].partition("\n")
        name, _, rest = line.partition(" ")
        return f"get_ipython().run_cell_magic({name.strip()!r}, {rest.strip()!r}, {body!r})\n"
    return text if CANDIDATE.search(text) is None else "\n".join(translated(text.split("\n")))


def translated(lines):
    out, depth, quotes, continued = [], 0, None, False
    at = 0
    while at < len(lines):
        line = lines[at]
        if depth == 0 and quotes is None and not continued:
            whole, joined = line, 1
            while whole.endswith("\\") and at + joined < len(lines) and is_command(line):
                whole = whole[:-1] + lines[at + joined].lstrip()
                joined += 1
            call = of_line(whole)
            if call is not None:
                out.append(call)
                out.extend([""] * (joined - 1))
                at += joined
                continue
        out.append(line)
        depth, quotes = scanned(line, depth, quotes)
        continued = quotes is None and line.endswith("\\")
        at += 1
    return out


def is_command(line):
    return of_line(line.rstrip("\\")) is not None


def scanned(line, depth, quotes):
    """How many brackets, or which quotes, are open at the end of the line."""
    at = 0
    while at < len(line):
        if quotes is not None:
            end = line.find(quotes, at)
            if end < 0:
                return depth, quotes
            at, quotes = end + 3, None
            continue
        found = LITERAL.search(line, at)
        if found is None:
            break
        at = found.end()
        if found[0] in ("'''", '"""'):
            quotes = found[0]
        elif found[0] in "([{":
            depth += 1
        elif found[0] in ")]}":
            depth = max(depth - 1, 0)
    return depth, quotes


def of_line(line):
    """The call that replaces such a line; None if it is Python."""
    bare = line.lstrip()
    indent = line[: len(line) - len(bare)]
    if bare.startswith("%%"):
        raise UsageError("A cell magic (%%) has to be the first line of its cell.")
    if bare.startswith("%") and bare[1:2].isalpha():
        return f"{indent}{magic_call(bare[1:])}"
    if bare.startswith("!!"):
        return f"{indent}get_ipython().getoutput({bare[2:]!r})"
    if bare.startswith("!"):
        return f"{indent}get_ipython().system({bare[1:]!r})"
    assigned = ASSIGNED.match(line)
    if assigned is not None:
        indent, names, sign, rest = assigned.groups()
        call = f"get_ipython().getoutput({rest!r})" if sign == "!" else magic_call(rest)
        return f"{indent}{names} = {call}"
    asked = ASKED.match(line)
    if asked is not None and (asked[2] or asked[4]):
        return f"{asked[1]}get_ipython().help({asked[3]!r})"
    return None


def magic_call(text):
    name, _, rest = text.strip().partition(" ")
    return f"get_ipython().run_line_magic({name!r}, {rest.strip()!r})"


# --- the shell -----------------------------------------------------------------------------------

class Events:
    def register(self, name, function):
        """Ignored: libraries register functions that draw after each cell, which glovebox does itself."""

    unregister = trigger = register


class Setting(dict):
    """Like Config of traitlets, a dict whose items are also attributes: duckdb converts it to a dict. Any setting can be read
    and set; unknown ones have no effect."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self.setdefault(name, Setting())

    def __setattr__(self, name, value):
        self[name] = value


class Shell:
    """The object that get_ipython() returns: the parts of it that programs use."""

    def __init__(self, context):
        self.context = context
        self.events, self.config, self.kernel, self.colors = Events(), Setting(), None, "NoColor"
        self.history = [""]

    @property
    def user_ns(self):
        return self.context.main.__dict__

    user_global_ns = user_ns

    @property
    def execution_count(self):
        return self.context.count

    def run_line_magic(self, name, line, _stack_depth=1):
        return find(LINE_MAGICS, name, "Line ", "%")(self, expanded(line, self.user_ns))

    def run_cell_magic(self, name, line, cell):
        return find(CELL_MAGICS, name, "Cell ", "%%")(self, expanded(line, self.user_ns), cell)

    def magic(self, text):
        name, _, line = text.lstrip("%").partition(" ")
        return self.run_line_magic(name, line.strip())

    def run_cell(self, text, *_arguments, **_options):
        return self.context.execute_text(text, "<string>")

    def system(self, command):
        status = run_shell(expanded(command, self.user_ns))
        self.user_ns["_exit_code"] = status

    def getoutput(self, command, split=True, depth=0):
        text = output_of(expanded(command, self.user_ns))
        return Lines(text.splitlines()) if split else text

    def ev(self, expression):
        return eval(expression, self.user_ns)

    def ex(self, statement):
        exec(statement, self.user_ns)

    def push(self, names, interactive=True):
        self.user_ns.update(names)

    def help(self, name):
        try:
            value = eval(name, self.user_ns)
        except Exception:
            print(f"Object `{name}` not found.")
            return
        _glovebox_display.display({"text/plain": help_of(name, value)}, raw=True)

    def set_custom_exc(self, *_arguments):
        pass

    def enable_gui(self, gui=None):
        pass

    def enable_matplotlib(self, gui=None):
        pass

    def showtraceback(self, *_arguments, **_options):
        import traceback

        traceback.print_exc()


def find(magics, name, kind, sign):
    function = magics.get(name)
    if function is None:
        there = " ".join(sign + known for known in sorted(magics))
        raise UsageError(f"{kind}magic {'function ' if sign == '%' else ''}`{sign}{name}` not found. There are {there}")
    return function


def expanded(text, names):
    """Replaces $name and {expression} by their values; what cannot be evaluated is unchanged."""
    if "$" not in text and "{" not in text:
        return text

    def value(found):
        if found[0] == "$$":
            return "$"
        try:
            return str(names[found[1]] if found[1] else eval(found[2], names))
        except Exception:
            return found[0]

    return EXPANSION.sub(value, text)


def help_of(name, value):
    import inspect

    rows = []
    try:
        rows.append(("Signature", f"{name}{inspect.signature(value)}"))
    except (TypeError, ValueError):
        pass
    rows.append(("Type", type(value).__name__))
    rows.append(("Docstring", inspect.getdoc(value) or "<no docstring>"))
    return "\n".join(f"{head}: {text}" for head, text in rows)


# --- commands ------------------------------------------------------------------------------------

PIP = re.compile(r"^\s*(?:\S*python[\d.]*\s+-m\s+)?pip3?\s+((?:(?:list|freeze|show)\b[^|]*(?=\|[^|]))|.*)(.*)$", re.DOTALL)


def run_shell(command, program=None, body=None):
    """Its output goes to the streams of the cell, in order; an interrupt kills its process group."""
    asked = PIP.match(command) if program is None else None
    if asked is not None and asked[2] and not os.environ.get("PIP_INDEX_URL"):  # pip list | grep NAME
        import contextlib
        import io
        with contextlib.redirect_stdout(io.StringIO()) as listed:
            pip(None, asked[1])
        return run_shell(None, [shell_of(), "-c", "cat" + asked[2]], listed.getvalue())
    if asked is not None:
        pip(None, asked[1] + asked[2])
        return 0
    import subprocess

    flush()
    arguments = program or [shell_of(), "-c", command]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE if body is not None else subprocess.DEVNULL,
                          start_new_session=True) as process:
        return waited(process, body)


def output_of(command):
    import subprocess

    flush()
    with subprocess.Popen([shell_of(), "-c", command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, start_new_session=True) as process:
        try:
            return process.communicate()[0].decode("utf-8", "replace")
        except BaseException:
            end(process)
            raise


def waited(process, body):
    try:
        process.communicate(body.encode() if body is not None else None)
    except BaseException:
        end(process)
        raise
    return process.returncode


def end(process):
    try:
        os.killpg(process.pid, 9)
    except OSError:
        pass
    process.wait()


def flush():
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass


def shell_of():
    return "/bin/bash" if os.path.exists("/bin/bash") else "/bin/sh"


# --- magics: line (shell, line), cell (shell, line, cell) --------------------------------------------

def timed(shell, line, cell=None):
    import time

    def seconds(value):
        for scale, unit in ((1, "s"), (1e3, "ms"), (1e6, "µs")):
            if value * scale >= 1 or unit == "µs":
                return f"{value * scale:.3g} {unit}"
        return ""

    user, system = os.times()[:2]
    began = time.perf_counter()
    try:
        return shell.context.execute_text(cell if cell is not None else line, "<timed>")
    finally:
        wall = time.perf_counter() - began
        user, system = os.times()[0] - user, os.times()[1] - system
        print(f"CPU times: user {seconds(user)}, sys: {seconds(system)}, total: {seconds(user + system)}\n"
              f"Wall time: {seconds(wall)}")


def timeit(shell, line, cell=None):
    import timeit as module

    count, repeat = 0, 7
    while line.startswith("-"):
        option, _, line = line.partition(" ")
        if option[:2] not in ("-n", "-r"):
            raise UsageError(f"%timeit knows -n N and -r N here, not {option}")
        number = option[2:]
        if not number:
            number, _, line = line.partition(" ")
        count, repeat = (int(number), repeat) if option[1] == "n" else (count, int(number))
    timer = module.Timer(cell if cell is not None else line, line if cell is not None and line else "pass",
                         globals=shell.user_ns)
    if not count:
        count, _ = timer.autorange()
    times = [took / count for took in timer.repeat(repeat, count)]
    mean = sum(times) / len(times)
    spread = (sum((took - mean) ** 2 for took in times) / len(times)) ** 0.5
    scale, unit = next((scale, unit) for scale, unit in ((1, "s"), (1e3, "ms"), (1e6, "µs"), (1e9, "ns"))
                       if mean * scale >= 1 or unit == "ns")
    print(f"{mean * scale:.3g} {unit} ± {spread * scale:.3g} {unit} per loop (mean ± std. dev. of {repeat} runs, "
          f"{count:,} loops each)")


def change_folder(_shell, line):
    os.chdir(os.path.expanduser(line.strip("'\"") or "~"))
    print(os.getcwd())


def environment(_shell, line):
    name, sign, value = line.partition("=")
    if not sign:
        name, sign, value = line.partition(" ")
    if not name.strip():
        return dict(os.environ)
    if not sign:
        if name.strip() not in os.environ:
            raise UsageError(f"Environment does not have key: {name.strip()}")
        return os.environ[name.strip()]
    os.environ[name.strip()] = value.strip()
    print(f"env: {name.strip()}={value.strip()}")
    return None


def install(line):
    """Runs pip, where the policy names an index. What it installs can be imported at once."""
    import importlib
    import shlex
    import site

    run_shell(None, [sys.executable, "-m", "pip", *shlex.split(line)])
    folder = site.getusersitepackages()
    if os.path.isdir(folder) and folder not in sys.path:
        site.addsitedir(folder)
    importlib.invalidate_caches()


def pip(_shell, line):
    from importlib import metadata, util

    if os.environ.get("PIP_INDEX_URL") and util.find_spec("pip"):
        install(line)
        return
    verb, *names = line.split() or ["list"]
    have = {(part.metadata["Name"] or "").lower().replace("_", "-"): part.version for part in metadata.distributions()}
    if verb in ("list", "freeze"):
        for name, version in sorted(have.items()):
            print(f"{name}=={version}")
        return
    wanted = [name for name in names if not name.startswith("-")]
    bare = [re.split(r"[<>=!~\[; ]", name)[0].lower().replace("_", "-") for name in wanted]
    missing = [name for name, key in zip(wanted, bare) if key not in have]
    if verb in ("show", "install") and wanted and not missing:
        for key in bare:
            print(f"{key} {have[key]} is installed already")
        return
    raise UsageError(
        f"pip {verb} is not possible here: a sandbox has no network and its libraries are read-only. "
        + (f"Missing: {', '.join(missing)}. " if missing else "")
        + "Use what the template has (%pip list), put pure Python files into the working folder, or ask the "
        f"operator: glovebox libs request {bare[0] if bare else 'NAME'}")


def matplotlib(_shell, line):
    if line.strip() not in ("", "inline", "agg", "auto", "--list", "-l"):
        print(f"figures are shown as with %matplotlib inline; '{line.strip()}' would need a screen")


def config(_shell, line):
    name, sign, value = line.partition("=")
    if sign and name.strip() in ("InlineBackend.figure_format", "InlineBackend.figure_formats"):
        import ast

        set_figure_formats(ast.literal_eval(value.strip()))


def reset(shell, line):
    shell.context.forget_names()


def run_file(shell, line):
    import shlex

    path, *arguments = shlex.split(line)
    if not os.path.exists(path) and os.path.exists(path + ".py"):
        path += ".py"
    kept, sys.argv = sys.argv, [path, *arguments]
    try:
        import runpy

        names = runpy.run_path(path, run_name="__main__")
    finally:
        sys.argv = kept
    shell.user_ns.update((name, value) for name, value in names.items() if not name.startswith("__"))


def who(shell, _line):
    import types

    for name, value in sorted(shell.user_ns.items()):
        if not name.startswith("_") and name not in ("In", "Out", "exit", "quit") and not isinstance(value, types.ModuleType):
            print(f"{name:20} {type(value).__name__:16} {' '.join(repr(value)[:200].split())[:80]}")


def nothing(_shell, _line):
    """Accepted, without effect."""


def alias(program):
    return lambda shell, line: shell.system(f"{program} {line}".rstrip())


def script(_shell, line, cell):
    import shlex

    program = shlex.split(line)
    if not program:
        raise UsageError("%%script needs the name of a program")
    run_script(program, cell)


def run_script(program, cell):
    import subprocess

    status = run_shell("", program, cell)
    if status:
        raise subprocess.CalledProcessError(status, cell.encode())


def by_program(program):
    return lambda shell, line, cell: run_script([program, *line.split()], cell)


def write_file(_shell, line, cell):
    *options, path = line.split()
    append = "-a" in options or "--append" in options
    print(("Appending to" if append else "Overwriting" if os.path.exists(path) else "Writing") + f" {path}")
    with open(path, "a" if append else "w", encoding="utf-8") as file:
        file.write(cell)


class Captured:
    """As the CapturedIO of IPython."""

    def __init__(self, out, err):
        self.out, self.err, self.outputs = out, err, []

    @property
    def stdout(self):
        return self.out.getvalue()

    @property
    def stderr(self):
        return self.err.getvalue()

    def __str__(self):
        return self.stdout

    def show(self):
        sys.stdout.write(self.stdout)
        sys.stderr.write(self.stderr)

    __call__ = show


def capture_output(stdout=True, stderr=True, display=True):
    """Captures output of this process only; results are shown as usual."""
    import contextlib
    import io

    @contextlib.contextmanager
    def captures():
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out if stdout else sys.stdout), contextlib.redirect_stderr(err if stderr else sys.stderr):
            yield Captured(out, err)

    return captures()


def capture(shell, line, cell):
    with capture_output() as captured:
        shell.context.execute_text(cell, "<captured>")
    name = next((word for word in line.split() if not word.startswith("-")), None)
    if name:
        shell.user_ns[name] = captured


def shown_as(name):
    return lambda shell, line, cell: _glovebox_display.display(_glovebox_display.NAMES[name](cell))


def list_magics(_shell, _line):
    print("Line: " + " ".join("%" + name for name in sorted(LINE_MAGICS)))
    print("Cell: " + " ".join("%%" + name for name in sorted(CELL_MAGICS)))


LINE_MAGICS = {
    "time": timed, "timeit": timeit, "cd": change_folder, "pwd": lambda shell, line: os.getcwd(),
    "env": environment, "set_env": environment, "pip": pip, "conda": pip, "matplotlib": matplotlib,
    "config": config, "reset": reset, "run": run_file, "load_ext": nothing, "reload_ext": nothing,
    "autoreload": nothing, "precision": nothing, "pdb": nothing, "xmode": nothing, "lsmagic": list_magics,
    "who": who, "whos": who,
    "system": lambda shell, line: shell.getoutput(line), "sx": lambda shell, line: shell.getoutput(line),
} | {name: alias(name) for name in ("ls", "cat", "mkdir", "rm", "cp", "mv")}
CELL_MAGICS = {
    "time": timed, "timeit": timeit, "bash": by_program("/bin/bash"), "sh": by_program("/bin/sh"),
    "script": script, "python": by_program(sys.executable), "python3": by_program(sys.executable),
    "writefile": write_file, "file": write_file, "capture": capture,
    "html": shown_as("HTML"), "HTML": shown_as("HTML"), "markdown": shown_as("Markdown"),
    "latex": shown_as("Latex"), "svg": shown_as("SVG"),
    "javascript": shown_as("Javascript"), "js": shown_as("Javascript"),
}
