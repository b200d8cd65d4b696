"""Who may ask what, and when: `initialize` comes first and once, and shows the token where one is wanted."""

from __future__ import annotations

import asyncio
import hmac
import logging
import threading
from collections.abc import Callable, Generator, Mapping
from typing import Any

from lsprotocol import types
from pygls.protocol import LanguageServerProtocol
from pygls.protocol.language_server import lsp_method

from fim_server.suggest.settings import SECTION

logger = logging.getLogger(__name__)

TOKEN = "token"
"""The member of ``initializationOptions`` that has the token."""

NOT_INITIALIZED = types.ErrorCodes.ServerNotInitialized.value
PARSE_ERROR = types.ErrorCodes.ParseError.value
INVALID_REQUEST = types.ErrorCodes.InvalidRequest.value


class HandshakeProtocol(LanguageServerProtocol):
    """The protocol of one client, which has to begin it as the Language Server Protocol says.

    pygls answers a second `initialize` as it did the first, and forgets all documents; what comes before the first one
    fails somewhere in it. Its own way to end a client's messages is to end the process.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.token: str | None = None
        """What the client has to show; None: nothing."""
        self.initialized = False
        """Whether the client has sent `initialize`, with the token where one is wanted."""
        self.loop: asyncio.AbstractEventLoop | None = None
        """Event loop that answers the client's messages."""
        self.ended = threading.Event()
        """Set when no more messages of the client are answered."""
        self.refused = False
        """Whether that is because of one that was refused."""

    def on_loop(self, work: Callable[[], object]) -> None:
        """Call a function on the event loop's thread, also while another thread reads a large message."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            if self.loop is not None:
                self.loop.call_soon_threadsafe(work)
                return
        work()

    def handle_message(self, message: Any) -> None:
        """Answer a message, or say why it is not answered."""
        if getattr(message, "jsonrpc", None) != self.VERSION:  # pygls fails, or says nothing to a request
            named = message.get("id") if isinstance(message, Mapping) else getattr(message, "id", None)
            number = named if isinstance(named, int | str) else None
            self._refuse_unread(INVALID_REQUEST, "not a message of JSON-RPC 2.0", number)
            return
        method, number = getattr(message, "method", None), getattr(message, "id", None)
        if method == types.INITIALIZE and number is not None:
            if self.initialized:
                self._refuse_request(number, INVALID_REQUEST, "initialize may be sent only once")
                return
            if not self._shows_token(message.params):
                self._refuse_request(number, INVALID_REQUEST, "the token is missing or wrong")
                self.end(refused=True)
                return
            self.initialized = True
        elif not self.initialized and method != types.EXIT:
            if method is not None and number is not None:
                self._refuse_request(number, NOT_INITIALIZED, "initialize comes first")
            return
        elif self._shutdown and method is not None and number is not None:
            self._refuse_request(number, INVALID_REQUEST, "the server is shut down")  # pygls says nothing
            return
        super().handle_message(message)

    def refuse(self, problem: str) -> None:
        """Say that a message cannot be read, and read no more."""
        logger.warning("a client's messages are no longer read: %s", problem)
        self._refuse_unread(INVALID_REQUEST, problem)
        self.end(refused=True)

    def pass_over(self, problem: str) -> None:
        """Log why a message was skipped; the following ones are read."""
        logger.warning("a message was skipped: %s", problem)
        self._refuse_unread(INVALID_REQUEST, problem)

    def refuse_text(self) -> None:
        """Say that a message is no JSON; those after it are read."""
        self._refuse_unread(PARSE_ERROR, "not JSON, or nested too deeply")

    def end(self, refused: bool = False) -> None:
        """Answer no more messages after the one at hand."""
        self.refused = self.refused or refused
        self.ended.set()

    @lsp_method(types.SHUTDOWN)
    def lsp_shutdown(self, *arguments: Any) -> Generator[Any, Any, None]:
        """End all requests, and take no more of them.

        As pygls does, which fails where one of them is a command's: it ends at once, in the middle of going over them.
        """
        handler = self.fm.features.get(types.SHUTDOWN)
        if handler is not None:
            yield handler, arguments, None
        self._shutdown = True
        for number, future in list(self._request_futures.items()):
            if number != self.msg_id and not future.done():
                future.cancel()

    def once_cancelled(self, told: Callable[[], object]) -> None:
        """Have something called if the request at hand is cancelled; a command's handler itself goes on then."""
        number = self.msg_id
        asked = None if number is None else self._request_futures.get(number)
        if asked is not None:
            asked.add_done_callback(lambda done: told() if done.cancelled() else None)

    @lsp_method(types.EXIT)
    def lsp_exit(self, *_: Any) -> Generator[Any, Any, None]:
        """End this client's messages; there may be others, so it does not end the process."""
        self.end()
        yield from ()  # pygls runs its own handlers as generators

    def abandon(self) -> None:
        """Stop what is still under way for the client, and send it nothing more."""
        self.end()
        self.writer = None
        for future in list(self._request_futures.values()):
            future.cancel()

    def _send_data(self, data: Any) -> None:
        if self.writer is not None:
            super()._send_data(data)

    def _refuse_unread(self, code: int, problem: str, number: int | str | None = None) -> None:
        # As it is: lsprotocol leaves out what is None, and the id of a message that was not read has to be null.
        self._send_data({"jsonrpc": self.VERSION, "id": number, "error": {"code": code, "message": problem}})

    def _refuse_request(self, number: int | str, code: int, message: str) -> None:
        self._send_response(number, None, types.ResponseError(code, message))

    def _shows_token(self, params: types.InitializeParams) -> bool:
        """Whether the token is right; it is taken out of the options, so that nothing later can log it."""
        options = params.initialization_options
        shown: object = None
        if isinstance(options, Mapping):
            params.initialization_options, shown = without_token(options)
        return self.token is None or is_token(shown, self.token)


def is_token(shown: object, token: str) -> bool:
    """Return whether a client's text is the token, in the same time for all texts of a length."""
    return isinstance(shown, str) and hmac.compare_digest(
        shown.encode(errors="surrogatepass"), token.encode(errors="surrogatepass")
    )


def without_token(options: Mapping[str, Any]) -> tuple[dict[str, Any], object]:
    """Initialization options without the token, and the token; it may be among the settings in their section."""
    rest = dict(options)
    shown = rest.pop(TOKEN, None)
    settings = rest.get(SECTION)
    if isinstance(settings, Mapping) and TOKEN in settings:
        rest[SECTION], inner = without_token(settings)
        shown = inner if shown is None else shown
    return rest, shown
