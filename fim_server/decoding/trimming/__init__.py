"""What is cut off a text before it is a suggestion: indentation, lines and phrases that are there already."""
