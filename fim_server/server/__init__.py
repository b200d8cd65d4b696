"""The language server: the only package that knows the Language Server Protocol."""

from fim_server.server.connection.message_types import import_types

import_types()  # before any other module imports them

from fim_server.server.app import create_server, serve  # noqa: E402
from fim_server.server.connection.calling import ListeningClient  # noqa: E402
from fim_server.server.connection.listening import Endpoint  # noqa: E402
from fim_server.suggest.settings import ServerSettings  # noqa: E402

__all__ = ["Endpoint", "ListeningClient", "ServerSettings", "create_server", "serve"]
