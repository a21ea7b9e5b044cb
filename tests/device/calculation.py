"""One kernel around one operation: load the operands, compute, store the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pytest_pypto.pypto.device import DeviceResult
from pytest_pypto.pypto.device.machine.dtypes import NAMES

from .texts import Kernel, kinds, run, single

Array = np.ndarray[Any, Any]


class Calc:
    """Tile `tx` for each operand `x`, and `d` for the result, already allocated; call it with the operands."""

    def __init__(self, folder: Path, body: Callable[[Kernel], None], arch: str = "a2a3") -> None:
        self.folder, self.body, self.arch = folder, body, arch

    def __call__(
        self,
        out: Array,
        *,
        valid: dict[str, tuple[int, int]] | None = None,
        stored: tuple[int, int] | None = None,
        scalars: Sequence[tuple[str, str, Any]] = (),
        checked: bool = True,
        **operands: Array,
    ) -> Array:
        """Run; `out` is filled and returned. `valid` limits operands (and `d`), `stored` what is written to `out`."""
        result = self.run(out, valid or {}, stored or (out.shape[0], out.shape[1]), scalars, operands)
        assert not checked or kinds(result) == [], [str(f) for f in result.findings]
        return out

    def run(
        self,
        out: Array,
        valid: dict[str, tuple[int, int]],
        stored: tuple[int, int],
        scalars: Sequence[tuple[str, str, Any]],
        operands: dict[str, Array],
    ) -> DeviceResult:
        """Build the artifact and run it with every sanitizer."""
        tensors = [(n, NAMES[x.dtype], x.shape) for n, x in (operands | {"o": out}).items()]
        k = Kernel("k", tensors, [(n, t) for n, t, _ in scalars])
        address = 0
        for name, dtype, shape in [*tensors[:-1], ("", *tensors[-1][1:])]:
            tile = f"t{name}" if name else "d"
            k.tile(tile, *shape, address, dtype=dtype, valid=valid.get(name or "d"))  # type: ignore[misc, arg-type]
            address += -(-int(np.prod(shape)) * 8 // 512) * 512
        for name, x in operands.items():
            k.load(name, f"t{name}", (0, 0), valid.get(name, x.shape))
        k.scratch = address  # type: ignore[attr-defined]
        self.body(k)
        k.store("d", "o", (0, 0), stored)
        args = [*operands.values(), out, *(v for _, _, v in scalars)]
        return run(single(self.folder, k, ["o"], arch=self.arch), *args)


def scratch(k: Kernel, rows: int, cols: int, dtype: str = "f32", name: str = "s") -> str:
    """A scratch tile behind the operands."""
    k.tile(name, rows, cols, k.scratch, dtype=dtype)  # type: ignore[attr-defined]
    k.scratch += 16384  # type: ignore[attr-defined]
    return name
