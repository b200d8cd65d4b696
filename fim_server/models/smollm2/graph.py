"""ONNX graph of a Llama, as onnxruntime-genai's builder writes it, without torch.

onnxruntime's docs/ContribOperators.md describes the operators of the domain ``com.microsoft``. Attention keeps keys and
values in one buffer of the caller's. A pass computes the logits of its last token unless it asks for others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fim_server.models.onnx.backend import POSITIONS
from fim_server.models.smollm2 import messages
from fim_server.models.smollm2.forward import rotations
from fim_server.models.smollm2.messages import FLOAT, INT32, INT64, UINT8
from fim_server.models.smollm2.quantizing import by_channels, quantize
from fim_server.models.smollm2.shape import EMBEDDING, FINAL_NORM, weight_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fim_server.models.smollm2.quantizing import Channels, Precision, Quantized
    from fim_server.models.smollm2.shape import LlamaShape, Weights

MICROSOFT = "com.microsoft"

IR_VERSION, OPSETS = 10, {"": 21, MICROSOFT: 1}

MIDDLE_LEVEL = 128
"""Level of zero among activations of 8 bits."""

INT8_ACTIVATIONS = 4
"""Accuracy level of MatMulNBits that rounds activations to 8 bits in blocks, for its fast kernels."""


@dataclass(frozen=True)
class Precisions:
    """Precisions of the stored weights.

    Attributes:
        layers: The layers' matrices in blocks; None for matrices by channels.
        table: The embedding, which is also the output layer.
    """

    layers: Precision | None
    table: Precision


class LlamaGraph:
    """Builder of a graph.

    Attributes:
        shape: Shape of the network.
        nodes: Operators so far, in the order of their work.
        constants: Constant tensors so far.
    """

    def __init__(self, shape: LlamaShape, window: int, precisions: Precisions) -> None:
        """Begin a graph. ``window``: longest context."""
        self.shape, self.precisions = shape, precisions
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._window = window
        self._rounded: dict[str, tuple[str, str]] = {}

    def build(self, weight: Weights) -> Any:
        """Return the model of :mod:`.messages` with its weights; ``weight`` gives them by their transformers names."""
        self.attention_lengths()
        self.rotary_tables()
        stream, normed = self.embed(weight(EMBEDDING), weight(weight_name(0, "input_layernorm")))
        for layer in range(self.shape.layers):
            attended = self.attention(layer, normed, weight)
            stream, normed = self.norm(
                f"layers.{layer}.after_attention",
                stream,
                attended,
                weight(weight_name(layer, "post_attention_layernorm")),
            )
            changed = self.feed_forward(layer, normed, weight)
            last = layer + 1 == self.shape.layers
            gain = weight(FINAL_NORM if last else weight_name(layer + 1, "input_layernorm"))
            stream, normed = self.norm(f"layers.{layer}.after_feed_forward", stream, changed, gain)
        self.logits(normed)
        inputs, outputs = self.ends()
        return self.model(inputs, outputs)

    def model(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
        """Return the model of all nodes so far."""
        graph = messages.make(
            "Graph", node=self.nodes, name="llama", initializer=self.constants, input=inputs, output=outputs
        )
        opsets = [messages.make("Opset", domain=domain, version=version) for domain, version in OPSETS.items()]
        return messages.make(
            "Model", ir_version=IR_VERSION, producer_name="fim-server", graph=graph, opset_import=opsets
        )

    # --- parts ----------------------------------------------------------------------------------------------------

    def attention_lengths(self) -> None:
        """Add the lengths that attention needs: tokens so far less one for each row, and tokens so far."""
        ones = self.constant("one", np.array([1], dtype=np.int64))
        first = self.constant("first", np.array(1, dtype=np.int64))
        (count,) = self.node("ReduceSum", ["attention_mask", ones], ["mask.count"], keepdims=0)
        (before,) = self.node("Sub", [count, ones], ["mask.before"])
        self.node("Cast", [before], ["tokens_before"], to=INT32)
        (shape,) = self.node("Shape", ["attention_mask"], ["mask.shape"])
        (total,) = self.node("Gather", [shape, first], ["mask.total"], axis=0)
        self.node("Cast", [total], ["tokens_in_all"], to=INT32)

    def rotary_tables(self) -> None:
        """Add cosines and sines [window, head size / 2] of Su et al., *RoFormer* (arXiv 2104.09864), section 3.2.2."""
        cosines, sines = rotations(self.shape, self._window)
        self.constant("rotary.cos", cosines[:, 0])
        self.constant("rotary.sin", sines[:, 0])

    def embed(self, table: NDArray[np.float32], gain: NDArray[np.float32]) -> tuple[str, str]:
        """Add the tokens' rows of the embedding, and their norm; return the names of both."""
        precision = self.precisions.table
        rows = quantize(table, precision)
        self.quantized_constants("table", rows)
        width = self.constant("table.shape", np.array([len(table), -1], dtype=np.int64))
        (flat,) = self.node("Reshape", ["table.levels", width], ["table.flat"])
        inputs = [flat, "input_ids", "table.scales", *(["table.zeros"] if precision.zero_points else [])]
        settings = {"bits": precision.bits, "block_size": precision.block, "gather_axis": 0, "quantize_axis": 1}
        (stream,) = self.node("GatherBlockQuantized", inputs, ["embedded"], MICROSOFT, **settings)
        weights = self.constant("layers.0.before_attention.gain", gain)
        (normed,) = self.node(
            "SimplifiedLayerNormalization",
            [stream, weights],
            ["layers.0.normed"],
            epsilon=self.shape.epsilon,
            axis=-1,
            stash_type=1,
        )
        return stream, normed

    def attention(self, layer: int, normed: str, weight: Weights) -> str:
        """Add grouped-query attention over everything read so far: Ainslie et al., arXiv 2305.13245."""
        shape, name = self.shape, f"layers.{layer}.attention"
        projections = [weight(weight_name(layer, f"self_attn.{part}_proj")) for part in "qkv"]
        joined = self.matmul(f"{name}.qkv", normed, np.concatenate(projections))
        outputs = [f"{name}.heads", f"present.{layer}.key", f"present.{layer}.value"]
        kept = [f"past_key_values.{layer}.{part}" for part in ("key", "value")]
        inputs = [joined, "", "", *kept, "tokens_before", "tokens_in_all", "rotary.cos", "rotary.sin"]
        (heads, *_) = self.node(
            "GroupQueryAttention",
            inputs,
            outputs,
            MICROSOFT,
            num_heads=shape.heads,
            kv_num_heads=shape.kv_heads,
            scale=shape.head_size**-0.5,
            do_rotary=1,
            rotary_interleaved=0,
        )
        return self.matmul(f"{name}.out", heads, weight(weight_name(layer, "self_attn.o_proj")))

    def feed_forward(self, layer: int, normed: str, weight: Weights) -> str:
        """Add SwiGLU: Shazeer, *GLU Variants Improve Transformer* (arXiv 2002.05202), equation 6."""
        name = f"layers.{layer}.feed_forward"
        gate = self.matmul(f"{name}.gate", normed, weight(weight_name(layer, "mlp.gate_proj")))
        up = self.matmul(f"{name}.up", normed, weight(weight_name(layer, "mlp.up_proj")))
        (share,) = self.node("Sigmoid", [gate], [f"{name}.share"])
        (opened,) = self.node("Mul", [gate, share], [f"{name}.opened"])
        (inner,) = self.node("Mul", [opened, up], [f"{name}.inner"])
        return self.matmul(f"{name}.down", inner, weight(weight_name(layer, "mlp.down_proj")))

    def norm(self, name: str, stream: str, change: str, gain: NDArray[np.float32]) -> tuple[str, str]:
        """Add a change to the stream, and norm it by its root mean square: Zhang and Sennrich, arXiv 1910.07467."""
        weights = self.constant(f"{name}.gain", gain)
        outputs = [f"{name}.normed", "", "", f"{name}.stream"]
        self.node(
            "SkipSimplifiedLayerNormalization",
            [stream, change, weights],
            outputs,
            MICROSOFT,
            epsilon=self.shape.epsilon,
        )
        return outputs[3], outputs[0]

    def logits(self, normed: str) -> None:
        """Add the logits at the pass's positions, by default the last token's."""
        positions = self.constant(POSITIONS, np.array([-1], dtype=np.int64))
        (kept,) = self.node("Gather", [normed, positions], ["kept_tokens"], axis=1)
        self.multiply(
            "output", kept, "table", (self.shape.vocabulary, self.shape.width), self.precisions.table, "logits"
        )

    def ends(self) -> tuple[list[Any], list[Any]]:
        """Return the graph's inputs and outputs, by onnxruntime-genai's names."""
        shape, whole, single = self.shape, INT64, FLOAT
        inputs = [
            messages.value_info("input_ids", whole, ["batch", "tokens"]),
            messages.value_info("attention_mask", whole, ["batch", "total"]),
            messages.value_info(POSITIONS, whole, ["rows"]),  # a constant, too: what it is by default
        ]
        outputs = [messages.value_info("logits", single, ["batch", "rows", shape.vocabulary])]
        for layer in range(shape.layers):
            for part in ("key", "value"):
                past: list[int | str] = ["batch", shape.kv_heads, "past", shape.head_size]
                total: list[int | str] = ["batch", shape.kv_heads, "total", shape.head_size]
                inputs.append(messages.value_info(f"past_key_values.{layer}.{part}", single, past))
                outputs.append(messages.value_info(f"present.{layer}.{part}", single, total))
        return inputs, outputs

    # --- pieces ---------------------------------------------------------------------------------------------------

    def matmul(self, name: str, tokens: str, matrix: NDArray[np.float32]) -> str:
        """Add the product tokens @ matrix.T, and round the matrix [N, K]."""
        if self.precisions.layers is None:
            return self.multiply_channels(name, tokens, by_channels(matrix))
        self.quantized_constants(name, quantize(matrix, self.precisions.layers))
        size: tuple[int, int] = matrix.shape
        return self.multiply(name, tokens, name, size, self.precisions.layers, f"{name}.product")

    def multiply_channels(self, name: str, tokens: str, matrix: Channels) -> str:
        """Add the product tokens @ matrix.T in integers, scaled back by token and channel."""
        levels, steps = self.rounded(tokens)
        inputs = [levels, self.constant(f"{name}.levels", matrix.levels), "middle_level"]
        (sums,) = self.node("MatMulInteger", inputs, [f"{name}.sums"])
        (numbers,) = self.node("Cast", [sums], [f"{name}.numbers"], to=FLOAT)
        (scales,) = self.node("Mul", [steps, self.constant(f"{name}.scales", matrix.scales)], [f"{name}.steps"])
        (product,) = self.node("Mul", [numbers, scales], [f"{name}.product"])
        return product

    def rounded(self, tokens: str) -> tuple[str, str]:
        """Add activations [B, T, K] in levels of 8 bits, and the step [B, T, 1] of each token; return both names."""
        if not self._rounded:
            self.constant("last_axis", np.array([-1], dtype=np.int64))
            self.constant("middle_level", np.array(MIDDLE_LEVEL, dtype=np.uint8))
            self.constant("middle", np.array(MIDDLE_LEVEL, dtype=np.float32))
            self.constant("one_level", np.array(1 / (MIDDLE_LEVEL - 1), dtype=np.float32))
        if tokens not in self._rounded:
            (sizes,) = self.node("Abs", [tokens], [f"{tokens}.sizes"])
            (largest,) = self.node("ReduceMax", [sizes, "last_axis"], [f"{tokens}.largest"], keepdims=1)
            (steps,) = self.node("Mul", [largest, "one_level"], [f"{tokens}.steps"])
            (parts,) = self.node("Div", [tokens, steps], [f"{tokens}.in_steps"])
            (whole,) = self.node("Round", [parts], [f"{tokens}.whole"])
            (shifted,) = self.node("Add", [whole, "middle"], [f"{tokens}.shifted"])
            (levels,) = self.node("Cast", [shifted], [f"{tokens}.levels"], to=UINT8)
            self._rounded[tokens] = levels, steps
        return self._rounded[tokens]

    def multiply(
        self, name: str, tokens: str, stored: str, size: tuple[int, int], precision: Precision, product: str
    ) -> str:
        """Add the product tokens @ matrix.T of a matrix [N, K] among the constants."""
        inputs = [
            tokens,
            f"{stored}.levels",
            f"{stored}.scales",
            *([f"{stored}.zeros"] if precision.zero_points else []),
        ]
        count, width = size
        settings = {"K": width, "N": count, "bits": precision.bits, "block_size": precision.block}
        self.node("MatMulNBits", inputs, [product], MICROSOFT, **settings, accuracy_level=INT8_ACTIVATIONS)
        return product

    def quantized_constants(self, name: str, matrix: Quantized) -> None:
        self.constant(f"{name}.levels", matrix.packed)
        self.constant(f"{name}.scales", matrix.scales)
        if matrix.zero_points is not None:
            self.constant(f"{name}.zeros", matrix.zero_points)

    def constant(self, name: str, value: NDArray[Any]) -> str:
        """Add a constant tensor and return its name."""
        self.constants.append(messages.tensor(name, value))
        return name

    def node(
        self, kind: str, inputs: Sequence[str], outputs: list[str], domain: str = "", **settings: Any
    ) -> list[str]:
        """Add an operator and return its outputs' names. An empty name leaves out an input or output."""
        self.nodes.append(messages.node(kind, inputs, outputs, domain, settings))
        return outputs
