"""What the results of runs say: figures and their uncertainty, tables, plots, a page to browse, two runs compared.

What draws and counts (matplotlib, scipy, Jinja) is imported only when a report is made, and is the extra ``eval``.
"""
