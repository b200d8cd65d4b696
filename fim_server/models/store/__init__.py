"""Downloaded models: the catalogue, their way into the user's cache, and their state there."""
