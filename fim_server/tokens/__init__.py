"""Vocabularies of language models, masks over them, and tokens that need no model."""
