"""Kernels whose memory the assembler plans: handles by the bytes they stand for, no addresses."""

from __future__ import annotations

from tests.codegen.kernels import allocs, kernel, lines, tile

LOAD = "pl.tile.load(x, [0, 0], [16, 32], [16, 32], target_memory=pl.Mem.Vec)"


def _open(*body: str) -> list[str]:
    return lines(kernel("\n".join(body)), baked_addresses=False)


def test_tiles_of_one_piece_share_a_handle() -> None:
    found = _open(
        allocs(2),
        f"t: {tile(2, 0)} = {LOAD}",
        f"u: {tile(2, 0)} = pl.tile.exp(t)",
        "s: pl.Tensor[[16, 32], pl.FP32] = pl.tile.store(u, [0, 0], o)",
    )
    assert [w for w in found if "alloc_tile" in w] == [
        "%t = pto.alloc_tile valid_row = %c16_index valid_col = %c32_index : T"
    ]
    assert "pto.texp ins(%t : T) outs(%t : T)" in found
    assert not [w for w in found if "i64" in w]


def test_another_shape_of_the_same_piece_is_a_view() -> None:
    found = _open(
        allocs(2),
        f"t: {tile(2, 0)} = {LOAD}",
        f"u: {tile(2, 0, '[32, 16]')} = pl.tile.reshape(t, [32, 16])",
    )
    assert "%u = pto.treshape %t : T -> T" in found


def test_a_loop_carry_in_another_buffer_is_moved_back() -> None:
    found = _open(
        allocs(2, 3),
        f"t: {tile(2, 0)} = {LOAD}",
        "for i, (c,) in pl.range(4, init_values=(t,)):",
        f"    u: {tile(3, 0)} = pl.tile.adds(c, 1.0)",
        "    r = pl.yield_(u)",
        "s: pl.Tensor[[16, 32], pl.FP32] = pl.tile.store(r, [0, 0], o)",
    )
    assert found[found.index("pto.tmov ins(%u : T) outs(%t : T)") + 1] == "}"


def test_a_move_within_one_handle_writes_nothing() -> None:
    found = _open(
        allocs(2),
        f"t: {tile(2, 0)} = {LOAD}",
        f"u: {tile(2, 0)} = pl.tile.move(t, target_memory=pl.Mem.Vec)",
    )
    assert not [w for w in found if "tmov" in w]
