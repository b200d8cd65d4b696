"""The language server with three requests more: `test/text`, what it has of a document, `test/cells`, what it has of a
notebook, and `test/kept`, how many messages it keeps something of."""

from __future__ import annotations

import sys
from typing import Any

from fim_server.cli import main
from fim_server.server import app
from fim_server.server.documents.workspace import OpenDocuments
from fim_server.server.language_server import FimLanguageServer

create_server = app.create_server


def telling_server(*arguments: Any, **named: Any) -> FimLanguageServer:
    server = create_server(*arguments, **named)

    @server.feature("test/text")
    def tell(params: Any) -> dict[str, Any] | None:
        opened = server.protocol.opened(params.uri)
        return None if opened is None else {"text": opened.source, "version": opened.version}

    @server.feature("test/cells")
    def tell_cells(params: Any) -> list[dict[str, Any]] | None:
        workspace = server.protocol.workspace
        assert isinstance(workspace, OpenDocuments)
        notebook = workspace.synchronized(params.uri)
        if notebook is None:
            return None
        return [{"uri": cell.uri, "language": cell.language, "text": cell.text} for cell in notebook.cells]

    @server.feature("test/kept")
    def count(params: Any) -> int:
        return len(server.protocol._request_futures)

    return server


if __name__ == "__main__":
    app.create_server = telling_server
    sys.exit(main(["serve", *sys.argv[1:]]))
