"""The recipe of the embedded model: collect, tokenizer, train, export, evaluate; it learns Python, by purpose.

Run `./dev train --help` in a checkout: nothing else of the package imports it, and what is installed
need not have it.
"""
