"""Tables of a report as text in cells, a module for each section.

``sections`` orders them. ``table`` and ``text`` define tables and cells. ``pairs`` and ``counts`` are shared by several
sections. ``goals`` are the checks at the head of a report.
"""
