"""The address of a server, and the key for it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Dict, Optional

from ._http import USER_AGENT, Hidden, check_header, url_parts
from .errors import ConnectionLost, InvalidArgumentException

if TYPE_CHECKING:
    import ssl


class Endpoint:
    """A Unix socket, or host and port with or without TLS. repr() never shows the key."""

    __slots__ = ("socket", "host", "port", "tls", "prefix", "is_private", "_key", "_ca", "_context", "_head")

    def __init__(self, *, socket: Optional[str] = None, url: Optional[str] = None, api_key: Optional[str] = None,
                 ca: Optional[str] = None, is_private: bool = False) -> None:
        self.socket = socket
        self.host, self.port, self.tls, self.prefix = "localhost", 0, False, ""
        if socket is None:
            scheme, self.host, self.port, self.prefix = url_parts(url or "")
            self.tls = scheme == "https"
        if ca is not None and not self.tls:
            raise InvalidArgumentException("ca= is the authority of a server with an https:// URL; name that with url=")
        self._ca = ca
        self.is_private = is_private  # a private server, which the programs of this user start again
        check_header("Authorization", api_key or "")
        self._key = api_key
        self._context: Optional["ssl.SSLContext"] = None
        self._head: Optional[Hidden] = None

    @property
    def authority(self) -> str:
        if self.socket is not None:
            return "localhost"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.tls else 80) else f"{host}:{self.port}"

    def context(self) -> Optional["ssl.SSLContext"]:
        """The certificate authorities of `ca`, else of SSL_CERT_FILE or the system; read once."""
        if self.tls and self._context is None:
            import ssl as module
            try:
                self._context = module.create_default_context(cafile=self._ca)
            except OSError as error:
                raise InvalidArgumentException(f"ca={self._ca!r}: {error.strerror or error}; name a file of certificates in "
                                               "PEM form") from None
        return self._context

    def authorization(self) -> Dict[str, str]:
        return {"Authorization": f"Bearer {self._key}"} if self._key else {}

    def head(self) -> Hidden:
        """The part of a JSON request between its target and the size of its body; composed once."""
        if self._head is None:
            check_header("Host", self.authority)
            lines = ["", f"Host: {self.authority}", f"User-Agent: {USER_AGENT}", "Content-Type: application/json"]
            lines += [f"{name}: {value}" for name, value in self.authorization().items()]
            self._head = Hidden((" HTTP/1.1" + "\r\n".join(lines) + "\r\nContent-Length: ").encode("latin-1"))
        return self._head

    def url(self, path: str) -> str:
        """The URL of a path of this server, where it has one."""
        if self.socket is not None:
            raise ValueError("a server on a Unix socket has no URL; serve with --listen, and use its address")
        return f"{'https' if self.tls else 'http'}://{self.authority}{self.prefix}{path}"

    @property
    def place(self) -> str:
        return self.socket or self.url("")

    def unreached(self, error: Exception) -> ConnectionLost:
        """The error for a failed connection, with what the user can do."""
        if isinstance(error, (ConnectionError, FileNotFoundError, PermissionError)) and error.errno:
            cause = os.strerror(error.errno)  # asyncio adds a text of its own
            return ConnectionLost(f"no server answers at {self.place} ({cause}); start it there: glovebox serve, or name another")
        if getattr(error, "reason", None) in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"):
            return ConnectionLost(f"the server at {self.place} does not speak TLS: write http:// for glovebox serve's own address, "
                                  "or name the proxy's")
        return ConnectionLost(f"connect to {self.place}: {error}")

    def __repr__(self) -> str:
        return f"<Endpoint {self.place}>"
