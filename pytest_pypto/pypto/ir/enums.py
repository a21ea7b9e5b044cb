"""Enumerations of the language and the IR; member values are part of the public interface."""

from __future__ import annotations

from enum import Enum, IntEnum


class MemorySpace(Enum):
    """Where a tensor or tile lives."""

    DDR = 0
    Vec = 1
    Mat = 2
    Left = 3
    Right = 4
    Acc = 5
    Bias = 6
    ScalarLocal = 7
    LeftScale = 8
    RightScale = 9


Mem = MemorySpace


class TensorLayout(Enum):
    """Storage order of a tensor in global memory."""

    ND = 0
    DN = 1
    NZ = 2
    MX_A_ZZ = 3
    MX_B_NN = 4


class TileLayout(Enum):
    """Order of blocks (blayout) or inside a block (slayout) of a tile."""

    none_box = 0
    row_major = 1
    col_major = 2


class PadValue(Enum):
    """What a fill writes outside the valid region."""

    null = 0
    zero = 1
    max = 2
    min = 3


class CompactMode(Enum):
    """Whether the fractal pitch follows the valid rows."""

    null = 0
    normal = 1


class FunctionType(Enum):
    """Kind of a function, which decides where it runs."""

    Opaque = 0
    Orchestration = 1
    InCore = 2
    AIC = 3
    AIV = 4
    Group = 5
    Spmd = 6
    Inline = 7
    Graph = 8


class Level(Enum):
    """Level of the machine hierarchy."""

    AIV = 0
    AIC = 1
    CORE_GROUP = 2
    CHIP_DIE = 3
    CHIP = 4
    HOST = 5
    CLUSTER_0 = 6
    CLUSTER_1 = 7
    CLUSTER_2 = 8
    GLOBAL = 9
    L2CACHE = 3
    PROCESSOR = 4
    UMA = 4
    NODE = 5
    POD = 6
    CLOS1 = 7
    CLOS2 = 8


class Role(Enum):
    """Whether a function drives others or does the work."""

    Orchestrator = 0
    SubWorker = 1


class SplitMode(Enum):
    """How a tile that crosses cores is divided between the two vector lanes."""

    NONE = 0
    UP_DOWN = 1
    LEFT_RIGHT = 2


class ForKind(Enum):
    """Kind of a counted loop."""

    Sequential = 0
    Parallel = 1
    Unroll = 2
    Pipeline = 3


class ScopeMode(Enum):
    """Dependency mode of a runtime scope."""

    AUTO = 0
    MANUAL = 1


class PipeType(IntEnum):
    """Hardware queue of a core."""

    MTE1 = 0
    MTE2 = 1
    MTE3 = 2
    M = 3
    V = 4
    S = 5
    FIX = 6
    ALL = 7


class AtomicType(IntEnum):
    """How a store combines with what is in memory."""

    None_ = 0
    Add = 1


class CoreType(IntEnum):
    """Kind of a core."""

    CUBE = 0
    VECTOR = 1


class ScopeKind(Enum):
    """Kind of a scope statement (1 is unused)."""

    InCore = 0
    Cluster = 2
    Hierarchy = 3
    Spmd = 4
    Runtime = 5
    CommDomain = 6
    SplitAiv = 7


class ParamDirection(Enum):
    """Direction of a function parameter."""

    In = 0
    Out = 1
    InOut = 2


class ArgDirection(Enum):
    """Direction of an argument at one call."""

    Input = 0
    Output = 1
    InOut = 2
    OutputExisting = 3
    NoDep = 4
    Scalar = 5


class InlineLanguage(Enum):
    """Language of an inline text statement."""

    Python = 0


class MaskPattern(IntEnum):
    """Columns that a masked gather keeps: column 0 is the rightmost digit, repeated along the row."""

    P0101 = 1
    P1010 = 2
    P0001 = 3
    P0010 = 4
    P0100 = 5
    P1000 = 6
    P1111 = 7


class NotifyOp(IntEnum):
    """How a notification changes a signal."""

    AtomicAdd = 0
    Set = 1


class WaitCmp(IntEnum):
    """How a wait compares a signal."""

    Eq = 0
    Ge = 1


class ReduceOp(IntEnum):
    """Reduction of a collective."""

    Sum = 0
    Max = 1
    Min = 2
    Prod = 3


CAST_MODES: tuple[str, ...] = ("none", "rint", "round", "floor", "ceil", "trunc", "odd")
"""Rounding modes of a cast; the index is the stored integer."""

_LINQU = {Level.AIV: 0, Level.AIC: 0, Level.CORE_GROUP: 0, Level.CHIP_DIE: 1, Level.CHIP: 2, Level.HOST: 3}
_LINQU |= {Level.CLUSTER_0: 4, Level.CLUSTER_1: 5, Level.CLUSTER_2: 6, Level.GLOBAL: 7}


def level_to_linqu_level(level: Level) -> int:
    """Coarse level number: 0 core group and below, 1 die, 2 chip, 3 host, 4-6 clusters, 7 global."""
    return _LINQU[level]


def is_incore_type(func_type: FunctionType) -> bool:
    """True for functions that run on a core: InCore, AIC, AIV."""
    return func_type in (FunctionType.InCore, FunctionType.AIC, FunctionType.AIV)
