"""Holes in files of any language that is defined by data: cut by its lexemes and brackets, judged by its own parser.

Nothing here knows a language. Of a definition its lexemes and brackets are used, and not its rules: what measures the
engine must not rest on what the engine makes of a text.
"""
