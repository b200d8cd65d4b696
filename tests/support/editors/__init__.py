"""Played editors, terminals and browsers."""
