"""Texts that are broken elsewhere: which lines to leave out so that the rest parses."""
