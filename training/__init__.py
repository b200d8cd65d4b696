"""The recipe of the embedded model: collect, tokenizer, train, export, evaluate; it learns Python, by purpose.

Run `./dev train --help` in a checkout. The installed package does not contain it.
"""
