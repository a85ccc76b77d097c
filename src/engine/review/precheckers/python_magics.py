# python_magics.py - checks the lines of a cell that are not Python. They are calls of get_ipython() by now, written so
# or made by the kernel's own translator; each is checked by the table of its magic.

EXPANDS = {"get_ipython().system", "get_ipython().getoutput"}  # {expressions} in them are evaluated, as in magics
TIMEIT_OPTIONS = ("-n", "-r")


def look_at_magic(look, node, before, depth):
    """Checks the texts of a call of the shell; a call without literal texts is `dynamic`, by its attribute."""
    name = look.name_of(node.func) or ""
    texts = [text_of(argument) for argument in node.args]
    if not name.startswith("get_ipython().") or None in texts or not texts or node.keywords:
        return
    line, verb = before + node.lineno, name.removeprefix("get_ipython().")
    if name in EXPANDS:
        look_at_expansions(look, texts[0], line, depth)
        return
    if verb == "magic":
        called, _, rest = texts[0].lstrip("%").partition(" ")
        look_at_line_magic(look, called, rest.strip(), line, depth)
    elif verb == "run_line_magic" and len(texts) == 2:
        look_at_line_magic(look, texts[0], texts[1], line, depth)
    elif verb == "run_cell_magic" and len(texts) == 3:
        look_at_cell_magic(look, texts, line, depth)
    elif verb == "run_cell":
        read_inside(look, texts[0], line, True, depth)
    elif verb == "help":
        if not texts[0].replace(".", "").isidentifier():  # a name is only looked up
            read_inside(look, texts[0], line, False, depth)
    else:
        return
    look.seen.add(id(node.func))


def look_at_line_magic(look, name, text, line, depth):
    look_at_expansions(look, text, line, depth)
    what = BY_LINE_MAGIC.get(name)
    if what == "code":
        read_inside(look, without_options(text) if name == "timeit" else text, line, True, depth)
    else:
        tell(look, what, f"%{name}", line)
    if name in ("pip", "conda") and text.split()[:1] in (["install"], ["download"]):
        look.report.add("network", line, 0, f"%{name} {text.split()[0]}")


def look_at_cell_magic(look, texts, line, depth):
    name, text, cell = texts
    look_at_expansions(look, text, line, depth)
    what = BY_CELL_MAGIC.get(name)
    if what == "code":
        read_inside(look, cell, line + 1, True, depth)
        if name == "timeit":
            read_inside(look, without_options(text), line, True, depth)
    else:
        tell(look, what, f"%%{name}", line)


def tell(look, what, subject, line):
    if what != "nothing":
        look.report.add(what or "unchecked", line, 0, subject)


def look_at_expansions(look, text, line, depth):
    magics = sys.modules.get("_glovebox_magics")
    for found in magics.EXPANSION.finditer(text) if magics else ():
        if found[2]:
            try:
                ast.parse(found[2].strip(), mode="eval")
            except (SyntaxError, ValueError):
                continue  # such a text is not evaluated
            read_inside(look, found[2].strip(), line, False, depth)


def read_inside(look, text, line, is_cell, depth):
    try:
        look.read(text, line - 1, is_cell, depth + 1)
    except (SyntaxError, ValueError) as error:
        look.report.add("syntax", line, 0, getattr(error, "msg", error))


def without_options(text):
    """Removes options as %timeit does: -n N and -r N, with or without a blank."""
    while text.startswith("-"):
        option, _, text = text.partition(" ")
        if option[:2] in TIMEIT_OPTIONS and not option[2:]:
            text = text.partition(" ")[2]
    return text
