"""Facts that differ between the architectures, as one frozen record per architecture.

Passes and code generation ask `current_handler()`; everything that depends on the processor is read from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ..ir.dtypes import DataType
from ..ir.enums import MemorySpace
from .kinds import BackendType
from .state import configured_type

VEC_ALIGN = 32
"""Alignment of every on-chip address, in bytes."""


@dataclass(frozen=True, slots=True)
class Handler:
    """One architecture.

    `capacity` gives bytes per memory space of one core; global memory is not listed, it has no limit.
    `casts` gives, per source type, the types one conversion instruction reaches.
    `paths` gives, per memory space, the spaces one copy instruction reaches.
    """

    backend_type: BackendType
    arch: str
    """`a2a3` or `a5`, as in `pto.target_arch`."""
    sim_platform: str
    ptoas_arch: str
    launch_setter: str
    """Name of the launch parameter that holds the number of blocks."""
    capacity: Mapping[MemorySpace, int]
    casts: Mapping[DataType, frozenset[DataType]]
    paths: Mapping[MemorySpace, frozenset[MemorySpace]]
    atomic_add_dtypes: frozenset[DataType]
    dies: int
    clusters_per_die: int
    gm_pipe_buffer: bool
    """Pipes between the cores go through a buffer in global memory, which is an argument of the kernels."""
    v2c_fractal_adaptation: bool
    """A tile is copied into fractal form before it is pushed to the cube core."""
    no_split_dual_aiv: bool
    """Both vector lanes run a mixed kernel that is not split; lane 1 only takes part in the handshakes."""
    runtime_subblock_bridge: bool
    low_precision_mat_scratch: bool
    local_slot_num: bool
    """Pipe set-up accepts a number of on-chip slots apart from the depth of the ring."""
    perf_hint_bytes: int
    """A load or store whose innermost axis is shorter gets a performance hint."""
    int32_acc_rows: int
    """Row multiple of an INT32 accumulator tile."""
    acc_store_dtypes: frozenset[DataType]

    @property
    def acc_rows(self) -> int:
        """Row multiple of an accumulator tile (not INT32)."""
        return 16

    def acc_row_multiple(self, dtype: DataType) -> int:
        """Rows of an accumulator tile are padded to a multiple of this in memory."""
        return self.int32_acc_rows if dtype is DataType.INT32 else self.acc_rows

    def limit(self, space: MemorySpace) -> int | None:
        """Capacity of `space` in bytes, or None when it has no limit of its own."""
        return self.capacity.get(space)

    @property
    def aic_count(self) -> int:
        """Cube cores of the chip."""
        return self.dies * self.clusters_per_die

    @property
    def aiv_count(self) -> int:
        """Vector cores of the chip."""
        return 2 * self.aic_count


_D, _M = DataType, MemorySpace


def _casts(text: str) -> Mapping[DataType, frozenset[DataType]]:
    """A table from lines `SOURCE: TARGET TARGET ...`."""
    rows: dict[DataType, frozenset[DataType]] = {}
    for line in text.split("\n"):
        source, _, targets = line.partition(":")
        if targets:
            rows[getattr(_D, source.strip())] = frozenset(getattr(_D, t) for t in targets.split())
    return MappingProxyType(rows)


_CASTS_910B = _casts(
    """FP32: FP16 BF16 INT16 INT32 INT64
    FP16: FP32 INT32 INT16 INT8 UINT8 INT4
    BF16: FP32 INT32
    INT16: FP16 FP32
    INT32: FP32 INT16 INT64 FP16
    INT64: FP32 INT32
    UINT8: FP16
    INT8: FP16
    INT4: FP16"""
)
_CASTS_950 = _casts(
    """FP32: FP16 BF16 INT16 INT32 INT64 FP8E4M3FN FP8E5M2 HF8
    FP16: FP32 INT32 INT16 INT8 UINT8 HF8
    BF16: FP32 INT32 FP16 FP4
    INT16: FP16 FP32 UINT8 UINT32 INT32
    INT32: FP32 INT16 INT64 UINT16 UINT8
    INT64: FP32 INT32
    UINT8: FP16 UINT16
    INT8: FP16 INT16 INT32
    UINT32: UINT8 UINT16 INT16
    FP8E4M3FN: FP32
    FP8E5M2: FP32
    HF8: FP32
    FP4: BF16"""
)


def _paths(rows: dict[MemorySpace, set[MemorySpace]]) -> Mapping[MemorySpace, frozenset[MemorySpace]]:
    return MappingProxyType({space: frozenset(targets) for space, targets in rows.items()})


_SHARED_CAPACITY = {_M.Mat: 512 * 1024, _M.Left: 64 * 1024, _M.Right: 64 * 1024}
_L0_ATOMIC = frozenset({_D.FP32, _D.FP16, _D.INT32, _D.INT16, _D.INT8})
_ACC_STORE = frozenset({_D.INT32, _D.FP32, _D.FP16, _D.BF16})

_ASCEND_910B = Handler(
    backend_type=BackendType.Ascend910B,
    arch="a2a3",
    sim_platform="a2a3sim",
    ptoas_arch="a3",
    launch_setter="set_block_num",
    capacity=MappingProxyType(_SHARED_CAPACITY | {_M.Vec: 184 * 1024, _M.Acc: 128 * 1024, _M.Bias: 1024}),
    casts=_CASTS_910B,
    paths=_paths(
        {
            _M.DDR: {_M.Vec, _M.Mat},
            _M.Vec: {_M.DDR, _M.Vec},
            _M.Mat: {_M.Left, _M.Right, _M.Bias},
            _M.Acc: {_M.Mat, _M.DDR},
        }
    ),
    atomic_add_dtypes=_L0_ATOMIC | {_D.BF16},
    dies=1,
    clusters_per_die=24,
    gm_pipe_buffer=True,
    v2c_fractal_adaptation=False,
    no_split_dual_aiv=True,
    runtime_subblock_bridge=True,
    low_precision_mat_scratch=True,
    local_slot_num=True,
    perf_hint_bytes=512,
    int32_acc_rows=32,
    acc_store_dtypes=_ACC_STORE,
)
_SCALES = {_M.LeftScale: 4096, _M.RightScale: 4096}
_ASCEND_950 = Handler(
    backend_type=BackendType.Ascend950,
    arch="a5",
    sim_platform="a5sim",
    ptoas_arch="a5",
    launch_setter="set_core_num",
    capacity=MappingProxyType(_SHARED_CAPACITY | {_M.Vec: 240 * 1024, _M.Acc: 256 * 1024, _M.Bias: 4096} | _SCALES),
    casts=_CASTS_950,
    paths=_paths(
        {
            _M.DDR: {_M.Vec, _M.Mat},
            _M.Vec: {_M.DDR, _M.Vec, _M.Mat},
            _M.Mat: {_M.Left, _M.Right, _M.Bias, _M.LeftScale, _M.RightScale},
            _M.Acc: {_M.Mat, _M.DDR, _M.Vec},
        }
    ),
    atomic_add_dtypes=_L0_ATOMIC,
    dies=2,
    clusters_per_die=18,
    gm_pipe_buffer=False,
    v2c_fractal_adaptation=True,
    no_split_dual_aiv=False,
    runtime_subblock_bridge=False,
    low_precision_mat_scratch=False,
    local_slot_num=False,
    perf_hint_bytes=128,
    int32_acc_rows=16,
    acc_store_dtypes=_ACC_STORE,
)
_HANDLERS = {h.backend_type: h for h in (_ASCEND_910B, _ASCEND_950)}


def handler_for(backend_type: BackendType) -> Handler:
    """The facts of one architecture.

    Raises:
        TypeError: not a `BackendType`.
    """
    if not isinstance(backend_type, BackendType):
        names = ", ".join(f"BackendType.{b.name}" for b in BackendType)
        raise TypeError(f"expected one of {names}, got {backend_type!r}")
    return _HANDLERS[backend_type]


def current_handler() -> Handler | None:
    """The facts of the selected architecture, or None when none is selected."""
    selected = configured_type()
    return None if selected is None else _HANDLERS[selected]


def require_handler(what: str) -> Handler:
    """The facts of the selected architecture.

    Raises:
        RuntimeError: none is selected; `what` says who needs it.
    """
    handler = current_handler()
    if handler is None:
        raise RuntimeError(
            f"{what} needs to know the architecture, and no backend is selected; call "
            "pypto.backend.set_backend_type(BackendType.Ascend910B) (or Ascend950) first, or compile with platform="
        )
    return handler
