"""Other engines that make token masks, measured beside this one: llguidance and glrmask, if they are installed.

Each gets the nearest grammar that it can take (`grammars`) and the same tokens at the same steps. Each runs in a
process of its own, so that its memory is its own and a crash ends nothing else. None of them has a right context or
indentation; every outcome names the language that it was asked for.
"""
