"""Pipeline from a cursor to ranked suggestions, without LSP."""
