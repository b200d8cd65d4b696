"""``./dev bench gpu``: what the grammar takes of a token where many rows are decoded on a GPU."""
