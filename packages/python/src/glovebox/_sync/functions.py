"""Functions of this program that run in a sandbox, each call in one of its own."""
# Written by generate_sync.py from ../_async; change that, not this.

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence

from .._sync_stream import in_order
from .._functions import request_of, text_of
from .._http import hide
from .._values import value_of
from .runs import download, run

AT_ONCE = 8  # the server's queue takes 24 runs of one key


def call_function(function: Callable[..., Any], arguments: Sequence[Any] = (),
                         options: Optional[Mapping[str, Any]] = None, *, packages: Sequence[str] = (),
                         unpickle_untrusted_result: bool = False, server: Optional[Mapping[str, Any]] = None,
                         **run_options: Any) -> Any:
    """Calls a function in a fresh sandbox. Arguments are pickled; the value comes back as JSON with exact forms.

    unpickle_untrusted_result: unpickles the value. Code inside the sandbox can then run anything in this program.
    """
    code, files = request_of(function, arguments, options or {}, packages, unpickle_untrusted_result)
    server = dict(server or {})
    execution = run(code, "python", files=files, **run_options, **server)
    text, artifact = text_of(execution)
    if artifact is not None:
        text = download(artifact, **server)
    return value_of(text or b"", unpickle_untrusted_result)


def map(function: Callable[[Any], Any], items: Iterable[Any], *, at_once: int = AT_ONCE,
               return_exceptions: bool = False, **options: Any) -> List[Any]:
    """function(item) for each item, each in a fresh sandbox, several at once; values in the order of items.
    `options`: those of run() and of the server, and packages=."""
    hide(options)
    server: Dict[str, Any] = {name: options.pop(name) for name in ("url", "socket", "api_key", "ca", "client") if name in options}

    def one(item: Any) -> Any:
        try:
            return call_function(function, (item,), server=server, **options)
        except Exception as error:
            if return_exceptions:
                return error
            raise
    return in_order(one, items, at_once)
