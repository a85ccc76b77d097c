"""App, function and Image: functions of this program that run in sandboxes, with an interface as Modal's."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import Any, Callable, Dict, Generator, Generic, Iterable, Iterator, Mapping, NamedTuple, Optional, Tuple, TypeVar

from ._http import hide
from ._sync.functions import AT_ONCE, call_function, map as map_function

R = TypeVar("R")


class Image(NamedTuple):
    """A template of the server, and packages that have to be in it. Nothing is installed when a function is called."""
    template: Optional[str] = None
    packages: Tuple[str, ...] = ()

    @classmethod
    def from_template(cls, name: str) -> Image:
        return cls(name)

    @classmethod
    def debian_slim(cls, python_version: Optional[str] = None) -> Image:
        """The template of the policy, with any version of Python."""
        return cls()

    def pip_install(self, *packages: str) -> Image:
        """Names of packages, without versions, that the template must have."""
        return Image(self.template, self.packages + packages)


class FunctionCall(Generic[R]):
    """A call that is under way or has ended."""

    def __init__(self, work: Callable[[], R]) -> None:
        self._value: Optional[R] = None
        self._error: Optional[BaseException] = None
        self._thread = threading.Thread(target=self._run, args=(work,), daemon=True)
        self._thread.start()

    def _run(self, work: Callable[[], R]) -> None:
        try:
            self._value = work()
        except BaseException as error:  # raised again by get()
            self._error = error

    def get(self, timeout: Optional[float] = None) -> R:
        """Returns the value or raises the function's exception; TimeoutError if the call is still under way."""
        self._thread.join(timeout)
        if self._thread.is_alive():
            raise TimeoutError("the call goes on")
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]


class Function(Generic[R]):
    """A function of an App. remote() runs it in a fresh sandbox, local() in this program."""

    def __init__(self, function: Callable[..., R], options: Mapping[str, Any]) -> None:
        self.__glovebox_function__ = function
        self.__name__ = getattr(function, "__name__", "function")
        self.__doc__ = function.__doc__
        self._options: Dict[str, Any] = dict(options)

    def __repr__(self) -> str:
        return f"<Function {self.__name__}>"

    def local(self, *arguments: Any, **options: Any) -> R:
        return self.__glovebox_function__(*arguments, **options)

    __call__ = local

    def remote(self, *arguments: Any, **options: Any) -> R:
        value: R = call_function(self.__glovebox_function__, arguments, options, **self._options)
        return value

    async def remote_async(self, *arguments: Any, **options: Any) -> R:
        from ._async.functions import acall_function
        value: R = await acall_function(self.__glovebox_function__, arguments, options, **self._options)
        return value

    def spawn(self, *arguments: Any, **options: Any) -> FunctionCall[R]:
        return FunctionCall(lambda: self.remote(*arguments, **options))

    def map(self, items: Iterable[Any], *, return_exceptions: bool = False, at_once: int = AT_ONCE) -> Iterator[R]:
        """Values in the order of items."""
        return iter(map_function(self.__glovebox_function__, items, at_once=at_once,
                                 return_exceptions=return_exceptions, **self._map_options()))

    async def map_async(self, items: Iterable[Any], *, return_exceptions: bool = False,
                        at_once: int = AT_ONCE) -> Iterator[R]:
        from ._async.functions import amap
        return iter(await amap(self.__glovebox_function__, items, at_once=at_once,
                               return_exceptions=return_exceptions, **self._map_options()))

    def _map_options(self) -> Dict[str, Any]:
        options = dict(self._options)
        options.update(options.pop("server", {}))
        return options


class App:
    """Functions that share a server. url, socket, api_key, ca: as for Sandbox."""

    def __init__(self, name: str = "app", *, image: Optional[Image] = None, policy: Optional[str] = None,
                 **server: Any) -> None:
        self.name = name
        self._image, self._policy, self._server = image or Image(), policy, hide(server)

    def __repr__(self) -> str:
        return f"<App {self.name}>"

    def function(self, image: Optional[Image] = None, timeout: Optional[float] = None, memory: Optional[int] = None,
                 cpu: Optional[float] = None, block_network: bool = True, *, policy: Optional[str] = None,
                 unpickle_untrusted_result: bool = False) -> Callable[[Callable[..., R]], Function[R]]:
        """timeout in seconds, memory in MiB, cpu in processors. block_network=False: what the policy allows.
        unpickle_untrusted_result: unpickles the value; code inside can then run anything in this program."""
        place = image or self._image
        limits: Dict[str, Any] = {}
        if memory is not None:
            limits["memory_bytes"] = memory << 20
        if cpu is not None:
            limits["cpus"] = cpu
        options = {key: value for key, value in (
            ("template", place.template), ("policy", policy or self._policy), ("timeout", timeout),
            ("limits", limits or None), ("network", "none" if block_network else None),
            ("packages", place.packages or None), ("unpickle_untrusted_result", unpickle_untrusted_result or None),
            ("server", self._server or None)) if value is not None}
        return lambda function: Function(function, options)

    def local_entrypoint(self) -> Callable[[Callable[..., R]], Callable[..., R]]:
        """Returns the function unchanged: the program calls it itself."""
        return lambda function: function

    @contextmanager
    def run(self) -> Generator[App, None, None]:
        """Does nothing: an App needs no start and no end."""
        yield self
