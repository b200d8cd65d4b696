"""Languages, and sessions over the two texts around a cursor: the questions that the engine answers."""
