"""Handshake of a client: `initialize` comes first, once, and with the token if one is required."""

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
"""Member of ``initializationOptions`` with the token."""

NOT_INITIALIZED = types.ErrorCodes.ServerNotInitialized.value
PARSE_ERROR = types.ErrorCodes.ParseError.value
INVALID_REQUEST = types.ErrorCodes.InvalidRequest.value


class HandshakeProtocol(LanguageServerProtocol):
    """Protocol of one client, with the order of messages that the Language Server Protocol asks for.

    pygls answers a second `initialize` like the first, and forgets all documents. A message before the first one fails
    somewhere inside it. It ends a client's messages by ending the process.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.token: str | None = None
        """Required token, if any."""
        self.initialized = False
        """True once the client has sent an accepted `initialize`."""
        self.loop: asyncio.AbstractEventLoop | None = None
        """Event loop that answers the client's messages."""
        self.ended = threading.Event()
        """Set when no more messages of the client are answered."""
        self.refused = False
        """True if a refused message has ended them."""

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
        """Answer a message, or refuse it with a reason."""
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
        """Refuse an unreadable message, and read no more."""
        logger.warning("a client's messages are no longer read: %s", problem)
        self._refuse_unread(INVALID_REQUEST, problem)
        self.end(refused=True)

    def pass_over(self, problem: str) -> None:
        """Refuse a message, and read the following ones."""
        logger.warning("a message was skipped: %s", problem)
        self._refuse_unread(INVALID_REQUEST, problem)

    def refuse_text(self) -> None:
        """Refuse a message that is not JSON, and read the following ones."""
        self._refuse_unread(PARSE_ERROR, "not JSON, or nested too deeply")

    def end(self, refused: bool = False) -> None:
        """Answer no messages after the current one."""
        self.refused = self.refused or refused
        self.ended.set()

    @lsp_method(types.SHUTDOWN)
    def lsp_shutdown(self, *arguments: Any) -> Generator[Any, Any, None]:
        """End all requests, and refuse new ones.

        pygls' own handler fails for a command: that ends at once, while pygls iterates over the requests.
        """
        handler = self.fm.features.get(types.SHUTDOWN)
        if handler is not None:
            yield handler, arguments, None
        self._shutdown = True
        for number, future in list(self._request_futures.items()):
            if number != self.msg_id and not future.done():
                future.cancel()

    def once_cancelled(self, work: Callable[[], object]) -> None:
        """Call ``work`` if the current request is cancelled, which does not stop a command's handler."""
        number = self.msg_id
        answered = None if number is None else self._request_futures.get(number)
        if answered is not None:
            answered.add_done_callback(lambda done: work() if done.cancelled() else None)

    @lsp_method(types.EXIT)
    def lsp_exit(self, *_: Any) -> Generator[Any, Any, None]:
        """End this client's messages, but not the process, which may have other clients."""
        self.end()
        yield from ()  # pygls runs its own handlers as generators

    def abandon(self) -> None:
        """Cancel the client's requests, and send it nothing more."""
        self.end()
        self.writer = None
        for future in list(self._request_futures.values()):
            future.cancel()

    def _send_data(self, data: Any) -> None:
        if self.writer is not None:
            super()._send_data(data)

    def _refuse_unread(self, code: int, problem: str, number: int | str | None = None) -> None:
        # Plain JSON: lsprotocol leaves out None, but the id of an unread message has to be null.
        self._send_data({"jsonrpc": self.VERSION, "id": number, "error": {"code": code, "message": problem}})

    def _refuse_request(self, number: int | str, code: int, message: str) -> None:
        self._send_response(number, None, types.ResponseError(code, message))

    def _shows_token(self, params: types.InitializeParams) -> bool:
        """Return whether the token is right, and remove it from the options, so that nothing logs it later."""
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
    """Return the options without the token, and the token, which may be inside the settings' section."""
    rest = dict(options)
    shown = rest.pop(TOKEN, None)
    settings = rest.get(SECTION)
    if isinstance(settings, Mapping) and TOKEN in settings:
        rest[SECTION], inner = without_token(settings)
        shown = inner if shown is None else shown
    return rest, shown
