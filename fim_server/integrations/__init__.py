"""Masks of this engine in other decoding loops: those of transformers, vLLM and SGLang.

Each module here runs in the process of one of them and imports that engine's libraries; nothing else of the package
imports these modules.
"""
