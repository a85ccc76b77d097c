"""text/plain of a value, in the layout of notebooks. A value that fits is one line of 79 characters. Otherwise
the outermost container has one item a line, indented by its bracket, and so on inwards."""

import types

WIDTH = 79
DEPTH_MOST = 100
ITEMS_MOST = 100_000  # of one container; the whole text has its own limit


class Group:
    """Items with a comma and a blank or a new line between them."""

    def __init__(self, opening, items, closing):
        self.opening, self.items, self.closing = opening, items, closing
        self.is_flat = True
        self.width = len(opening) + len(closing) + 2 * max(len(items) - 1, 0)
        for item in items:
            width = width_of(item)
            self.width += width
            if self.width > WIDTH:
                self.width = WIDTH + 1
                self.is_flat = False
                break


class Pair:
    """`key: value` or `name=value`."""

    def __init__(self, head, value):
        self.head, self.value = head, value


def width_of(item):
    if type(item) is str:
        return WIDTH + 1 if "\n" in item else len(item)
    if type(item) is Pair:
        return width_of(item.head) + width_of(item.value)
    return item.width


def text_of(value):
    kind = type(value)
    if kind is int or kind is float or kind is bool or kind is str and "\n" not in value:
        return repr(value)
    out = []
    write(out, describe(value, ()), 0, 0, 0)
    return "".join(out)


def write(out, item, indent, column, after):
    """Returns the column where it ends. `after`: characters that must follow on the same line."""
    if type(item) is str:
        lines = item.split("\n")
        out.append(("\n" + " " * indent).join(lines) if len(lines) > 1 else item)
        return column + len(item) if len(lines) == 1 else indent + len(lines[-1])
    if type(item) is Pair:
        column = write(out, item.head, indent, column, 0)
        return write(out, item.value, indent, column, after)
    if item.is_flat and column + item.width + after <= WIDTH:
        write_flat(out, item)
        return column + item.width
    out.append(item.opening)
    column += len(item.opening)
    indent += len(item.opening)
    last = len(item.items) - 1
    for number, part in enumerate(item.items):
        if number:
            out.append(",\n" + " " * indent)
            column = indent
        column = write(out, part, indent, column, after + len(item.closing) if number == last else 1)
    out.append(item.closing)
    return column + len(item.closing)


def write_flat(out, item):
    if type(item) is str:
        out.append(item)
    elif type(item) is Pair:
        write_flat(out, item.head)
        write_flat(out, item.value)
    else:
        out.append(item.opening)
        for number, part in enumerate(item.items):
            if number:
                out.append(", ")
            write_flat(out, part)
        out.append(item.closing)


def describe(value, around):
    """A str, or a Group. `around` holds the ids of the containers around it."""
    kind = type(value)
    if kind in (int, str, float, bool, bytes, type(None)):
        return repr(value)
    if callable(getattr(kind, "_repr_pretty_", None)):
        return pretty_of(value, id(value) in around)
    rule = rule_of(kind)
    if rule is None:
        return repr(value)
    if rule is not of_type and rule is not of_function and rule is not of_object:
        if id(value) in around:
            return f"{brackets_of(kind)[0]}...{brackets_of(kind)[1]}"
        if len(around) >= DEPTH_MOST:
            return repr(value)
    return rule(value, (*around, id(value)))


def rule_of(kind):
    """The rule of the first base class that has one, unless a class before it has its own __repr__."""
    for base in kind.__mro__:
        rule = RULES.get(base) or LATE_RULES.get((base.__module__, base.__qualname__))
        if rule is not None:
            return rule if base is kind or kind.__repr__ is base.__repr__ else None
        if base is object:
            return of_object
        if "__repr__" in base.__dict__:
            return None
    return None


def brackets_of(kind):
    for base, brackets in BRACKETS.items():
        if issubclass(kind, base):
            return brackets
    return f"{kind.__name__}(", ")"


def listed(values, around):
    items = []
    for number, value in enumerate(values):
        if number >= ITEMS_MOST:
            items.append("...")
            break
        items.append(describe(value, around))
    return items


def of_list(value, around):
    return Group("[", listed(value, around), "]")


def of_tuple(value, around):
    items = listed(value, around)
    return Group("(", items, ",)" if len(items) == 1 else ")")


def ordered(values):
    try:
        return sorted(values)
    except Exception:
        pass
    try:
        return sorted(values, key=lambda value: (type(value).__name__, str(value)))
    except Exception:
        return list(values)


def of_set(value, around):
    if not value:
        return repr(value)
    opening, closing = ("frozenset({", "})") if isinstance(value, frozenset) else ("{", "}")
    return Group(opening, listed(ordered(value), around), closing)


def pairs(value, around):
    items = []
    for number, (key, one) in enumerate(value.items()):
        if number >= ITEMS_MOST:
            items.append("...")
            break
        head = describe(key, around)
        items.append(Pair(f"{head}: " if type(head) is str else Pair(head, ": "), describe(one, around)))
    return items


def of_dict(value, around):
    return Group("{", pairs(value, around), "}")


def call(value, arguments):
    return Group(f"{type(value).__name__}(", arguments, ")")


def of_ordered_dict(value, around):
    return call(value, [of_list([*value.items()], around)] if value else [])


def of_counter(value, around):
    return call(value, [of_dict(dict(value.most_common()), around)] if value else [])


def of_default_dict(value, around):
    return call(value, [describe(value.default_factory, around), of_dict(value, around)])


def of_deque(value, around):
    arguments = [of_list(value, around)]
    if value.maxlen is not None:
        arguments.append(Pair("maxlen=", repr(value.maxlen)))
    return call(value, arguments)


def of_mapping_proxy(value, around):
    return Group("mappingproxy(", [of_dict(value, around)], ")")


def of_namespace(value, around):
    items = [Pair(f"{name}=", describe(one, around)) for name, one in value.__dict__.items()]
    return Group("namespace(" if type(value) is types.SimpleNamespace else f"{type(value).__name__}(", items, ")")


def of_type(value, _around):
    if type(value).__repr__ is not type.__repr__:
        return repr(value)
    return full_name(value)


def of_function(value, _around):
    name = getattr(value, "__qualname__", None) or value.__name__
    if getattr(value, "__module__", None) not in (None, "builtins"):
        name = f"{value.__module__}.{name}"
    try:
        import inspect

        return f"<function {name}{inspect.signature(value)}>"
    except (TypeError, ValueError):
        return f"<function {name}>"


def of_exception(value, around):
    return Group(f"{full_name(type(value))}(", listed(value.args, around), ")")


def of_object(value, _around):
    if type(value).__repr__ is not object.__repr__:
        return repr(value)
    return f"<{full_name(type(value))} at {id(value):#x}>"


def full_name(kind):
    name = getattr(kind, "__qualname__", kind.__name__)
    module = getattr(kind, "__module__", None)
    return name if module in (None, "builtins") else f"{module}.{name}"


class Printer:
    """What `_repr_pretty_(self, printer, cycle)` methods are given: they write text or other values."""

    def __init__(self):
        self.parts, self.indentation, self.max_width = [], 0, WIDTH

    def text(self, text):
        self.parts.append(str(text))

    def pretty(self, value):
        self.parts.append(text_of(value).replace("\n", "\n" + " " * self.indentation))

    def breakable(self, separator=" "):
        self.parts.append(separator)

    def break_(self):
        self.parts.append("\n" + " " * self.indentation)

    def begin_group(self, indent=0, opening=""):
        self.indentation += indent
        self.text(opening)

    def end_group(self, dedent=0, closing=""):
        self.indentation -= dedent
        self.text(closing)

    def group(self, indent=0, opening="", closing=""):
        import contextlib

        @contextlib.contextmanager
        def inside():
            self.begin_group(indent, opening)
            try:
                yield
            finally:
                self.end_group(indent, closing)

        return inside()

    def indent(self, indent):
        return self.group(indent)


def pretty_of(value, is_cycle):
    printer = Printer()
    value._repr_pretty_(printer, is_cycle)
    return "".join(printer.parts)


RULES = {
    list: of_list, tuple: of_tuple, set: of_set, frozenset: of_set, dict: of_dict, type: of_type,
    types.FunctionType: of_function, types.BuiltinFunctionType: of_function,
    types.SimpleNamespace: of_namespace, types.MappingProxyType: of_mapping_proxy,
    BaseException: of_exception,
}
# By name, since these modules may not be imported.
LATE_RULES = {
    ("collections", "OrderedDict"): of_ordered_dict, ("collections", "Counter"): of_counter,
    ("collections", "defaultdict"): of_default_dict, ("collections", "deque"): of_deque,
}
BRACKETS = {list: ("[", "]"), tuple: ("(", ")"), dict: ("{", "}"), set: ("{", "}"), frozenset: ("{", "}")}
