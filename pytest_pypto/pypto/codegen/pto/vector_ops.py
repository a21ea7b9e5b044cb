"""Operators that become one instruction: all operands in, one tile out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...ir.dtypes import DataType
from ...ir.enums import CAST_MODES
from ...ir.expr import Call, Expr, Var
from ...ir.types import TileType
from .emitter import Emitter, Handle, ScalarValue, tile_type
from .scalars import element_of
from .slices import materialised
from .tiles import operand

Inside = Callable[[Emitter, Call], str]


def _nothing(em: Emitter, call: Call) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Instruction:
    """How one operator is written.

    Attributes:
        mnemonic: instruction name without the `pto.` prefix.
        operands: IR operands in the order of `ins`; None means all.
        inside: attribute text behind the last operand name, inside `ins(...)`.
        after: attribute text behind `outs(...)`.
    """

    mnemonic: str
    operands: tuple[int, ...] | None = None
    inside: Inside = _nothing
    after: Inside = _nothing


def emit_instruction(em: Emitter, call: Call, target: Handle, spec: Instruction) -> None:
    """Write `pto.<mnemonic> ins(...) outs(...)`."""
    picked = call.args if spec.operands is None else tuple(call.args[i] for i in spec.operands if i < len(call.args))
    element = target_element(call)
    values = [_operand(em, call, a, element) for a in picked]
    if spec.mnemonic == "tmov" and values[0].name == target.name:
        return  # source and destination are one handle
    names = ", ".join(v.name for v in values)
    types = ", ".join(v.type_text for v in values)
    inside = spec.inside(em, call)
    em.line(
        f"pto.{spec.mnemonic} ins({names}{inside} : {types}) outs({target.name} : {target.type_text})"
        f"{spec.after(em, call)}",
        call.span,
    )


_WITH_ELEMENT = frozenset(
    {
        *("tile.adds", "tile.subs", "tile.muls", "tile.divs", "tile.maximums", "tile.minimums", "tile.fmods"),
        *("tile.rems", "tile.cmps", "tile.addsc", "tile.subsc", "tile.lrelu", "tile.expands"),
    }
)
"""Operators that combine each element with a scalar of the element's type."""


def _operand(em: Emitter, call: Call, arg: Expr, element: DataType | None) -> Handle | ScalarValue:
    """One operand; a scalar that meets floating-point elements is one itself."""
    floating = element is not None and element.is_float() and call.op.name in _WITH_ELEMENT
    if floating and element is not None and not isinstance(arg.type, TileType):
        return element_of(em, arg, element)
    return operand(em, materialised(em, call, arg), element)


def target_element(call: Call) -> DataType | None:
    """The element type literals take: that of the first tile operand (behind a mask), else of the result."""
    for arg in call.args[1:] if call.op.name == "tile.sels" else call.args:
        if isinstance(arg.type, TileType):
            return arg.type.dtype
    return call.type.dtype if isinstance(call.type, TileType) else None


_COMPARE = ("eq", "ne", "lt", "le", "gt", "ge")


def _compare(em: Emitter, call: Call) -> str:
    return f" {{cmpMode = #pto<cmp {comparison(em, call, 'cmp_type')}>}}"


def comparison(em: Emitter, call: Call, keyword: str) -> str:
    """`eq`, `ne`, `lt`, `le`, `gt` or `ge` for the code of a keyword."""
    code = int(call.kwargs.get(keyword, 0))
    if not 0 <= code < len(_COMPARE):
        raise em.fail(f"{keyword}={code} is no comparison; use 0..5 for {', '.join(_COMPARE)}", call.span)
    return _COMPARE[code]


def _rounding(em: Emitter, call: Call) -> str:
    mode = call.kwargs.get("mode", 2)
    text = mode if isinstance(mode, str) else CAST_MODES[int(mode)]
    return f" {{rmode = #pto<round_mode {text.upper()}>}}"


def _binary_scratch(em: Emitter, call: Call) -> str:
    return "  {isBinary = true}" if len(call.args) > 1 else ""


def _precision(name: str) -> Inside:
    def text(em: Emitter, call: Call) -> str:
        wanted = bool(call.kwargs.get("high_precision"))
        return f" {{precisionType = #pto<{name}_precision high_precision>}}" if wanted else ""

    return text


def _flag(key: str, label: str) -> Inside:
    def text(em: Emitter, call: Call) -> str:
        return f" {{{label} = {'true' if call.kwargs.get(key) else 'false'}}}"

    return text


_PLAIN = """
    add sub mul div and or shl shr xor rem prelu fmod addc subc part_add part_max part_min part_mul
    adds subs muls divs ands ors shls shrs xors rems fmods lrelu addsc subsc
    exp sqrt rsqrt neg abs relu not concat sel sels
    row_sum row_max row_min row_prod row_argmax row_argmin col_max col_min col_prod col_argmax col_argmin
    row_expand_add row_expand_sub row_expand_mul row_expand_div row_expand_max row_expand_min row_expand_expdif
    col_expand_add col_expand_sub col_expand_mul col_expand_div col_expand_max col_expand_min col_expand_expdif
    gather gatherb sort32
"""
INSTRUCTIONS: dict[str, Instruction] = {f"tile.{n}": Instruction("t" + n.replace("_", "")) for n in _PLAIN.split()}
INSTRUCTIONS |= {
    "tile.maximum": Instruction("tmax"),
    "tile.minimum": Instruction("tmin"),
    "tile.maximums": Instruction("tmaxs"),
    "tile.minimums": Instruction("tmins"),
    "tile.div": Instruction("tdiv", after=_precision("div")),
    "tile.log": Instruction("tlog", after=_precision("log")),
    "tile.recip": Instruction("trecip", after=_precision("recip")),
    "tile.cast": Instruction("tcvt", inside=_rounding),
    "tile.cmp": Instruction("tcmp", inside=_compare),
    "tile.cmps": Instruction("tcmps", inside=_compare),
    "tile.col_sum": Instruction("tcolsum", inside=_binary_scratch),
    "tile.row_expand": Instruction("trowexpand", operands=(1,)),
    "tile.col_expand": Instruction("tcolexpand", operands=(1,)),
    "tile.expands": Instruction("texpands", operands=(1,)),
    "tile.full": Instruction("texpands", operands=(1,)),
    "tile.ci": Instruction("tci", operands=(0,), after=_flag("descending", "descending")),
    "tile.random": Instruction("trandom", operands=(0, 1, 2, 3, 4, 5)),
    "tile.transpose": Instruction("ttrans", operands=(0, 3)),
    "tile.move": Instruction("tmov", operands=(0,)),
    "tile.fillpad": Instruction("tfillpad", operands=(0,)),
    "tile.fillpad_inplace": Instruction("tfillpad", operands=(0,)),
    "tile.fillpad_expand": Instruction("tfillpad_expand", operands=(0,)),
    "tile.mrgsort_format1": Instruction("tmrgsort"),
    "tile.matmul": Instruction("tmatmul"),
    "tile.matmul_bias": Instruction("tmatmul.bias"),
    "tile.gemv": Instruction("tgemv"),
    "tile.gemv_bias": Instruction("tgemv.bias"),
    "tile.tget_scale_addr": Instruction("tget_scale_addr"),
}


def gather_mask(em: Emitter, call: Call, result: Var) -> None:
    """`tgather` with a column mask pattern instead of an index tile."""
    em_target = em.tiles[result]
    source = em.tile(call.args[0])
    pattern = mask_pattern(em, call)
    em.line(
        f'pto.tgather ins({source.name}, {{maskPattern = {pattern}}} : {source.type_text}, "row") '
        f"outs({em_target.name} : {em_target.type_text})",
        call.span,
    )


_PATTERNS = ("P0101", "P1010", "P0001", "P0010", "P0100", "P1000", "P1111")


def mask_pattern(em: Emitter, call: Call) -> str:
    """`#pto.mask_pattern<P0101>` for the codes 1..7."""
    code = int(call.kwargs["mask_pattern"])
    if not 1 <= code <= len(_PATTERNS):
        listed = ", ".join(f"{i + 1} ({p})" for i, p in enumerate(_PATTERNS))
        raise em.fail(f"mask_pattern={code} is unknown; use one of {listed}", call.span)
    return f"#pto.mask_pattern<{_PATTERNS[code - 1]}>"


def scratch_free_sources(call: Call) -> list[TileType]:
    """Types of the tile operands, in order."""
    return [tile_type(a) for a in call.args if isinstance(a.type, TileType)]
