"""The clients that are shared by everything in this program that names the same server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Optional, Tuple

from . import server

if TYPE_CHECKING:
    from ._async.client import AsyncClient
    from ._sync.client import Client

THIS_ENVIRONMENT = "this-environment"
_clients: Dict[Tuple[Any, ...], Any] = {}


def _shared(kind: Any, url: Optional[str], socket: Optional[str], api_key: Optional[str],
            template: Optional[str], ca: Optional[str]) -> Any:
    """A copy of this program's environment is on a private server of its own, unless a server is named."""
    is_own = template == THIS_ENVIRONMENT and not (url or socket or any(server.from_environment()[:2]))
    key = (kind, url, socket, api_key, ca, is_own, *server.from_environment())
    client = _clients.get(key)
    if client is None:
        client = _clients.setdefault(key, kind(server.of_this_environment if is_own else
                                               lambda: server.find(url, socket, api_key, ca)))
    return client


def sync_client(url: Optional[str] = None, socket: Optional[str] = None, api_key: Optional[str] = None,
                template: Optional[str] = None, ca: Optional[str] = None) -> Client:
    from ._sync.client import Client
    client: Client = _shared(Client, url, socket, api_key, template, ca)
    return client


def async_client(url: Optional[str] = None, socket: Optional[str] = None, api_key: Optional[str] = None,
                 template: Optional[str] = None, ca: Optional[str] = None) -> AsyncClient:
    from ._async.client import AsyncClient
    client: AsyncClient = _shared(AsyncClient, url, socket, api_key, template, ca)
    return client
