"""Names of the operations that the reader accepts, with the number of operands of the `ins(...) outs(...)` ones."""

from __future__ import annotations

from collections.abc import Mapping


def _words(text: str) -> list[str]:
    return text.split()


ARITH_BINARY = frozenset(
    _words(
        "addi subi muli divsi divui remsi remui floordivsi ceildivsi minsi maxsi minui maxui andi ori xori "
        "shli shrsi shrui addf subf mulf divf remf minimumf maximumf minnumf maxnumf"
    )
)
ARITH_CAST = frozenset(
    _words("index_cast index_castui trunci extsi extui sitofp uitofp fptosi fptoui extf truncf bitcast")
)
CMPI = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
CMPF = ("oeq", "one", "olt", "ole", "ogt", "oge", "ueq", "une", "ult", "ule", "ugt", "uge", "ord", "uno")

_BINARY = "tadd tsub tmul tdiv tmax tmin tfmod tand tor tshl tshr tpartadd tpartmul tpartmax tpartmin"
_SCALAR = "tadds tsubs tmuls tdivs tmaxs tmins tfmods tlrelu tands tors tshls tshrs"
_UNARY = "texp tlog tsqrt trecip tneg tabs trelu tnot"
_EXPAND = " ".join(f"t{a}expand{o}" for a in ("row", "col") for o in _words("add sub mul div max min expdif"))
_REDUCE = "trowsum trowmax trowmin trowprod trowargmax trowargmin tcolargmax tcolargmin"

INS_OUTS: Mapping[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    **dict.fromkeys(_words(_BINARY), ((2,), (1,))),
    **dict.fromkeys(_words(_SCALAR), ((2,), (1,))),
    **dict.fromkeys(_words(_UNARY), ((1,), (1,))),
    **dict.fromkeys(_words(_EXPAND), ((2,), (1,))),
    **dict.fromkeys(_words(_REDUCE), ((2,), (1,))),
    **dict.fromkeys(_words("txor txors trem trems tprelu taddc tsubc taddsc tsubsc"), ((3,), (1,))),
    "trowexpandadd": ((2, 3), (1,)),
    "trsqrt": ((1, 2), (1,)),
    "tcolsum": ((1, 2), (1,)),
    **dict.fromkeys(_words("tcolmax tcolmin tcolprod trowexpand tcolexpand texpands tcvt"), ((1,), (1,))),
    "tcmp": ((2,), (1,)),
    "tcmps": ((2,), (1,)),
    "tsel": ((4,), (1,)),
    "tsels": ((4,), (1,)),
    "tci": ((1,), (1,)),
    "trandom": ((6,), (1,)),
    "tload": ((1,), (1,)),
    "tstore": ((1,), (1,)),
    "tmov": ((1,), (1,)),
    "textract": ((3,), (1,)),
    "tinsert": ((3,), (1,)),
    "ttrans": ((1, 2), (1,)),
    "tconcat": ((2,), (1,)),
    "tfillpad": ((1,), (1,)),
    "tfillpad_expand": ((1,), (1,)),
    "tgather": ((1, 3), (1, 2)),
    "tgatherb": ((2,), (1,)),
    "tscatter": ((1, 2), (1,)),
    "tsort32": ((2,), (1,)),
    "tmrgsort": ((2, 3, 4, 5), (1, 2)),
    "tget_scale_addr": ((1, 2), (1,)),
    "mgather": ((2, 3), (1,)),
    "mscatter": ((2,), (1,)),
    "tmatmul": ((2,), (1,)),
    "tmatmul.acc": ((3,), (1,)),
    "tmatmul.bias": ((3,), (1,)),
    "tgemv": ((2,), (1,)),
    "tgemv.acc": ((3,), (1,)),
    "tgemv.bias": ((3,), (1,)),
    "tmatmul.mx": ((4,), (1,)),
    "tmatmul.mx.acc": ((5,), (1,)),
    "tmatmul.mx.bias": ((5,), (1,)),
}
"""Operand counts (ins, outs) of `pto.<name> ins(...) outs(...)`."""

QUEUES = ("MTE1", "MTE2", "MTE3", "M", "V", "S", "FIX", "ALL")
"""Queues of a core, written `<PIPE_V>`."""
MOST_EVENTS = 16

OTHER = _words(
    "arith.constant arith.cmpi arith.cmpf arith.select arith.negf builtin.unrealized_conversion_cast scf.for scf.if "
    "scf.while pto.make_tensor_view pto.partition_view pto.alloc_tile pto.alloc_multi_tile pto.multi_tile_get "
    "pto.subview pto.treshape pto.set_validshape pto.tgetval pto.tsetval pto.load_scalar pto.store_scalar pto.addptr "
    "pto.declare_local_array pto.local_array_set pto.local_array_get pto.reserve_buffer pto.import_reserved_buffer "
    "pto.aic_initialize_pipe pto.aiv_initialize_pipe pto.tpush_to_aiv pto.tpush_to_aic pto.tpop_from_aic "
    "pto.tpop_from_aiv pto.tfree_from_aic pto.tfree_from_aiv pto.syncall pto.barrier pto.fence.barrier_all "
    "pto.cmo.cacheinvalid pto.sync.set pto.sync.wait pto.set_flag pto.wait_flag pto.set_ffts "
    "pto.ttri return"
)


def all_names() -> list[str]:
    """Every operation name, sorted."""
    arith = [f"arith.{n}" for n in ARITH_BINARY | ARITH_CAST]
    return sorted([*arith, *(f"pto.{n}" for n in INS_OUTS), *OTHER])
