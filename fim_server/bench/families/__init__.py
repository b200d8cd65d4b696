"""``fim-server bench engine --families``: families of texts that repeat one construct of a language, and what they cost."""
