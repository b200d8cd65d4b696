"""Models and the project index, loaded in the background."""
