"""A memory of the project: how its own text says that a line goes on.

:class:`Memory` is what a server holds; :class:`ScoredContinuation` what it answers. The index is the native module's
(``rust_core/memory``).
"""

from fim_server.memory.continuations import ScoredContinuation
from fim_server.memory.memory import Memory

__all__ = ["Memory", "ScoredContinuation"]
