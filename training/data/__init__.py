"""Data of the training: packages, corpus, holes and windows."""
