"""Ends of middles: end tokens, text right of the cursor, merged tokens, trimming."""
