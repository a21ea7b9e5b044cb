"""What a golden returns is compared with what the program returns, by one rule in every layer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pypto.language as pl
import pytest

from pytest_pypto import CaseError, CheckFailed, assert_device, assert_oracle, assert_passes, check, make_inputs
from pytest_pypto.harness.cache import compile_recorded
from pytest_pypto.harness.returns import returned_names
from tests.harness import programs

T = pl.Tensor[[8, 16], pl.FP32]


@pl.program
class Second:
    """Fills both outputs and returns the second."""

    @pl.function
    def main(self, x: T, o1: pl.Out[T], o2: pl.Out[T]) -> T:
        with pl.at(level=pl.Level.CORE_GROUP):
            o1 = pl.assemble(o1, pl.add(x, 1.0), [0, 0])
            o2 = pl.assemble(o2, pl.add(x, 2.0), [0, 0])
        return o2


@pl.program
class Fresh:
    """The output is x + 1, the returned tensor x + 2."""

    @pl.function
    def main(self, x: T, out: pl.Out[T]) -> T:
        y = pl.create_tensor([8, 16], dtype=pl.FP32)
        with pl.at(level=pl.Level.CORE_GROUP):
            out = pl.assemble(out, pl.add(x, 1.0), [0, 0])
            y = pl.assemble(y, pl.add(x, 2.0), [0, 0])
        return y


@pl.program
class Renamed:
    """Returns the second output under another name, a tensor of its own, and the first output."""

    @pl.function
    def main(self, x: T, o1: pl.Out[T], o2: pl.Out[T]):
        y = pl.create_tensor([8, 16], dtype=pl.FP32)
        with pl.at(level=pl.Level.CORE_GROUP):
            o1 = pl.assemble(o1, pl.add(x, 1.0), [0, 0])
            z = pl.assemble(o2, pl.add(x, 2.0), [0, 0])
            y = pl.assemble(y, pl.add(x, 3.0), [0, 0])
        return z, y, o1


@pl.program
class Swapped:
    """Returns both outputs, the second under another name first."""

    @pl.function
    def main(self, x: T, o1: pl.Out[T], o2: pl.Out[T]):
        with pl.at(level=pl.Level.CORE_GROUP):
            o1 = pl.assemble(o1, pl.add(x, 1.0), [0, 0])
            z = pl.assemble(o2, pl.add(x, 2.0), [0, 0])
        return z, o1


@pl.program
class Called:
    """Returns what a kernel gives back."""

    @pl.function(type=pl.FunctionType.InCore)
    def kernel(self, x: T, o: pl.Out[T]) -> T:
        o = pl.store(pl.add(pl.load(x, [0, 0], [8, 16]), 2.0), [0, 0], o)
        return o

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: T, out: pl.Out[T]) -> T:
        y = self.kernel(x, out)
        return y


@pl.program
class Nothing:
    """Returns nothing."""

    @pl.function
    def main(self, x: T, out: pl.Out[T]):
        with pl.at(level=pl.Level.CORE_GROUP):
            out = pl.assemble(out, pl.add(x, 2.0), [0, 0])


NAMES = [
    (Second, ("o2",)),
    (Fresh, ("",)),
    (Renamed, ("o2", "", "o1")),
    (Swapped, ("o2", "o1")),
    (Called, ("out",)),
    (Nothing, ()),
    (programs.mixed(), ("c",)),
    (programs.two_outputs(), ("twice", "more")),
]


@pytest.mark.parametrize(("program", "names"), NAMES, ids=[p.name for p, _ in NAMES])
def test_which_parameters_are_returned(program: Any, names: tuple[str, ...]) -> None:
    assert returned_names(program) == names


def plus(*steps: float) -> Any:
    return lambda t: tuple(t["x"] + step for step in steps) if len(steps) > 1 else t["x"] + steps[0]


VALUES = [
    (Second, (2,), True),
    (Second, (1,), False),
    (Fresh, (2,), True),
    (Fresh, (1,), False),
    (Renamed, (2, 3, 1), True),
    (Renamed, (2, 1, 3), False),
    (Swapped, (2, 1), True),
    (Swapped, (1, 2), False),
    (Called, (2,), True),
    (Called, (1,), False),
]


@pytest.mark.parametrize("layer", [assert_oracle, assert_passes, assert_device])
@pytest.mark.parametrize(("program", "steps", "good"), VALUES, ids=[f"{p.name}-{s}" for p, s, _ in VALUES])
def test_returned_values_in_every_layer(
    layer: Any, program: Any, steps: tuple[float, ...], good: bool, tmp_path: Path
) -> None:
    made = compile_recorded(program, {"platform": "a2a3sim", "output_dir": str(tmp_path), "skip_ptoas": True})
    if good:
        layer(made, make_inputs(made), plus(*steps))
    else:
        with pytest.raises(CheckFailed):
            layer(made, make_inputs(made), plus(*steps))


COUNTS = [
    (Second, (1, 2), r"returns 2 values, the program returns 1 value \(o2\); .*'o1', 'o2'"),
    (Swapped, (1,), r"returns 1 value, the program returns 2 values \(o2, o1\)"),
    (Renamed, (1, 2), r"the program returns 3 values \(o2, a value of its own, o1\)"),
    (Nothing, (2,), "returns 1 value, the program returns nothing; return as many, or write into the output tensors"),
]


@pytest.mark.parametrize("layer", [assert_oracle, assert_passes, assert_device])
@pytest.mark.parametrize(("program", "steps", "message"), COUNTS, ids=[p.name for p, _, _ in COUNTS])
def test_another_number_of_values(
    layer: Any, program: Any, steps: tuple[float, ...], message: str, tmp_path: Path
) -> None:
    made = compile_recorded(program, {"platform": "a2a3sim", "output_dir": str(tmp_path), "skip_ptoas": True})
    with pytest.raises(CaseError, match=message):
        layer(made, make_inputs(made), plus(*steps))


def test_outputs_that_are_neither_written_nor_returned_are_named(tmp_path: Path) -> None:
    made = compile_recorded(Second, {"platform": "a2a3sim", "output_dir": str(tmp_path), "skip_ptoas": True})
    assert check(made, make_inputs(made), plus(2)).not_compared == ("o1",)
    assert check(made, make_inputs(made), lambda t: {"o1": t["x"] + 1, "o2": t["x"] + 2}).not_compared == ()
