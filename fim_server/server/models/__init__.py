"""Models and the project's index: loading, fetching, listing, and lack of memory."""
