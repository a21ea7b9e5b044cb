"""The oracle: `torch_codegen` makes Python of IR, `validate_pass_ir_codegen_results` checks pass dumps with it.

Nothing here imports torch until a script runs.
"""

from __future__ import annotations

from . import torch_codegen as _module  # the submodule first: importing it later would hide the function
from .errors import UnsupportedOpError
from .runner import run_oracle
from .validate import validate_pass_ir_codegen_results

torch_codegen = _module.torch_codegen

__all__ = ["UnsupportedOpError", "run_oracle", "torch_codegen", "validate_pass_ir_codegen_results"]
