"""Handlers of the protocol's requests, notifications and commands: a file for each or for a small family."""
