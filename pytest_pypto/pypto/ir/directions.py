"""Argument directions as values, and calls that carry them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .enums import ArgDirection
from .expr import Call, Expr, Op
from .span import UNKNOWN, Span
from .types import Type

input = ArgDirection.Input
output = ArgDirection.Output
inout = ArgDirection.InOut
output_existing = ArgDirection.OutputExisting
no_dep = ArgDirection.NoDep
scalar = ArgDirection.Scalar
scalar_dir = ArgDirection.Scalar

DIRECTION_TO_NAME: dict[ArgDirection, str] = {
    input: "input",
    output: "output",
    output_existing: "output_existing",
    inout: "inout",
    no_dep: "no_dep",
    scalar: "scalar",
}
NAME_TO_DIRECTION: dict[str, ArgDirection] = {name: d for d, name in DIRECTION_TO_NAME.items()}


def make_call(
    op: Op,
    args: Sequence[Expr],
    *,
    directions: Sequence[ArgDirection] | None = None,
    kwargs: dict[str, Any] | None = None,
    type: Type | None = None,
    span: Span | None = None,
) -> Call:
    """A call with the direction of every argument.

    Raises:
        ValueError: not one direction per argument.
    """
    attrs: dict[str, Any] = {}
    if directions is not None:
        if len(directions) != len(args):
            raise ValueError(f"got {len(directions)} directions for {len(args)} arguments; give one per argument")
        attrs["arg_directions"] = list(directions)
    return Call(op, args, kwargs or {}, attrs, type, span or UNKNOWN)
