"""First stage: sessions, the cursor, and the prompt that the model reads."""
