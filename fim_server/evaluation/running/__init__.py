"""A run: samples decoded in several modes, judged, and written down so that a killed run goes on."""
