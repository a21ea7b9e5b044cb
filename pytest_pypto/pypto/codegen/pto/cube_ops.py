"""Products that accumulate in place, and the remaining operators with a form of their own."""

from __future__ import annotations

from ...ir.expr import Call, Expr, Var
from .emitter import Emitter, Handle, same_memory
from .scalars import scalar
from .tiles import copy_tile
from .vector_ops import mask_pattern


def _listed(handles: list[Handle]) -> str:
    return f"{', '.join(h.name for h in handles)} : {', '.join(h.type_text for h in handles)}"


def in_place(em: Emitter, call: Call, result: Var | None, operand: int = 0) -> Handle:
    """The handle an in-place operator changes: the operand's own, or the result's storage holding a copy of it."""
    target = em.tile(call.args[operand])
    if result is None:
        return target
    own = em.tiles.get(result)
    if own is not None:
        if not same_memory(own.memory, target.memory):
            copy_tile(em, target, own)
        return own
    em.tiles[result] = target
    return target


def emit_accumulate(em: Emitter, call: Call, result: Var) -> None:
    """`tmatmul.acc` / `tgemv.acc` on the accumulator's own handle.

    With a condition for the first step it is a branch between a fresh product and an accumulating one.
    """
    accumulator = in_place(em, call, result)
    base = "tgemv" if "gemv" in call.op.name else "tmatmul"
    sides = [em.tile(call.args[1]), em.tile(call.args[2])]
    out = f"outs({accumulator.name} : {accumulator.type_text})"
    again = f"pto.{base}.acc ins({_listed([accumulator, *sides])}) {out}"
    if len(call.args) < 4:
        em.line(again)
        return
    first = scalar(em, call.args[3])
    em.plain(f"scf.if {first.name} {{")
    with em.nested():
        em.line(f"pto.{base} ins({_listed(sides)}) {out}")
    em.plain("} else {")
    with em.nested():
        em.line(again)
    em.plain("}")


def emit_mx(em: Emitter, call: Call, result: Var) -> None:
    """Block-scaled products: plain, accumulating, with bias."""
    kind = call.op.name.removeprefix("tile.matmul_mx")
    target = in_place(em, call, result) if kind == "_acc" else em.tiles[result]
    handles = [em.tile(a) for a in call.args]
    if kind == "_acc":
        handles[0] = target
    mnemonic = "tmatmul.mx" + kind.replace("_", ".")
    em.line(f"pto.{mnemonic} ins({_listed(handles)}) outs({target.name} : {target.type_text})")


def emit_scatter(em: Emitter, call: Call, result: Var) -> None:
    """`tscatter` into the destination's own handle, by index tile or by mask pattern."""
    target = in_place(em, call, result)
    source = em.tile(call.args[1])
    out = f"outs({target.name} : {target.type_text})"
    if call.op.name == "tile.scatter_mask":
        pattern = mask_pattern(em, call)
        em.line(f'pto.tscatter ins({source.name}, {{maskPattern = {pattern}}} : {source.type_text}, "row") {out}')
        return
    em.line(f"pto.tscatter ins({_listed([source, em.tile(call.args[2])])}) {out}")


def emit_merge(em: Emitter, call: Call, result: Var) -> None:
    """`tmrgsort` of two to four sorted lists; the last operand is scratch."""
    target = em.tiles[result]
    handles = [em.tile(a) for a in call.args]
    done = em.names.take("executed_vec")
    em.line(f"{done} = arith.constant dense<0> : vector<4xi16>")
    names = ", ".join(h.name for h in handles)
    types = ", ".join(h.type_text for h in handles)
    exhausted = "true" if call.kwargs.get("exhausted") else "false"
    em.line(
        f"pto.tmrgsort ins({names} {{exhausted = {exhausted}}} : {types}) "
        f"outs({target.name}, {done} : {target.type_text}, vector<4xi16>)"
    )


def emit_triangle(em: Emitter, call: Call, result: Var) -> None:
    """`ttri`, which has only the generic form."""
    target = em.tiles[result]
    diagonal = scalar(em, call.args[0])
    upper = 1 if call.kwargs.get("upper") else 0
    em.line(
        f'"pto.ttri"({diagonal.name}, {target.name}) {{upperOrLower = {upper} : i32}} : '
        f"({diagonal.type_text}, {target.type_text}) -> ()"
    )


def same_handle(em: Emitter, source: Expr, result: Var) -> None:
    """The result is the operand itself."""
    em.tiles[result] = em.tile(source)
