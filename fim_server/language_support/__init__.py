"""Language support: optional code for one language, beside its definition."""
