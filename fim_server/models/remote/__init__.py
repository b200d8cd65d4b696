"""Models behind an HTTP endpoint: what it streams is checked here, token by token."""
