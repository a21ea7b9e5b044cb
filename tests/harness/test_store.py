"""The store and the two caches that live in it."""

from __future__ import annotations

import multiprocessing
import time
from pathlib import Path

import pytest

from pytest_pypto.harness.store import COMPLETE, Store, digest


def test_borders_between_parts_count() -> None:
    assert digest(["ab", "c"]) != digest(["a", "bc"])
    assert digest(["ab", b"c"]) == digest([b"ab", "c"])


def test_names_of_files_that_are_no_utf_8() -> None:
    assert digest(["\udce4"]) == digest([b"\xe4"])


def test_an_entry_is_made_once(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    made = []

    def make(folder: Path) -> str:
        made.append(folder)
        (folder / "x").write_text("1")
        return "made"

    first = store.build("kind", "key", make)
    second = store.build("kind", "key", make)
    assert (first[1], second[1], len(made)) == ("made", None, 1)
    assert first[0] == second[0] == store.find("kind", "key")


def test_an_unfinished_entry_does_not_count(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with pytest.raises(ZeroDivisionError):
        store.build("kind", "key", lambda folder: (folder / "half").write_text("x") / 0)
    assert store.find("kind", "key") is None
    folder, _ = store.build("kind", "key", lambda folder: None)
    assert [p.name for p in folder.iterdir()] == [COMPLETE]


def _slow(root: str, out: str) -> None:
    def make(folder: Path) -> None:
        with open(out, "a") as log:
            log.write("x")
        time.sleep(0.3)

    Store(Path(root)).build("kind", "key", make)


def test_two_processes_make_it_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_slow, args=(str(tmp_path / "s"), str(log))) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [w.exitcode for w in workers] == [0, 0]
    assert log.read_text() == "x"


def test_the_entries_used_longest_ago_go_first(tmp_path: Path) -> None:
    import os

    store = Store(tmp_path)
    for age, key in enumerate(("new", "middle", "old")):
        folder, _ = store.build("kind", key, lambda f: (f / "data").write_bytes(b"x" * 100))
        os.utime(folder / COMPLETE, (1000 - age, 1000 - age))
    store.find("kind", "old")  # used just now
    assert store.prune(limit=250) == 1
    assert [store.find("kind", k) is not None for k in ("new", "middle", "old")] == [True, False, True]
    assert store.prune(limit=250) == 0


# ---------------------------------------------------------------------------------------------------------------
# Goldens


torch = pytest.importorskip("torch")

from pytest_pypto.harness.cache import GoldenCache  # noqa: E402
from pytest_pypto.harness.fingerprint import golden_key  # noqa: E402

FACTOR = 2.0


def helper(x):
    return x * FACTOR


def uses_helper(t):
    t["o"][:] = helper(t["x"])


def inputs(value: float = 1.0) -> dict[str, object]:
    return {"x": torch.full((4,), value), "o": torch.zeros(4)}


def test_the_key_follows_everything_the_golden_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    key = golden_key(uses_helper, inputs())
    assert key is not None
    assert golden_key(uses_helper, inputs()) == key
    assert golden_key(uses_helper, inputs(2.0)) != key
    monkeypatch.setattr(f"{__name__}.FACTOR", 3.0)
    assert golden_key(uses_helper, inputs()) != key
    monkeypatch.setattr(f"{__name__}.FACTOR", 2.0)
    monkeypatch.setattr(f"{__name__}.helper", lambda x: x + 2)
    assert golden_key(uses_helper, inputs()) != key


def make(n: float, *, default: float = 0.0):
    def golden(t, k=default):
        t["o"][:] = t["x"] * n + k

    return golden


def test_closures_and_defaults_count() -> None:
    keys = {golden_key(make(n, default=d), inputs()) for n in (1.0, 2.0) for d in (0.0, 1.0)}
    assert len(keys) == 4
    assert None not in keys


class Opaque:
    """Its content cannot be seen."""


def test_what_cannot_be_seen_is_not_cached() -> None:
    import tests.kit

    thing = Opaque()

    def opaque(t):
        t["o"][:] = t["x"] * (thing is None)

    def own_module(t):
        t["o"][:] = len(str(tests.kit.KIT))

    assert golden_key(opaque, inputs()) is None
    assert golden_key(own_module, inputs()) is None


def test_library_functions_and_types_are_named() -> None:
    def golden(t):
        t["o"][:] = torch.nn.functional.silu(t["x"]).to(torch.float32) + sum(range(3))

    assert golden_key(golden, inputs()) is not None


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float8_e4m3fn, torch.int8, torch.bool], ids=str)
def test_inputs_of_every_kind(dtype: torch.dtype) -> None:
    def golden(t):
        t["o"] += 1

    one, two = ({"x": torch.full((3,), v).to(dtype), "n": 3, "o": torch.zeros(1)} for v in (0.0, 1.0))
    assert golden_key(golden, one) != golden_key(golden, two) != golden_key(golden, two | {"n": 4})


def test_slow_goldens_are_kept_and_fast_ones_are_not(tmp_path: Path) -> None:
    calls = []

    def golden(t):
        t["o"] += t["x"]

    def counted(t):
        calls.append(1)
        golden(t)

    fast, slow = GoldenCache(Store(tmp_path / "fast")), GoldenCache(Store(tmp_path / "slow"), slow=0.0)
    given = {"x": torch.ones(4), "o": torch.full((4,), 5.0)}
    assert not fast.golden(golden, given).cached
    assert not fast.golden(golden, given).cached
    first, second = slow.golden(golden, given), slow.golden(golden, given)
    assert (first.cached, second.cached) == (False, True)
    for found in (first, second):  # an in-out tensor counts from its own value, cold and cached
        assert torch.equal(found.expected["o"], torch.full((4,), 6.0))
        assert list(found.expected) == ["o"]


@pytest.mark.parametrize("place", [None, 0.0, 0.3, 0.6, 0.999])
def test_a_damaged_golden_is_made_again(tmp_path: Path, place: float | None) -> None:
    cache = GoldenCache(Store(tmp_path), slow=0.0)

    def golden(t):
        t["o"] += 1

    cache.golden(golden, inputs())
    file = next(tmp_path.rglob("golden.pt"))
    damaged = bytearray(file.read_bytes())
    if place is not None:
        damaged[int(place * len(damaged))] ^= 4
    file.write_bytes(b"junk" if place is None else damaged)
    assert not cache.golden(golden, inputs()).cached
    assert cache.golden(golden, inputs()).cached


def test_a_returned_value_survives_the_cache(tmp_path: Path) -> None:
    cache = GoldenCache(Store(tmp_path), slow=0.0)

    def golden(t):
        return (t["x"].sum(), 3)

    cache.golden(golden, inputs())
    assert cache.golden(golden, inputs()).returned == (torch.tensor(4.0), 3)
