"""The tables of a report as text in cells, a module for each of its sections.

``sections`` puts them in order; ``table`` and ``text`` are what a table and its cells are, ``pairs`` and ``counts``
what several sections share; ``goals`` are the checks at the head of a report.
"""
