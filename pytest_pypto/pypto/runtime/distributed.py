"""Several chips under one host: the configuration object, and the refusal of everything else."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NoReturn

from ..backend import BackendType
from ..ir.program import Program

_REFUSED = (
    "{what} drives several chips, which the embedded runtime does not simulate; "
    "compile and run the chip-level orchestration on its own, or use an installed PyPTO with its runtime"
)


def refuse(what: str) -> NoReturn:
    """Raise the error for a distributed construct.

    Raises:
        NotImplementedError: always; names the construct and what to do.
    """
    raise NotImplementedError(_REFUSED.format(what=what))


@dataclass
class DistributedConfig:
    """Which devices a host program drives; rank r is `device_ids[r]`.

    Raises:
        ValueError: empty, negative or repeated device ids, a negative number of sub-workers, or one AICPU thread.
    """

    __test__: ClassVar[bool] = False

    device_ids: list[int] = field(default_factory=lambda: [0])
    num_sub_workers: int = 0
    runtime: str = "tensormap_and_ringbuffer"
    aicpu_thread_num: int = 0

    def __post_init__(self) -> None:
        if not self.device_ids:
            raise ValueError("device_ids must not be empty")
        if any(isinstance(d, bool) or not isinstance(d, int) or d < 0 for d in self.device_ids):
            raise ValueError(f"device_ids must be non-negative device indices, got {self.device_ids!r}")
        if len(set(self.device_ids)) != len(self.device_ids):
            raise ValueError(f"device_ids must be distinct, got {self.device_ids!r}")
        if self.num_sub_workers < 0:
            raise ValueError(f"num_sub_workers must be non-negative, got {self.num_sub_workers}")
        if self.aicpu_thread_num < 0 or self.aicpu_thread_num == 1:
            raise ValueError(f"aicpu_thread_num must be 0 (default) or at least 2, got {self.aicpu_thread_num}")


class DistributedCompiledProgram:
    """The artifact of a program above chip level. The embedded compiler does not build such artifacts."""

    __test__ = False

    def __init__(self, program: Program | None, output_dir: str, **options: Any) -> None:
        refuse(f"the program '{program.name}'" if program is not None else f"the artifact {output_dir}")

    @classmethod
    def from_dir(
        cls,
        output_dir: str | os.PathLike[str],
        *,
        platform: str | None = None,
        backend_type: BackendType | None = None,
        distributed_config: DistributedConfig | None = None,
    ) -> DistributedCompiledProgram:
        """Open a distributed artifact.

        Raises:
            FileNotFoundError: no `distributed_meta.json` in the directory.
            NotImplementedError: there is one; it cannot be dispatched here.
        """
        meta = os.path.join(os.fspath(output_dir), "distributed_meta.json")
        if not os.path.isfile(meta):
            raise FileNotFoundError(
                f"{os.fspath(output_dir)} holds no distributed_meta.json, so it is no distributed artifact; "
                "a single-chip artifact is opened with CompiledProgram.from_dir"
            )
        refuse(f"the artifact {os.fspath(output_dir)}")

    def prepare(self, config: object = None, **options: Any) -> NoReturn:
        """Start workers, one per chip.

        Raises:
            NotImplementedError: always.
        """
        refuse("prepare()")


class DistributedWorker:
    """Workers of several chips.

    Raises:
        ValueError: no program. NotImplementedError: always otherwise.
    """

    def __init__(self, compiled: object, config: object = None, **options: Any) -> None:
        if isinstance(compiled, Sequence) and not isinstance(compiled, str) and not compiled:
            raise ValueError("DistributedWorker requires at least one compiled program")
        refuse("DistributedWorker")


class DistributedRunHandle:
    """A dispatch of a `DistributedWorker` that is still running; never made here."""

    def __init__(self) -> None:
        refuse("DistributedRunHandle")
