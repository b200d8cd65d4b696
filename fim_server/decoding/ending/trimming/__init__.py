"""Trimming: cuts that turn a text into a suggestion."""
