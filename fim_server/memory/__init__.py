"""Memory of the project: continuations of a line from the project's own text.

A server holds a :class:`.memory.Memory`, which answers with :class:`.continuations.ScoredContinuation`. The index is
the native module's (``rust_core/memory``).
"""
