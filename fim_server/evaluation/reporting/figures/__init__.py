"""Plots, drawn by matplotlib: ``plots`` are those of a report, ``style`` is how they look, ``plot`` what one is."""
