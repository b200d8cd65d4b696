"""The language server with a model that writes given texts: `test/writes` names texts and a seed.

With `--model=texts` the model is :mod:`text_models`'; any other is loaded as ever.
"""

from __future__ import annotations

import sys
from typing import Any, cast

from fim_server.cli import main
from fim_server.models import load
from fim_server.server import app
from fim_server.server.language_server import FimLanguageServer
from support.models.text_models import Written, text_model

NAME = "texts"
TEXTS = Written()

create_server, load_model = app.create_server, load.load_model


def load_texts(name: str | None = None, *others: Any) -> Any:
    """The model of a name."""
    return text_model(TEXTS) if name == NAME else load_model(name, *others)


def told_server(*arguments: Any, **named: Any) -> FimLanguageServer:
    """A server with the request."""
    server = create_server(*arguments, **named)

    @server.feature("test/writes")
    def take(params: Any) -> None:
        TEXTS.wanted = [(before.encode(), text.encode()) for before, text in params.wanted]
        TEXTS.seed = params.seed

    return server


if __name__ == "__main__":
    app.create_server = told_server
    load.load_model = cast(Any, load_texts)
    sys.exit(main(["serve", *sys.argv[1:]]))
