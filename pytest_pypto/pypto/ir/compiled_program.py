"""The artifact handle under its public import name, and the parameter records."""

from __future__ import annotations

from ..lazy import lazy_names
from .param_info import ParamInfo, output_indices, param_infos

__all__ = ["CompiledProgram", "ParamInfo", "output_indices", "param_infos"]  # noqa: F822  lazy names
_BASE = __name__.rsplit(".", 2)[0]
__getattr__, __dir__ = lazy_names(__name__, {f"{_BASE}.runtime.compiled": "CompiledProgram SubProgram"}, globals())
