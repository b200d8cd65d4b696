"""Where files come from: folders, the standard library, installed packages, corpora and the hub."""
