"""From a finished program to the artifact directory."""

from __future__ import annotations

from .artifact import artifact_files, write_artifact
from .errors import CodegenError, PartialCodegenError
from .options import CodegenOptions

__all__ = ["CodegenError", "CodegenOptions", "PartialCodegenError", "artifact_files", "write_artifact"]
