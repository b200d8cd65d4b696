"""Next edits: the memory of what was just changed, and proposals of the same change elsewhere."""
