"""The IR types, under the module name users import."""

from __future__ import annotations

__all__ = [
    *("ArrayType", "DistributedTensorType", "PtrType", "ScalarType", "ShapedType", "TensorType", "TensorView"),
    *("TileType", "TileView", "TupleType", "Type", "UnknownType"),
]
