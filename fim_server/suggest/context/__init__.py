"""First stage: cursor, session and prompt."""
