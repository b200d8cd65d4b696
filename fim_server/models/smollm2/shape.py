"""Shape of a Llama's network, and the names of its weights in a transformers folder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from fim_server.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import numpy as np
    from numpy.typing import NDArray

Weights: TypeAlias = "Callable[[str], NDArray[np.float32]]"
"""Function that returns each weight by its name in a transformers folder."""

EMBEDDING, FINAL_NORM = "model.embed_tokens.weight", "model.norm.weight"


@dataclass(frozen=True)
class LlamaShape:
    """Sizes of a Llama whose embedding and output layer are one table, without biases.

    Attributes:
        vocabulary: Rows of the embedding, V.
        width: Numbers of a token between layers.
        inner: Width within the feed-forward part.
        layers: Layers.
        heads: Query heads.
        kv_heads: Heads of keys and values.
        head_size: Numbers of a head.
        window: Tokens that it was made to attend to.
        epsilon: Of the root mean square norms.
        theta: Base of the rotary embedding's wavelengths.
    """

    vocabulary: int
    width: int
    inner: int
    layers: int
    heads: int
    kv_heads: int
    head_size: int
    window: int
    epsilon: float
    theta: float

    def sizes(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Yield every weight's name and shape, layer by layer."""
        queries, keys = self.heads * self.head_size, self.kv_heads * self.head_size
        yield EMBEDDING, (self.vocabulary, self.width)
        for layer in range(self.layers):
            yield weight_name(layer, "input_layernorm"), (self.width,)
            yield weight_name(layer, "self_attn.q_proj"), (queries, self.width)
            yield weight_name(layer, "self_attn.k_proj"), (keys, self.width)
            yield weight_name(layer, "self_attn.v_proj"), (keys, self.width)
            yield weight_name(layer, "self_attn.o_proj"), (self.width, queries)
            yield weight_name(layer, "post_attention_layernorm"), (self.width,)
            yield weight_name(layer, "mlp.gate_proj"), (self.inner, self.width)
            yield weight_name(layer, "mlp.up_proj"), (self.inner, self.width)
            yield weight_name(layer, "mlp.down_proj"), (self.width, self.inner)
        yield FINAL_NORM, (self.width,)

    def config(self, **besides: Any) -> dict[str, Any]:
        """Return the ``config.json`` of a transformers folder with weights in float16; ``besides``: further fields."""
        return {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "hidden_size": self.width,
            "intermediate_size": self.inner,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads,
            "head_dim": self.head_size,
            "vocab_size": self.vocabulary,
            "max_position_embeddings": self.window,
            "rms_norm_eps": self.epsilon,
            "rope_theta": self.theta,
            "tie_word_embeddings": True,
            "hidden_act": "silu",
            "attention_bias": False,
            "mlp_bias": False,
            "torch_dtype": "float16",
            **besides,
        }


def weight_name(layer: int, part: str) -> str:
    return f"model.layers.{layer}.{part}.weight"


def shape_of(config: Mapping[str, Any]) -> LlamaShape:
    """Return the shape in a ``config.json``.

    Raises ModelError for anything but a Llama with a tied embedding and a plain rotary embedding, since the graph has
    no place for it.
    """
    try:
        width, heads = int(config["hidden_size"]), int(config["num_attention_heads"])
        rotary = config.get("rope_parameters") or config.get("rope_scaling") or {}
        unusual = [
            problem
            for problem, found in (
                (f"model type {config.get('model_type')}", config.get("model_type") != "llama"),
                ("an output layer of its own", not config.get("tie_word_embeddings", False)),
                ("biases", bool(config.get("attention_bias") or config.get("mlp_bias"))),
                (f"activation {config.get('hidden_act')}", config.get("hidden_act", "silu") != "silu"),
                ("a scaled rotary embedding", rotary.get("rope_type", rotary.get("type", "default")) != "default"),
            )
            if found
        ]
        shape = LlamaShape(
            vocabulary=int(config["vocab_size"]),
            width=width,
            inner=int(config["intermediate_size"]),
            layers=int(config["num_hidden_layers"]),
            heads=heads,
            kv_heads=int(config.get("num_key_value_heads", heads)),
            head_size=int(config.get("head_dim") or width // heads),
            window=int(config["max_position_embeddings"]),
            epsilon=float(config["rms_norm_eps"]),
            theta=float(config.get("rope_theta") or rotary.get("rope_theta", 10_000.0)),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelError(f"no configuration of a Llama ({error!r})") from error
    if unusual:
        raise ModelError(f"no Llama that can be built here ({', '.join(unusual)})")
    return shape
