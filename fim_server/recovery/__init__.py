"""Recovery: lines to leave out of a broken text so that the rest parses."""
