"""Holes in files of languages that are defined by data: lexemes and brackets cut them, the language's parser judges.

A definition contributes its lexemes and brackets, and not its rules: measurements of the engine must not rest on the
engine's own reading of a text.
"""
