"""The embedded model with fresh weights."""

from __future__ import annotations

import torch
from tokenizers import Tokenizer
from transformers import LlamaConfig, LlamaForCausalLM

from fim_server.errors import TrainingError
from training.plan import Shape
from training.tokenizer import END, PAD, token_id


def new_model(shape: Shape, tokenizer: Tokenizer, seed: int) -> LlamaForCausalLM:
    """Build a model with fresh weights; the embedding is also the output layer.

    Raises TrainingError if the heads do not divide the width evenly.
    """
    if shape.width % shape.heads or shape.heads % shape.key_heads:
        raise TrainingError(f"{shape.heads} heads, {shape.key_heads} for keys: do not divide a width of {shape.width}")
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=shape.width,
        intermediate_size=shape.inner,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.key_heads,
        max_position_embeddings=shape.context,
        rms_norm_eps=1e-5,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=token_id(tokenizer, END),
        pad_token_id=token_id(tokenizer, PAD),
    )
    model = LlamaForCausalLM(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith(("o_proj.weight", "down_proj.weight")):
                parameter.zero_()
            elif parameter.dim() == 2 and "embed" not in name:
                parameter.normal_(std=shape.width**-0.5 * 0.6)
            elif "embed" in name:
                parameter.normal_(std=0.02)
    return model
