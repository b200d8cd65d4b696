"""Last stage: doubts about suggestions, their order, and the decision to show them."""
