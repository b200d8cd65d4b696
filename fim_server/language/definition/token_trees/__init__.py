"""Token trees: languages of which only comments, strings and brackets are known, defined by data alone."""
