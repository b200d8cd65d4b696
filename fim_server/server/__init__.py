"""The language server: the only package that knows the Language Server Protocol."""

from fim_server.server.app import create_server, serve
from fim_server.server.connection.calling import ListeningClient
from fim_server.server.connection.listening import Endpoint
from fim_server.suggest.settings import ServerSettings

__all__ = ["Endpoint", "ListeningClient", "ServerSettings", "create_server", "serve"]
