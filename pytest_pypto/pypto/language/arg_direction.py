"""Directions of arguments at a call, under the names that printed programs use (`pl.adir.input`)."""

from __future__ import annotations

from ..ir.enums import ArgDirection

input = ArgDirection.Input
output = ArgDirection.Output
output_existing = ArgDirection.OutputExisting
inout = ArgDirection.InOut
no_dep = ArgDirection.NoDep
scalar = ArgDirection.Scalar

NAME_TO_DIRECTION: dict[str, ArgDirection] = {
    "input": input,
    "output": output,
    "output_existing": output_existing,
    "inout": inout,
    "no_dep": no_dep,
    "scalar": scalar,
}
DIRECTION_TO_NAME: dict[ArgDirection, str] = {d: n for n, d in NAME_TO_DIRECTION.items()}

__all__ = [
    "DIRECTION_TO_NAME",
    "NAME_TO_DIRECTION",
    "ArgDirection",
    "inout",
    "input",
    "no_dep",
    "output",
    "output_existing",
    "scalar",
]
