"""Checkers: language servers that this server starts itself, and asks about its suggestions."""
