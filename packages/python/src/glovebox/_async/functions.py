"""Functions of this program that run in a sandbox, each call in one of its own."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence

from .._async_stream import in_order
from .._functions import request_of, text_of
from .._http import hide
from .._values import value_of
from .runs import adownload, arun

AT_ONCE = 8  # the server's queue takes 24 runs of one key


async def acall_function(function: Callable[..., Any], arguments: Sequence[Any] = (),
                         options: Optional[Mapping[str, Any]] = None, *, packages: Sequence[str] = (),
                         unpickle_untrusted_result: bool = False, server: Optional[Mapping[str, Any]] = None,
                         **run_options: Any) -> Any:
    """Calls a function in a fresh sandbox. Arguments are pickled; the value comes back as JSON with exact forms.

    unpickle_untrusted_result: unpickles the value. Code inside the sandbox can then run anything in this program.
    """
    code, files = request_of(function, arguments, options or {}, packages, unpickle_untrusted_result)
    server = dict(server or {})
    execution = await arun(code, "python", files=files, **run_options, **server)
    text, artifact = text_of(execution)
    if artifact is not None:
        text = await adownload(artifact, **server)
    return value_of(text or b"", unpickle_untrusted_result)


async def amap(function: Callable[[Any], Any], items: Iterable[Any], *, at_once: int = AT_ONCE,
               return_exceptions: bool = False, **options: Any) -> List[Any]:
    """function(item) for each item, each in a fresh sandbox, several at once; values in the order of items.
    `options`: those of run() and of the server, and packages=."""
    hide(options)
    server: Dict[str, Any] = {name: options.pop(name) for name in ("url", "socket", "api_key", "ca", "client") if name in options}

    async def one(item: Any) -> Any:
        try:
            return await acall_function(function, (item,), server=server, **options)
        except Exception as error:
            if return_exceptions:
                return error
            raise
    return await in_order(one, items, at_once)
