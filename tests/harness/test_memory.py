"""The memory check: each fault is written into an otherwise sound allocated kernel and must be found; sound kernels
must be silent."""

from __future__ import annotations

import re

import pypto.language as pl
import pytest

from pytest_pypto.harness.memory import check_program
from pytest_pypto.harness.memory_rules import capacity
from tests.kit import dump_files, needs_kit

HEAD = """# pypto.program: P
import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.{kind}, level=pl.Level.{kind}, role=pl.Role.SubWorker)
    def k(
        x: pl.Tensor[[64, 64], pl.FP32], n: pl.Scalar[pl.INT32], o: pl.Out[pl.Tensor[[64, 64], pl.FP32]]
    ) -> pl.Tensor[[64, 64], pl.FP32]:
"""
SIZE = 16 * 64 * 4


def memref(base: str, at: int, size: int = SIZE) -> str:
    return f"pl.MemRef({base}, pl.const({at}, pl.INT64), {size})"


def tile(
    name: str, base: str, at: int, value: str, shape: str = "[16, 64]", size: int = SIZE, dtype: str = "FP32"
) -> str:
    space = "Acc" if "acc" in base else "Vec"
    return f"{name}: pl.Tile[{shape}, pl.{dtype}, {memref(base, at, size)}, pl.Mem.{space}] = {value}"


def load(row: int = 0) -> str:
    return f"pl.tile.load(x, [{row}, 0], [16, 64], [16, 64], target_memory=pl.Mem.Vec)"


def alloc(*names: str, size: int = SIZE) -> list[str]:
    return [f"{n}: pl.Ptr = pl.tile.alloc(pl.Mem.{'Acc' if 'acc' in n else 'Vec'}, {size})" for n in names]


STORE = "o_1: pl.Tensor[[64, 64], pl.FP32] = pl.tile.store({0}, [0, 0], o)"


def found(lines: list[str], result: str, kind: str = "AIV", platform: str = "a2a3sim") -> list[str]:
    """Kinds of the findings in a kernel of these lines that stores `result`."""
    body = "".join(f"        {line}\n" for line in [*lines, STORE.format(result), "return o"])
    report = check_program(pl.parse(HEAD.format(kind=kind) + body), platform)
    return [f.kind for f in report.findings]


def pair(a: int, b: int) -> list[str]:
    """Two tiles that are both needed by the third line."""
    return [
        *alloc("mem_vec_0", "mem_vec_1"),
        tile("a", "mem_vec_0", a, load(0)),
        tile("b", "mem_vec_1", b, load(16)),
        tile("c", "mem_vec_0", a, "pl.tile.add(a, b)"),
    ]


@pytest.mark.parametrize(("at", "kinds"), [(SIZE, []), (SIZE // 2, ["overlap"]), (0, ["overlap"])])
def test_two_live_tiles(at: int, kinds: list[str]) -> None:
    assert set(kinds) <= set(found(pair(0, at), "c")) <= {*kinds, "in place"}


def test_a_dead_tile_gives_its_bytes_away() -> None:
    lines = [
        *alloc("mem_vec_0", "mem_vec_1"),
        tile("a", "mem_vec_0", 0, load()),
        tile("b", "mem_vec_1", SIZE, "pl.tile.exp(a)"),
        tile("c", "mem_vec_0", 0, "pl.tile.exp(b)"),
    ]
    assert found(lines, "c") == []
    assert found([*lines, tile("d", "mem_vec_1", SIZE, "pl.tile.add(c, a)")], "d") == ["overlap"]


def accumulators(up_at: int, *, same_base: bool = False) -> list[str]:
    """Two sums carried by one loop."""
    up = "mem_vec_0" if same_base else "mem_vec_1"
    return [
        *alloc("mem_vec_0", "mem_vec_1", "mem_vec_2"),
        tile("gate", "mem_vec_0", 0, load(0)),
        tile("up", up, up_at, load(16)),
        "for i, (gate_i, up_i) in pl.range(3, init_values=(gate, up)):",
        "    " + tile("t", "mem_vec_2", 2 * SIZE, load(32)),
        "    " + tile("gate_n", "mem_vec_0", 0, "pl.tile.add(gate_i, t)"),
        "    " + tile("up_n", up, up_at, "pl.tile.add(up_i, t)"),
        "    gate_r, up_r = pl.yield_(gate_n, up_n)",
        tile("s", "mem_vec_2", 2 * SIZE, "pl.tile.add(gate_r, up_r)"),
    ]


def test_two_carried_sums() -> None:
    assert found(accumulators(SIZE), "s") == []
    assert "overlap" in found(accumulators(0), "s")
    assert "overlap" in found(accumulators(0, same_base=True), "s")


def loop(yield_at: int = 0, result_at: int = 0, other_at: int = SIZE) -> list[str]:
    """One sum carried by a loop, and a tile that is needed after it."""
    return [
        *alloc("mem_vec_0", "mem_vec_1", "mem_vec_2", size=4 * SIZE),
        tile("acc", "mem_vec_0", 0, load(0)),
        tile("kept", "mem_vec_1", other_at, load(16)),
        "for i, (acc_i,) in pl.range(3, init_values=(acc,)):",
        "    " + tile("acc_n", "mem_vec_0", yield_at, "pl.tile.adds(acc_i, 1.0)"),
        "    " + tile("acc_r", "mem_vec_0", result_at, "pl.yield_(acc_n)"),
        tile("z", "mem_vec_2", 2 * SIZE, "pl.tile.add(acc_r, kept)"),
    ]


def test_a_carried_sum_is_silent() -> None:
    assert found(loop(), "z") == []


def test_a_tile_kept_over_a_loop_that_reuses_its_bytes() -> None:
    assert "overlap" in found(loop(other_at=0), "z")


@pytest.mark.parametrize("changed", [{"yield_at": 3 * SIZE}, {"result_at": 3 * SIZE}])
def test_carry_yield_and_result_must_be_one_place(changed: dict[str, int]) -> None:
    assert "carry" in found(loop(**changed), "z")


def test_a_loop_that_clobbers_its_initial_value_which_is_used_again() -> None:
    lines = [*loop(), tile("w", "mem_vec_1", SIZE, "pl.tile.add(z, acc)")]
    assert "overlap" in found(lines, "w")


def test_swapped_carries_would_need_a_move() -> None:
    """yield(b, a): the values change places, and nothing moves them."""
    lines = [
        *alloc("mem_vec_0", "mem_vec_1", "mem_vec_2"),
        tile("a", "mem_vec_0", 0, load(0)),
        tile("b", "mem_vec_1", SIZE, load(16)),
        "for i, (a_i, b_i) in pl.range(3, init_values=(a, b)):",
        "    a_r, b_r = pl.yield_(b_i, a_i)",
        tile("s", "mem_vec_2", 2 * SIZE, "pl.tile.sub(a_r, b_r)"),
    ]
    assert set(found(lines, "s")) == {"carry"}


def branch(then_at: int, else_at: int, other_at: int) -> list[str]:
    """A branch result, and a tile that only the else branch needs."""
    return [
        *alloc("mem_vec_0", "mem_vec_1", "mem_vec_2", size=4 * SIZE),
        tile("t", "mem_vec_0", 0, load(0)),
        tile("u", "mem_vec_1", other_at, load(16)),
        "if n < 3:",
        "    " + tile("p", "mem_vec_2", then_at, "pl.tile.adds(t, 1.0)"),
        "    " + tile("r", "mem_vec_2", 2 * SIZE, "pl.yield_(p)"),
        "else:",
        "    " + tile("q", "mem_vec_2", else_at, "pl.tile.adds(u, 2.0)"),
        "    " + tile("r", "mem_vec_2", 2 * SIZE, "pl.yield_(q)"),
    ]


def test_branches_are_apart() -> None:
    """What the else branch needs is no obstacle for the then branch, and the other way round."""
    assert found(branch(2 * SIZE, 2 * SIZE, SIZE), "r") == []
    lines = branch(2 * SIZE, 2 * SIZE, SIZE)
    lines[6] = lines[6].replace("mem_vec_2", "mem_vec_1").replace(str(2 * SIZE), str(SIZE))
    assert "overlap" not in found(lines, "r")


def test_both_branches_end_in_the_place_of_the_result() -> None:
    assert found(branch(3 * SIZE, 2 * SIZE, SIZE), "r") == ["branch result"]
    assert found(branch(2 * SIZE, 3 * SIZE, SIZE), "r") == ["branch result"]


def sliced(offset: int, width: int = 32, base: str = "mem_vec_0") -> list[str]:
    size = 16 * width * 4
    return [
        *alloc("mem_vec_0", "mem_vec_1"),
        tile("t", "mem_vec_0", 0, load()),
        tile("v", base, offset, f"pl.tile.slice(t, [16, {width}], [0, 32])", f"[16, {width}]", size),
        tile("e", "mem_vec_1", SIZE, "pl.tile.exp(v)", f"[16, {width}]", size),
    ]


def test_a_view_stays_inside_its_parent() -> None:
    assert found(sliced(128), "e") == []
    assert found(sliced(4096 - 1024), "e") == ["view"]
    assert found(sliced(SIZE * 3, base="mem_vec_1"), "e")[0] == "view"


def test_a_view_that_is_not_aligned() -> None:
    assert found(sliced(12), "e") == ["alignment"]


def test_a_view_keeps_its_parent_alive() -> None:
    lines = sliced(128)
    lines.insert(4, tile("w", "mem_vec_0", 0, load(16)))
    assert "overlap" in found(lines, "e")


IN_PLACE = [
    ("exp", "pl.tile.exp(a)", []),
    ("add", "pl.tile.adds(a, 1.0)", []),
    ("recip", "pl.tile.recip(a)", ["in place"]),
    ("rsqrt", "pl.tile.rsqrt(a)", ["in place"]),
    ("move", "pl.tile.move(a, target_memory=pl.Mem.Vec)", ["in place"]),
]


@pytest.mark.parametrize(("value", "kinds"), [(v, k) for _, v, k in IN_PLACE], ids=[n for n, _, _ in IN_PLACE])
def test_operators_that_work_in_place_and_others(value: str, kinds: list[str]) -> None:
    lines = [*alloc("mem_vec_0"), tile("a", "mem_vec_0", 0, load()), tile("b", "mem_vec_0", 0, value)]
    assert found(lines, "b") == kinds


def test_the_vector_of_an_expansion_must_not_be_overwritten() -> None:
    column = "[16, 1]"
    lines = [
        *alloc("mem_vec_0", "mem_vec_1", "mem_vec_2"),
        tile("a", "mem_vec_0", 0, load()),
        tile("scratch", "mem_vec_1", SIZE, "pl.tile.create([16, 64], dtype=pl.FP32, target_memory=pl.Mem.Vec)"),
        tile("m", "mem_vec_2", 2 * SIZE, "pl.tile.row_max(a, scratch)", column, 64),
    ]
    good = tile("c", "mem_vec_0", 0, "pl.tile.row_expand_sub(a, m)")
    bad = tile("c", "mem_vec_2", 2 * SIZE, "pl.tile.row_expand_sub(a, m)")
    assert found([*lines, good], "c") == []
    assert found([*lines, bad], "c") == ["in place"]


def test_scratch_must_not_lie_on_what_is_needed() -> None:
    def lines(at: int) -> list[str]:
        return [
            *alloc("mem_vec_0", "mem_vec_1", "mem_vec_2"),
            tile("a", "mem_vec_0", 0, load()),
            tile("scratch", "mem_vec_1", at, "pl.tile.create([16, 64], dtype=pl.FP32, target_memory=pl.Mem.Vec)"),
            tile("m", "mem_vec_2", 2 * SIZE, "pl.tile.row_max(a, scratch)", "[16, 1]", 64),
        ]

    assert found(lines(SIZE), "m") == []
    assert found(lines(0), "m")[0] == "overlap"


@pytest.mark.parametrize(("first", "second", "kinds"), [("FP32", "BF16", []), ("BF16", "FP32", ["in place"])])
def test_a_cast_may_only_narrow_in_place(first: str, second: str, kinds: list[str]) -> None:
    start = load() if first == "FP32" else "pl.tile.cast(z, pl.BF16)"
    lines = [*alloc("mem_vec_0", "mem_vec_1"), tile("z", "mem_vec_1", SIZE, load())]
    size = {"FP32": SIZE, "BF16": SIZE // 2}
    lines.append(tile("a", "mem_vec_0", 0, start, size=size[first], dtype=first))
    lines.append(tile("b", "mem_vec_0", 0, f"pl.tile.cast(a, pl.{second})", size=size[second], dtype=second))
    lines.append(tile("c", "mem_vec_1", SIZE, "pl.tile.exp(b)", size=size[second], dtype=second))
    assert found(lines, "c") == kinds


@pytest.mark.parametrize(("platform", "limit"), [("a2a3sim", 188416), ("a5sim", 245760)])
def test_capacity(platform: str, limit: int) -> None:
    def lines(at: int) -> list[str]:
        return [*alloc("mem_vec_0"), tile("a", "mem_vec_0", at, load())]

    assert found(lines(limit - SIZE), "a", platform=platform) == []
    assert found(lines(limit - SIZE + 32), "a", platform=platform) == ["capacity"]


def test_capacities_are_those_of_the_architecture() -> None:
    """Written down twice on purpose; they must agree."""
    from pypto.backend import BackendType

    from pytest_pypto.pypto.backend.handler import handler_for

    for platform, kind in (("a2a3", BackendType.Ascend910B), ("a5", BackendType.Ascend950)):
        assert {space.name: size for space, size in handler_for(kind).capacity.items()} == dict(capacity(platform))


def test_alignment() -> None:
    assert found([*alloc("mem_vec_0"), tile("a", "mem_vec_0", 16, load())], "a") == ["alignment"]


def test_a_tile_larger_than_its_allocation() -> None:
    lines = [*alloc("mem_vec_0", size=SIZE // 2), tile("a", "mem_vec_0", 0, load())]
    assert found(lines, "a") == ["outside its allocation"]


def ring(first: int, second: int | None = None) -> list[str]:
    lines = [f"r: pl.Scalar[pl.INT32] = pl.system.reserve_buffer(name='r', size=8192, base={first})"]
    if second is not None:
        lines.append(f"s: pl.Scalar[pl.INT32] = pl.system.reserve_buffer(name='s', size=8192, base={second})")
    return [*alloc("mem_vec_0"), *lines, tile("a", "mem_vec_0", 16384, load())]


def test_rings_and_tiles_are_apart() -> None:
    assert found(ring(0, 8192), "a") == []
    assert found(ring(0, 4096), "a") == ["overlap"]
    assert found(ring(16384 - 4096), "a") == ["overlap"]


@needs_kit
@pytest.mark.parametrize(
    "path", [p for p in dump_files() if "AllocateMemoryAddr" in p.name], ids=lambda p: "-".join(p.parts[-4:-2])
)
def test_plans_of_the_reference_are_silent(path) -> None:
    if path.parts[-4] == "whiles":
        pytest.skip("this dump uses names that nothing defines")
    report = check_program(pl.loads(str(path)), path.parts[-3])
    assert report.findings == ()


INJECTED = [
    ("softmax", "mem_vec_3", 32768, 0),
    ("softmax", "mem_vec_4", 65536, 32768),
    ("acc_vec", "mem_vec_3", 16384, 0),
    ("ex_c2v_up_down", "mem_vec_4", 16384, 8192),
    ("bi_up_down", "mem_vec_5", 20480, 16384),
]


@needs_kit
@pytest.mark.parametrize(("program", "base", "at", "moved"), INJECTED)
def test_a_buffer_moved_onto_another_one_is_found(program: str, base: str, at: int, moved: int) -> None:
    """Every address of one allocation of a real plan is changed."""
    path = next(p for p in dump_files() if p.parts[-4:-2] == (program, "a2a3sim") and "AllocateMemoryAddr" in p.name)
    text = path.read_text()
    changed, count = re.subn(
        rf"pl\.MemRef\({base}, pl\.const\({at}, pl\.INT64\)", f"pl.MemRef({base}, pl.const({moved}, pl.INT64)", text
    )
    assert count
    kinds = {f.kind for f in check_program(pl.parse(changed), "a2a3sim").findings}
    assert kinds & {"overlap", "in place"}
