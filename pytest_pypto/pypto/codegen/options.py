"""What the caller of code generation may choose."""

from __future__ import annotations

import os
from dataclasses import dataclass

OFF = ("0", "false", "no", "off")


def source_locations_wanted(explicit: bool | None) -> bool:
    """Whether `.pto` operations carry source places: the argument, else `PYPTO_EMIT_PTO_LOC`, else yes."""
    if explicit is not None:
        return explicit
    return os.environ.get("PYPTO_EMIT_PTO_LOC", "1").strip().lower() not in OFF


@dataclass(frozen=True, slots=True)
class CodegenOptions:
    """Options of `write_artifact`.

    Attributes:
        emit_source_loc: put `loc("file":line:col)` behind each operation of the `.pto` text.
        baked_addresses: the memory planner chose addresses; False under the PTOAS planner, which leaves them open.
        compile_only: stop at `.pto` text, as `skip_ptoas=True` does (no `kernel_config.py`).
        runtime: wire name of the runtime the artifact is made for.
    """

    emit_source_loc: bool = True
    baked_addresses: bool = True
    compile_only: bool = True
    runtime: str = "tensormap_and_ringbuffer"
