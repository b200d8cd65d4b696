"""Open documents and notebooks."""
