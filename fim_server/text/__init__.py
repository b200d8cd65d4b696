"""Texts and positions, and sessions that follow a keystroke."""
