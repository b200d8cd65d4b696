"""Memory of the project: continuations of a line from the project's own text.

A server holds a :class:`Memory`, which answers with :class:`ScoredContinuation`. The index is the native module's
(``rust_core/memory``).
"""

from fim_server.memory.continuations import ScoredContinuation
from fim_server.memory.memory import Memory

__all__ = ["Memory", "ScoredContinuation"]
