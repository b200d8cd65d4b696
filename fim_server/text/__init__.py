"""Texts, positions and terminals, and sessions that follow a keystroke."""
