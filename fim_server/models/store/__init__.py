"""Models that are no part of the package: which there are, how one comes into the user's cache, and what is there."""
