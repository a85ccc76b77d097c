"""Packs a function for the sandbox: its source, what it refers to, and its arguments. Without input and output."""

from __future__ import annotations

import ast
import builtins
import inspect
import pickle
import textwrap
import threading
import types
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Set, Tuple

from .errors import FunctionError, InvalidArgumentException
from .models import Artifact, Execution

CALL_FILE = ".glovebox-call"
VALUE_FILE = ".glovebox-value.json"
PARSER = threading.Lock()  # CPython counts the depth of a syntax tree in one place for all threads (gh-106905)


def plain(function: Any) -> Any:
    """The original function of one that App.function has wrapped."""
    return getattr(function, "__glovebox_function__", function)


def request_of(function: Callable[..., Any], arguments: Sequence[Any], options: Mapping[str, Any],
               packages: Sequence[str] = (), pickled: bool = False) -> Tuple[str, Dict[str, bytes]]:
    """Code of the cell that calls the function, and the input file for it."""
    import pkgutil
    function = plain(function)
    lines: List[str] = []
    data: Dict[str, Any] = {}
    name = _pack(function, lines, data, set())
    request = {"packages": list(packages), "pickled": pickled, "name": name,
               "source": "from __future__ import annotations\n" + "\n".join(lines), "data": _pickle(data, "what the function refers to"),
               "arguments": _pickle((tuple(arguments), dict(options)), "an argument")}
    inside = (pkgutil.get_data("glovebox", "_inside.py") or b"").decode()
    code = f"""def _glovebox_call():
    import os, pickle
    space = {{"__name__": "_glovebox_inside"}}
    exec({inside!r}, space)
    with open({CALL_FILE!r}, "rb") as file:
        request = pickle.load(file)
    os.unlink({CALL_FILE!r})
    return space["call"](request)
_glovebox_call()"""
    return code, {CALL_FILE: pickle.dumps(request, 4)}


def text_of(execution: Execution) -> Tuple[Optional[bytes], Optional[Artifact]]:
    """The text of the value, or the file that has it; raises the exception of the function."""
    if execution.error is not None:
        raise FunctionError(*execution.error)
    if execution.text:
        return execution.text.encode("utf-8", "surrogatepass"), None
    for artifact in execution.artifacts:
        if artifact.path.rsplit("/", 1)[-1] == VALUE_FILE:
            return None, artifact
    refused = [denial.message for denial in execution.denials if VALUE_FILE in denial.target]
    raise FunctionError("NoValue", refused[0] if refused else "the function's value did not come back", "")


def _pickle(value: Any, what: str) -> bytes:
    try:
        return pickle.dumps(value, 4)
    except Exception as error:  # a class can refuse pickling with any exception
        raise InvalidArgumentException(f"{what} cannot be pickled: {error}") from None


def _pack(function: Any, lines: List[str], data: Dict[str, Any], seen: Set[Any]) -> str:
    """Adds the source of a function or class and of what it refers to; returns its name there."""
    name = getattr(function, "__name__", "")
    if isinstance(function, types.BuiltinFunctionType) and function.__module__:
        lines.append(f"from {function.__module__} import {name}")
        return name
    if not isinstance(function, (types.FunctionType, type)):
        raise InvalidArgumentException(f"{function!r} is not a function that was written with def or lambda")
    seen.add(function)
    node, name = _node(function)
    for used in sorted(_names(node)):
        found, value = _lookup(function, used)
        if found and plain(value) not in seen if isinstance(plain(value), (types.FunctionType, type)) else found:
            _refer(used, plain(value), function.__module__, lines, data, seen)
    lines.append(ast.unparse(node))
    return name


def _refer(name: str, value: Any, module: str, lines: List[str], data: Dict[str, Any], seen: Set[Any]) -> None:
    if isinstance(value, types.ModuleType):
        lines.append(f"import {value.__name__} as {name}")
    elif isinstance(value, (types.FunctionType, type)) and value.__module__ == module:
        own = _pack(value, lines, data, seen)
        if own != name:
            lines.append(f"{name} = {own}")
    elif isinstance(value, (types.FunctionType, types.BuiltinFunctionType, type)) and value.__module__:
        lines.append(f"from {value.__module__} import {value.__qualname__.split('.')[0]} as {name}")
    else:
        data[name] = value


def _node(function: Any) -> Tuple[ast.stmt, str]:
    try:
        with PARSER:
            tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        raise InvalidArgumentException(f"the source of {function.__qualname__} is not known: write it with def, in a file "
                                       "or a notebook's cell") from None
    node = tree.body[0]
    if isinstance(node, ast.ClassDef):
        return node, node.name
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        node.decorator_list = []
        return node, node.name
    found = [each for each in ast.walk(tree) if isinstance(each, ast.Lambda)]
    if len(found) != 1:
        raise InvalidArgumentException("a statement with several lambdas has no clear source: write the function with def")
    name = "_glovebox_lambda"
    target = ast.Assign(targets=[ast.Name(id=name, ctx=ast.Store())], value=found[0])
    return ast.fix_missing_locations(target), name


def _names(node: ast.AST) -> Set[str]:
    """Names that are read and not assigned in it."""
    read: Set[str] = set()
    own: Set[str] = set()
    for each in ast.walk(node):
        if isinstance(each, ast.Name):
            (read if isinstance(each.ctx, ast.Load) else own).add(each.id)
        elif isinstance(each, ast.arg):
            own.add(each.arg)
    return read - own


def _lookup(function: Any, name: str) -> Tuple[bool, Any]:
    if isinstance(function, type):
        space: Mapping[str, Any] = vars(inspect.getmodule(function) or builtins)
    else:
        space = function.__globals__
        code = function.__code__
        if name in code.co_freevars:
            cell = function.__closure__[code.co_freevars.index(name)]
            try:
                return True, cell.cell_contents
            except ValueError:
                return False, None
    return (True, space[name]) if name in space else (False, None)
