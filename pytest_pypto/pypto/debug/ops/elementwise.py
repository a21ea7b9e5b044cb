"""Element-wise operators: arithmetic, bits, activations, comparison and selection."""

from __future__ import annotations

from ...ir.dtypes import DataType
from ...ir.types import ShapedType
from ..dtypes import is_narrow_float, settle, torch_name
from .scalars import as_element
from .table import Emit, Site, both, register, wrapped

_INT_FNS = {"add", "sub", "mul", "maximum", "minimum"}


def _is_u64(site: Site) -> bool:
    return site.out is DataType.UINT64


def _two(function: str) -> Emit:
    """A torch function of two tensors, in the element type of the result."""

    def emit(site: Site) -> str:
        a, b = site.typed(0, site.out), site.typed(1, site.out)
        if _is_u64(site) and function in ("maximum", "minimum"):
            return f"_unsigned(torch.{function}(_unsigned({a}), _unsigned({b})))"
        return settle(f"torch.{function}({a}, {b})", site.out)

    return emit


for _name, _function in (
    *(("add", "add"), ("sub", "sub"), ("mul", "mul"), ("maximum", "maximum"), ("minimum", "minimum")),
    *(("and", "bitwise_and"), ("or", "bitwise_or"), ("xor", "bitwise_xor")),
):
    if _name not in ("maximum", "minimum"):
        register(f"tensor.{_name}", region="common")(_two(_function))
    register(f"tile.{_name}", region="first")(_two(_function))


def _extreme(function: str) -> Emit:
    """Tensor maximum and minimum: the right operand may be a scalar."""

    def emit(site: Site) -> str:
        if site.args[1].is_tensor or site.args[1].type is None:
            return _two(function)(site)
        return _clamp(function)(site)

    return emit


def _clamp(function: str) -> Emit:
    bound = "min" if function.startswith("max") else "max"

    def emit(site: Site) -> str:
        a, s = site.typed(0, site.out), as_element(site, 1, site.out)
        if _is_u64(site):
            return f"_unsigned(torch.clamp(_unsigned({a}), {bound}=_unsigned({s})))"
        return f"torch.clamp({a}, {bound}={s})"

    return emit


register("tensor.maximum", region="common")(_extreme("maximum"))
register("tensor.minimum", region="common")(_extreme("minimum"))
register("tile.maximums", region="first")(_clamp("maximums"))
register("tile.minimums", region="first")(_clamp("minimums"))


def _is_int(dtype: DataType | None) -> bool:
    return dtype is not None and dtype.is_int()


@register("tensor.div", region="common")
@register("tile.div", region="first")
def _div(site: Site) -> str:
    a, b = site.typed(0, site.out), site.typed(1, site.out)
    if _is_u64(site):
        return f"_u64_divmod({a}, {b}, False)"
    return settle(f"_int_div({a}, {b})" if _is_int(site.out) else f"torch.div({a}, {b})", site.out)


@register("tensor.divs", region="common")
@register("tile.divs", region="first")
def _divs(site: Site) -> str:
    a, s = site.typed(0, site.out), as_element(site, 1, site.out)
    if _is_u64(site):
        return f"_u64_divmod({a}, {s}, False)"
    return settle(f"_int_div({a}, {s})" if _is_int(site.out) else f"({a} / {s})", site.out)


def _remainder(function: str, scalar: bool) -> Emit:
    floor = function == "remainder"

    def emit(site: Site) -> str:
        a = site.typed(0, site.out)
        b = as_element(site, 1, site.out) if scalar else site.typed(1, site.out)
        if _is_u64(site):
            return f"_u64_divmod({a}, {b}, True)"
        return settle(f"_{'int' if _is_int(site.out) else 'float'}_rem({a}, {b}, {floor})", site.out)

    return emit


register("tensor.fmod", region="common")(_remainder("fmod", False))
register("tile.fmod", region="first")(_remainder("fmod", False))
register("tensor.fmods", region="common")(_remainder("fmod", True))
register("tile.fmods", region="first")(_remainder("fmod", True))
register("tile.rem", region="first")(_remainder("remainder", False))
register("tile.rems", region="first")(_remainder("remainder", True))


def _with_scalar(sign: str) -> Emit:
    def emit(site: Site) -> str:
        return settle(f"({site.typed(0, site.out)} {sign} {as_element(site, 1, site.out)})", site.out)

    return emit


for _name, _sign in (("adds", "+"), ("subs", "-"), ("muls", "*")):
    register(f"tensor.{_name}", region="common")(_with_scalar(_sign))
    register(f"tile.{_name}", region="first")(_with_scalar(_sign))


def _bits_scalar(function: str) -> Emit:
    def emit(site: Site) -> str:
        return settle(f"torch.{function}({site[0]}, {as_element(site, 1, site.out)})", site.out)

    return emit


for _name, _function in (("ands", "bitwise_and"), ("ors", "bitwise_or"), ("xors", "bitwise_xor")):
    register(*both(_name), region="first")(_bits_scalar(_function))


@register(*both("not"), region="first")
def _not(site: Site) -> str:
    return settle(f"torch.bitwise_not({site[0]})", site.out)


def _shift(sign: str) -> Emit:
    def emit(site: Site) -> str:
        if _is_u64(site) and sign == ">>":
            return f"_u64_shr({site[0]}, {site[1]})"
        return settle(f"({site[0]} {sign} {site.typed(1, site.out) if site.args[1].is_tensor else site[1]})", site.out)

    return emit


register(*both("shl"), region="first")(_shift("<<"))
register(*both("shr"), region="first")(_shift(">>"))
register(*both("shls"), region="first")(_shift("<<"))
register(*both("shrs"), region="first")(_shift(">>"))


def _one(function: str) -> Emit:
    """A torch function of one tensor; a float result of integers is FP32."""

    def emit(site: Site) -> str:
        text = f"torch.{function}({site[0]})"
        given = site.args[0].dtype
        if function not in ("neg", "abs", "relu") and _is_int(given) and site.out is not None:
            wide = f"_u64_float({site[0]})" if given is DataType.UINT64 else site[0]
            text = f"torch.{function}({wide}.float()).to({torch_name(site.out)})"
        if given is DataType.UINT64 and function in ("abs", "relu"):
            return site[0]
        return settle(text, site.out)

    return emit


for _name, _function in (
    *(("neg", "neg"), ("exp", "exp"), ("log", "log"), ("sqrt", "sqrt"), ("rsqrt", "rsqrt"), ("abs", "abs")),
    *(("recip", "reciprocal"), ("sin", "sin"), ("cos", "cos")),
):
    register(*both(_name), region="first")(_one(_function))
register("tile.relu", region="first")(_one("relu"))


@register("tile.lrelu", region="first")
def _lrelu(site: Site) -> str:
    x = site.named(0)
    return settle(f"torch.where({x} > 0, {x}, {x} * {as_element(site, 1, site.out)})", site.out)


@register("tile.prelu", region="first")
def _prelu(site: Site) -> str:
    x = site.named(0)
    return settle(f"torch.where({x} > 0, {x}, {x} * {site[1]})", site.out)


def _three(first: str, second: str, scalar: bool) -> Emit:
    def emit(site: Site) -> str:
        a, c = site.typed(0, site.out), site.typed(2, site.out)
        b = as_element(site, 1, site.out) if scalar else site.typed(1, site.out)
        if site.out in (DataType.FP16, DataType.BF16):
            # One operator rounds once.
            wide = f"({a}.float() {first} {b}{'' if scalar else '.float()'} {second} {c}.float())"
            return f"{wide}.to({torch_name(site.out)})"
        return settle(f"({a} {first} {b} {second} {c})", site.out)

    return emit


register("tile.addc", region="first")(_three("+", "+", False))
register("tile.addsc", region="first")(_three("+", "+", True))
register("tile.subc", region="first")(_three("-", "-", False))
register("tile.subsc", region="first")(_three("-", "-", True))


def _part(op: str, plain: str) -> Emit:
    def emit(site: Site) -> str:
        if not site.partial(0, 1):
            return _two(plain)(site)
        kind = f"u{op}" if _is_u64(site) and op in ("max", "min") else op
        return settle(f'_part({site.typed(0, site.out)}, {site.typed(1, site.out)}, "{kind}")', site.out)

    return emit


for _op, _plain in (("add", "add"), ("mul", "mul"), ("max", "maximum"), ("min", "minimum")):
    register(f"tile.part_{_op}", f"tensor.part_{_op}", region="own")(_part(_op, _plain))


def _expand(kind: str, op: str) -> Emit:
    """`target op vector`, the vector repeated along rows or columns by broadcasting."""
    functions = {"add": "add", "sub": "sub", "mul": "mul", "div": "div", "max": "maximum", "min": "minimum"}

    def emit(site: Site) -> str:
        a, v = site.typed(0, site.out), site.typed(1, site.out)
        if op == "expdif":
            if is_narrow_float(site.out) and site.out is not None:
                return f"torch.exp({a}.float() - {v}.float()).to({torch_name(site.out)})"
            return settle(f"torch.exp({a} - {v})", site.out)
        if kind == "row" and op == "add" and _is_block(site):
            return settle(f"_row_expand_add({a}, {v})", site.out)
        if op == "div" and _is_int(site.out):
            return f"_u64_divmod({a}, {v}, False)" if _is_u64(site) else settle(f"_int_div({a}, {v})", site.out)
        if op in ("max", "min") and _is_u64(site):
            return f"_unsigned(torch.{functions[op]}(_unsigned({a}), _unsigned({v})))"
        return settle(f"torch.{functions[op]}({a}, {v})", site.out)

    return emit


def _is_block(site: Site) -> bool:
    """True when the vector of a row_expand_add holds a block per row instead of one number."""
    shape = site.args[1].shape
    return shape is not None and shape[-1] != 1


for _kind in ("row", "col"):
    for _op in ("add", "sub", "mul", "div", "max", "min", "expdif"):
        register(f"tensor.{_kind}_expand_{_op}")(_expand(_kind, _op))
        register(f"tile.{_kind}_expand_{_op}", region="first")(_expand(_kind, _op))


def _extents(site: Site, k: int) -> str:
    """The extents of operand `k` as a tuple, from its type when they are constants."""
    shape = site.args[k].shape
    return repr(shape) if shape is not None and None not in shape else f"{wrapped(site[k])}.shape"


@register("tensor.row_expand", "tensor.col_expand", "tensor.expand_clone")
@register("tile.row_expand", "tile.col_expand", region="first")
def _repeat(site: Site) -> str:
    target, vector = (1, 0) if site.name == "tensor.expand_clone" else (0, 1)
    return f"_expand_to({site.typed(vector, site.out)}, {_extents(site, target)})"


@register("tensor.expands")
@register("tile.expands", region="first")
def _fill_like(site: Site) -> str:
    dtype = site.out or DataType.FP32
    return f"torch.full({_extents(site, 0)}, {as_element(site, 1, site.out)}, dtype={torch_name(dtype)})"


_SIGNS = ("==", "!=", "<", "<=", ">", ">=")


def _comparison(site: Site) -> str:
    sign = _SIGNS[int(site.kwargs.get("cmp_type", 0))]
    a, right = site[0], site.args[1]
    if right.is_tensor or right.type is None:
        b = right.text
        common = _wider(site.args[0].dtype, right.dtype)
        a, b = site.typed(0, common), site.typed(1, common)
    else:
        value = right.constant
        mixed = isinstance(value, float) and _is_int(site.args[0].dtype)
        b = right.text if mixed else as_element(site, 1, site.args[0].dtype)
    if DataType.UINT64 in (site.args[0].dtype, right.dtype):
        a, b = f"_unsigned({a})", f"_unsigned({b})"
    return f"({a} {sign} {b})"


def _wider(a: DataType | None, b: DataType | None) -> DataType | None:
    """The type two different operands are compared in: None lets torch decide, which is exact for what it promotes."""
    return DataType.FP32 if a is not b and {a, b} == {DataType.FP16, DataType.BF16} else None


@register("tensor.cmp", region="common")
def _tensor_cmp(site: Site) -> str:
    text = _comparison(site)
    return text if site.out is None else f"{text}.to({torch_name(site.out)})"


@register("tile.cmp", "tile.cmps", region="always")
def _tile_cmp(site: Site) -> str:
    if site.facts.get("packed"):
        source = site.named(0)
        return f"_pack_mask({_comparison(site)}, {source})"
    if site.partial(0):
        source = site.named(0)
        return f"_copy_region_attrs({source}, {_comparison(site)})"
    return _comparison(site)


def _mask(site: Site, value: int) -> str:
    """The mask operand as a bool tensor of the shape of the selected values."""
    if site.args[0].type is None or site.facts.get("mask"):
        return site[0]
    shape = site.type.shape if isinstance(site.type, ShapedType) else None
    extents = _extents(site, value) if shape is None else "(" + ", ".join(_dim_texts(site, value)) + ")"
    return f"_unpack_mask({site[0]}, {extents})"


def _dim_texts(site: Site, value: int) -> list[str]:
    shape = site.args[value].shape or ()
    if None in shape:
        return [f"*{wrapped(site[value])}.shape"]
    return [f"{d}," if len(shape) == 1 else str(d) for d in shape]


@register("tile.sel", region="first", main=1)
def _sel(site: Site) -> str:
    return f"torch.where({_mask(site, 1)}, {site.typed(1, site.out)}, {site.typed(2, site.out)})"


@register("tile.sels", region="first", main=1)
def _sels(site: Site) -> str:
    scalar = as_element(site, 3, site.out)
    return f"torch.where({_mask(site, 1)}, {site[1]}, {scalar})"
