"""Ends of middles: text right of the cursor, merged tokens, trimming."""
