"""This engine's masks inside other decoding loops: those of transformers, vLLM and SGLang.

Each module here is for the process of one of them, and imports that engine's libraries; nothing else of the package
imports these modules.
"""
