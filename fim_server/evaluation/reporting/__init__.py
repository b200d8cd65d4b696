"""Reports on runs: figures with their uncertainty, tables, plots, a page to browse, and comparisons.

matplotlib, scipy and Jinja (extra ``eval``) are imported only when a report is made.
"""
