"""Messages of an ONNX file, as far as our graphs need them, and their writer.

Numbers and types of the fields are those of onnx.proto (https://onnx.ai/onnx/repo-docs/IR.html), whose own package has
31 MB. The library protobuf, which onnxruntime brings, writes them.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

FLOAT, UINT8, INT8, INT32, INT64 = 1, 2, 3, 6, 7
"""Kinds of numbers in a tensor."""

KINDS = {"float32": FLOAT, "uint8": UINT8, "int8": INT8, "int32": INT32, "int64": INT64}

AN_INT, A_FLOAT, INTS = 2, 1, 7
"""Kinds of an operator's settings."""

EXTERNAL = 1
"""Data location of a tensor whose data are in another file."""

ALIGNMENT = 4096
"""Alignment in bytes of tensors in a file of weights, so that they can be mapped."""

MESSAGES: Mapping[str, Mapping[str, tuple[int, str]]] = {
    "Model": {
        "ir_version": (1, "int64"),
        "producer_name": (2, "string"),
        "graph": (7, "Graph"),
        "opset_import": (8, "Opset*"),
    },
    "Opset": {"domain": (1, "string"), "version": (2, "int64")},
    "Graph": {
        "node": (1, "Node*"),
        "name": (2, "string"),
        "initializer": (5, "Tensor*"),
        "input": (11, "ValueInfo*"),
        "output": (12, "ValueInfo*"),
    },
    "Node": {
        "input": (1, "string*"),
        "output": (2, "string*"),
        "name": (3, "string"),
        "op_type": (4, "string"),
        "attribute": (5, "Attribute*"),
        "domain": (7, "string"),
    },
    "Attribute": {
        "name": (1, "string"),
        "f": (2, "float"),
        "i": (3, "int64"),
        "ints": (8, "int64*"),
        "type": (20, "int32"),
    },
    "Tensor": {
        "dims": (1, "int64*"),
        "data_type": (2, "int32"),
        "name": (8, "string"),
        "raw_data": (9, "bytes"),
        "external_data": (13, "Entry*"),
        "data_location": (14, "int32"),
    },
    "Entry": {"key": (1, "string"), "value": (2, "string")},
    "ValueInfo": {"name": (1, "string"), "type": (2, "Type")},
    "Type": {"tensor_type": (1, "TensorType")},
    "TensorType": {"elem_type": (1, "int32"), "shape": (2, "Shape")},
    "Shape": {"dim": (1, "Dimension*")},
    "Dimension": {"dim_value": (1, "int64"), "dim_param": (2, "string")},
}
"""Fields of each message: number and type, with a star for a repeated field."""

PACKAGE = "fim_server.onnx"


@cache
def classes() -> dict[str, Any]:
    """Return the messages' classes. Raises ImportError where protobuf is not installed."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    field_type = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="fim_server/onnx.proto", package=PACKAGE, syntax="proto2")
    for message, fields in MESSAGES.items():
        described = file.message_type.add(name=message)
        for name, (number, kind) in fields.items():
            plain = kind.removesuffix("*")
            field = described.field.add(name=name, number=number)
            field.label = field_type.LABEL_REPEATED if plain != kind else field_type.LABEL_OPTIONAL
            if plain in MESSAGES:
                field.type, field.type_name = field_type.TYPE_MESSAGE, f".{PACKAGE}.{plain}"
            else:
                field.type = getattr(field_type, f"TYPE_{plain.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{name}")) for name in MESSAGES}


def make(message: str, **fields: Any) -> Any:
    """Make a message of :data:`MESSAGES`."""
    return classes()[message](**fields)


def tensor(name: str, values: NDArray[Any]) -> Any:
    """Make a constant tensor with its numbers inside. Raises KeyError for a kind that is not in :data:`KINDS`."""
    little = np.ascontiguousarray(values).astype(values.dtype.newbyteorder("<"), copy=False)
    return make("Tensor", dims=values.shape, data_type=KINDS[values.dtype.name], name=name, raw_data=little.tobytes())


def node(kind: str, inputs: Sequence[str], outputs: Sequence[str], domain: str, settings: Mapping[str, Any]) -> Any:
    """Make an operator named like its first output; settings are numbers and sequences of integers."""
    attributes = [attribute(name, value) for name, value in sorted(settings.items())]
    return make(
        "Node", input=inputs, output=outputs, name=outputs[0], op_type=kind, domain=domain, attribute=attributes
    )


def attribute(name: str, value: float | Sequence[int]) -> Any:
    if isinstance(value, int):
        return make("Attribute", name=name, i=value, type=AN_INT)
    if isinstance(value, float):
        return make("Attribute", name=name, f=value, type=A_FLOAT)
    return make("Attribute", name=name, ints=value, type=INTS)


def value_info(name: str, kind: int, sizes: Sequence[int | str]) -> Any:
    """Describe an input or output: a tensor of numbers of a kind. A variable size has a name."""
    dimensions = [make("Dimension", **{"dim_param" if isinstance(size, str) else "dim_value": size}) for size in sizes]
    shape = make("Shape", dim=dimensions)
    return make("ValueInfo", name=name, type=make("Type", tensor_type=make("TensorType", elem_type=kind, shape=shape)))


def save(model: Any, path: Path, weights_name: str, mapped_from: int) -> None:
    """Write a model; constants of at least ``mapped_from`` bytes go to the file ``weights_name`` beside it.

    The model then has these constants' places instead of their numbers.
    """
    with (path.parent / weights_name).open("wb") as weights:
        for constant in model.graph.initializer:
            length = len(constant.raw_data)
            if length < mapped_from:
                continue
            weights.write(b"\0" * (-weights.tell() % ALIGNMENT))
            place = {"location": weights_name, "offset": str(weights.tell()), "length": str(length)}
            weights.write(constant.raw_data)
            constant.ClearField("raw_data")
            constant.data_location = EXTERNAL
            constant.external_data.extend(make("Entry", key=key, value=value) for key, value in place.items())
    path.write_bytes(model.SerializeToString())
