"""The clients of this program, one for each server, shared by all callers."""

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
    """The template of this program's environment is on a private server of its own, unless a server is named."""
    place = server.place_of_environment() if url is None and socket is None else (None, None)
    environment_key = None if api_key else server.key_of_environment()
    is_own = template == THIS_ENVIRONMENT and not (url or socket or any(place))
    key = (kind, url, socket, api_key, ca, is_own, *place, environment_key)
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
