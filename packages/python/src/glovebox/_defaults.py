"""The clients that are shared by everything in this program that names the same server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Optional, Tuple

from . import server

if TYPE_CHECKING:
    from ._async.client import AsyncClient
    from ._sync.client import Client

_clients: Dict[Tuple[Any, ...], Any] = {}


def _shared(kind: Any, url: Optional[str], socket: Optional[str], api_key: Optional[str]) -> Any:
    key = (kind, url, socket, api_key, *server.from_environment())
    client = _clients.get(key)
    if client is None:
        client = _clients.setdefault(key, kind(lambda: server.find(url, socket, api_key)))
    return client


def sync_client(url: Optional[str] = None, socket: Optional[str] = None, api_key: Optional[str] = None) -> Client:
    from ._sync.client import Client
    client: Client = _shared(Client, url, socket, api_key)
    return client


def async_client(url: Optional[str] = None, socket: Optional[str] = None, api_key: Optional[str] = None) -> AsyncClient:
    from ._async.client import AsyncClient
    client: AsyncClient = _shared(AsyncClient, url, socket, api_key)
    return client
