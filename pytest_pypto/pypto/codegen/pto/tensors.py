"""Tensor parameters: views of whole tensors and windows into them."""

from __future__ import annotations

from collections.abc import Sequence

from ...ir import extents
from ...ir.enums import TensorLayout
from ...ir.expr import Call, Expr, Var, const_value, index
from ...ir.types import TensorType
from .emitter import Emitter, TensorArg
from .scalars import index_of
from .types import tensor_view_text, window_text


def declare_tensor(em: Emitter, param: Var, pointer: str, gm_buffer: bool) -> None:
    """Register a tensor parameter; its view's name and constants are taken now, its text is written at the end."""
    assert isinstance(param.type, TensorType)
    view = "" if gm_buffer else em.names.take(f"{param.name_hint}_view")
    em.roots[param] = TensorArg(param, param.type, pointer, view)
    if gm_buffer:
        return
    for extent in param.type.shape:
        _note_constant(em, extent)
    explicit = param.type.tensor_view.stride if param.type.tensor_view is not None else ()
    if explicit:
        for stride in explicit:
            _note_constant(em, stride)
    elif len(param.type.shape) == 2:
        _note_constant(em, param.type.shape[1])
        em.index(1)
    else:
        em.index(1)


def _note_constant(em: Emitter, expr: Expr) -> None:
    value = const_value(expr)
    if value is not None:
        em.index(value)


def view_lines(em: Emitter) -> list[str]:
    """Text of the views that the body needs, in parameter order."""
    body, em.body = em.body, []
    for param in em.func.params:
        arg = em.roots.get(param)
        if arg is not None and arg.used and arg.view:
            _write_view(em, arg)
            if arg.turned:
                _write_turned(em, arg)
    lines, em.body = em.body, body
    return lines


def _write_view(em: Emitter, arg: TensorArg) -> None:
    shape = [index_of(em, d) for d in arg.type.shape]
    layout = arg.type.tensor_view.layout if arg.type.tensor_view is not None else TensorLayout.ND
    explicit = arg.type.tensor_view.stride if arg.type.tensor_view is not None else ()
    column = len(shape) == 2 and const_value(arg.type.shape[1]) == 1
    kind = "nd"
    if layout is TensorLayout.DN and len(shape) == 2:
        shape, strides, kind = [shape[1], shape[0]], [em.index(1), shape[1]], "dn"
    elif explicit:
        strides = [index_of(em, s) for s in explicit]
    elif column:
        strides, kind = [em.index(1), shape[0]], "dn"
    else:
        strides = _row_major(em, arg, shape)
    if layout is TensorLayout.NZ:
        kind = "nz"
    text = tensor_view_text(len(shape), arg.type.dtype)
    em.line(
        f"{arg.view} = pto.make_tensor_view {arg.pointer}, shape = [{', '.join(shape)}], "
        f"strides = [{', '.join(strides)}] {{layout = #pto.layout<{kind}>}} : {text}",
        em.func.span,
    )


def _write_turned(em: Emitter, arg: TensorArg) -> None:
    """A view of a row-major matrix whose rows are the tensor's columns."""
    rows, cols = (index_of(em, d) for d in arg.type.shape)
    explicit = arg.type.tensor_view.stride if arg.type.tensor_view is not None else ()
    pitch = index_of(em, explicit[0]) if explicit else cols
    em.line(
        f"{arg.turned} = pto.make_tensor_view {arg.pointer}, shape = [{cols}, {rows}], "
        f"strides = [{em.index(1)}, {pitch}] {{layout = #pto.layout<dn>}} : {tensor_view_text(2, arg.type.dtype)}",
        em.func.span,
    )


def emit_view(em: Emitter, call: Call, result: Var) -> None:
    """`tensor.view`: another `make_tensor_view` of the same argument, with the shape and layout of the result.

    Raises:
        CodegenError: the viewed tensor is not packed, so its elements are no run of memory in the new shape.
    """
    root = em.tensor_shape(call.args[0])
    type_ = result.type
    assert isinstance(type_, TensorType)
    _check_packed(em, root, type_)
    view = em.result_name(result)
    shape = [index_of(em, d) for d in type_.shape]
    arg = em.roots[result] = TensorArg(root.param, type_, root.pointer, view, used=True)
    if len(shape) > 1 and layout_of(type_) is TensorLayout.DN:
        turned = _row_major(em, arg, [*shape[:-2], shape[-1], shape[-2]])
        strides, kind = [*turned[:-2], turned[-1], turned[-2]], "dn"
    else:
        strides, kind = _row_major(em, arg, shape), "nd"
    em.line(
        f"{view} = pto.make_tensor_view {arg.pointer}, shape = [{', '.join(shape)}], "
        f"strides = [{', '.join(strides)}] {{layout = #pto.layout<{kind}>}} : "
        f"{tensor_view_text(len(shape), type_.dtype)}"
    )


def _check_packed(em: Emitter, root: TensorArg, made: TensorType) -> None:
    """A view keeps the order of the elements in memory; turning rows and columns goes with a change of layout."""
    source = root.type
    stated = source.tensor_view.stride if source.tensor_view is not None else ()
    turns = layout_of(source) is not layout_of(made)
    tail = (*source.shape[:-2], source.shape[-1], source.shape[-2]) if turns and len(source.shape) > 1 else source.shape
    same = layout_of(source) is TensorLayout.ND and (not turns or extents.all_equal(tail, made.shape))
    if same and (not stated or extents.all_equal(stated, packed_strides(source.shape))):
        return
    raise em.fail(
        f"'{root.param.name_hint}' of type {source} cannot be seen as {made}: only a packed row-major tensor has its "
        "elements in one run; slice first and reshape on the core, or pass the tensor with the other shape"
    )


def layout_of(type_: TensorType) -> TensorLayout:
    """The layout of a tensor; row-major when nothing is said."""
    return type_.tensor_view.layout if type_.tensor_view is not None else TensorLayout.ND


def packed_strides(shape: Sequence[Expr]) -> tuple[Expr, ...]:
    """Strides of a row-major tensor without gaps, in elements."""
    strides: list[Expr] = [index(1)]
    for extent in reversed(shape[1:]):
        strides.insert(0, extents.mul(extent, strides[0]))
    return tuple(strides)


def _row_major(em: Emitter, arg: TensorArg, shape: list[str]) -> list[str]:
    """Strides of a dense tensor; products of extents get names `<tensor>_s<axis>`."""
    strides = [em.index(1)]
    for axis in range(len(shape) - 1, 0, -1):
        if axis == len(shape) - 1:
            strides.append(shape[axis])
            continue
        name = em.names.take(f"{arg.param.name_hint}_s{axis - 1}")
        em.line(f"{name} = arith.muli {strides[-1]}, {shape[axis]} : index", em.func.span)
        strides.append(name)
    return strides[::-1]


def offsets(em: Emitter, values: Sequence[Expr]) -> list[str]:
    """Window offsets: constants as they are, everything else clamped at zero."""
    made = []
    for value in values:
        known = const_value(value)
        if known is not None:
            made.append(em.index(known))
            continue
        computed = index_of(em, value)
        name = em.names.take()
        em.line(f"{name} = arith.maxsi {computed}, {em.index(0)} : index")
        made.append(name)
    return made


def window(
    em: Emitter, tensor: Expr, at: Sequence[str], sizes: Sequence[Expr | int], names: Sequence[str]
) -> tuple[str, str]:
    """Write a `partition_view` of a tensor; `names` are the values of `sizes`. Returns its name and type.

    Raises:
        CodegenError: offsets, sizes and the tensor differ in rank.
    """
    arg = em.tensor(tensor)
    rank = len(arg.type.shape)
    if len(at) != rank or len(sizes) != rank:
        raise em.fail(
            f"a window with {len(at)} offsets and {len(sizes)} extents does not fit tensor "
            f"'{arg.param.name_hint}' of rank {rank}; give one offset and one extent per axis"
        )
    dtype = arg.type.dtype
    text = window_text([s if isinstance(s, int) else const_value(s) for s in sizes], dtype)
    hint = tensor.name_hint if isinstance(tensor, Var) else arg.param.name_hint
    name = em.names.take(f"{hint}_pview")
    em.line(
        f"{name} = pto.partition_view {arg.view}, offsets = [{', '.join(at)}], sizes = [{', '.join(names)}] : "
        f"{tensor_view_text(rank, dtype)} -> {text}"
    )
    return name, text


def turned_window(em: Emitter, tensor: Expr, at: Sequence[str], sizes: Sequence[int]) -> tuple[str, str]:
    """Write a `partition_view` of a matrix with rows and columns exchanged; `at` and `sizes` are the tensor's own.

    Raises:
        CodegenError: the tensor is no row-major matrix.
    """
    arg = em.tensor(tensor)
    layout = arg.type.tensor_view.layout if arg.type.tensor_view is not None else TensorLayout.ND
    if len(arg.type.shape) != 2 or layout is not TensorLayout.ND:
        raise em.fail(f"a transposed window needs a row-major matrix; '{arg.param.name_hint}' is {arg.type}")
    arg.turned = arg.turned or em.names.take(f"{arg.param.name_hint}_t_view")
    text = window_text([sizes[1], sizes[0]], arg.type.dtype)
    name = em.names.take(f"{arg.param.name_hint}_t_pview")
    em.line(
        f"{name} = pto.partition_view {arg.turned}, offsets = [{at[1]}, {at[0]}], "
        f"sizes = [{em.index(sizes[1])}, {em.index(sizes[0])}] : {tensor_view_text(2, arg.type.dtype)} -> {text}"
    )
    return name, text


def flat_offset(em: Emitter, indices: Sequence[Expr], extents: Sequence[Expr]) -> str:
    """Row-major element number of a scalar access; constants fold, dynamic parts are written out."""
    values = [const_value(i) for i in indices]
    sizes = [const_value(d) for d in extents]
    if None not in values and None not in sizes[1:]:
        flat = 0
        for value, size in zip(values, sizes, strict=True):
            flat = flat * (size or 0) + (value or 0) if size is not None else value or 0
        return em.index(flat)
    total = index_of(em, indices[0])
    for position, extent in zip(indices[1:], extents[1:], strict=True):
        place = index_of(em, position)
        product = em.names.take("flat_offset_mul")
        em.line(f"{product} = arith.muli {total}, {index_of(em, extent)} : index")
        total = em.names.take("flat_offset")
        em.line(f"{total} = arith.addi {product}, {place} : index")
    return total
