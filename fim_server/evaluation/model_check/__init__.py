"""Choosing a model: whether one is fit to complete code, and how fast it is on this machine.

``trial`` runs ten holes, ``findings`` judges what came of them, ``speed`` measures.
"""
