"""Models behind HTTP endpoints, whose streams are checked here token by token."""
