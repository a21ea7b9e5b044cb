"""Paths of the vendor's instruction headers, which only builds for hardware need."""

from __future__ import annotations

import os
from pathlib import Path

_MISSING = (
    "the PTO instruction headers are not part of the embedded toolchain, which runs .pto text on its simulator; "
    "set PTO_ISA_ROOT to a checkout of them when a tool of yours needs the path"
)


def ensure_pto_isa_root() -> str:
    """The checkout that `PTO_ISA_ROOT` names.

    Raises:
        RuntimeError: the variable is not set to a directory.
    """
    root = os.environ.get("PTO_ISA_ROOT", "")
    if not root or not Path(root).is_dir():
        raise RuntimeError(_MISSING)
    return root


def pto_isa_include_dir() -> str:
    """Its include directory; errors as for `ensure_pto_isa_root`."""
    return str(Path(ensure_pto_isa_root()) / "include")
