"""The programs that several benchmarks measure: nine cross-core programs and the tail of a decoder layer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from measure import example


@dataclass(frozen=True)
class Case:
    """A program with its hand-written torch golden and inputs by name; `entry` is its host function."""

    name: str
    program: Any
    golden: Callable[[dict[str, Any]], None]
    inputs: dict[str, Any]
    entry: str = "main"

    def clones(self) -> dict[str, Any]:
        """Fresh inputs."""
        return {name: value.clone() for name, value in self.inputs.items()}


SHAPES: dict[str, dict[str, tuple[int, int]]] = {
    "V2C": {"a": (32, 32), "b": (32, 32), "out": (32, 32)},
    "C2V": {"a": (32, 64), "b": (64, 512), "c": (32, 512)},
    "BIDIR": {"a": (32, 64), "b": (64, 512), "c": (32, 512)},
}


def cases() -> Iterator[Case]:
    """The ten programs of the examples."""
    import pypto.language as pl
    import torch

    cross, qwen = example("test_cross_core"), example("test_qwen3_decode")
    g = torch.Generator().manual_seed(0)
    for direction, (build, golden) in cross.CASES.items():
        for split in pl.SplitMode:
            inputs = {name: torch.randn(shape, generator=g) for name, shape in SHAPES[direction].items()}
            yield Case(f"{direction}-{split.name}", build(split), golden, inputs)
    decode = qwen.decode_tail(pl.SplitMode.UP_DOWN)
    yield Case("decode tail", decode, qwen.reference, qwen.model_inputs(), "scope3")
