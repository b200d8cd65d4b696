"""Sources of files: folders, the standard library, installed packages, corpora and the hub."""
