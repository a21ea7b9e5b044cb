"""Reference artifacts of the kit as directories that the device runs, with golden's inputs as numpy arrays."""

from __future__ import annotations

import importlib.util
import json
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch

from pytest_pypto.pypto.runtime.torch_bridge import as_array, as_tensor

from ..kit import KIT

PLATFORMS = ("a2a3sim", "a5sim")
WRONG_TEXT = {"valid_len"}
"""The reference loses the valid shape of the argument, so its kernel stores whole rows."""


@cache
def index() -> dict[str, Any]:
    """The kit's index."""
    found: dict[str, Any] = json.loads((KIT / "index.json").read_text(encoding="utf-8"))
    return found


def programs() -> list[str]:
    """Programs with numbers and a reference artifact that its own compiler can read."""
    if not KIT.is_dir():
        return []
    return [n for n in sorted(index()) if n not in WRONG_TEXT and _usable(KIT / n)]


def _usable(folder: Path) -> bool:
    facts = index()[folder.name]
    if "distributed" in facts.get("features", []):
        return False
    sub = folder / "a2a3sim"
    if not (sub / "artifact" / "kernels").is_dir():
        return False
    *_, last = sorted((sub / "passes").glob("*.py"))
    return f"a2a3sim/passes/{last.name}" not in facts.get("reference_cannot_load", [])


@cache
def golden(name: str) -> ModuleType:
    """golden.py of a program."""
    spec = importlib.util.spec_from_file_location(f"golden_{name}", KIT / name / "golden.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def artifact(name: str, platform: str, folder: Path) -> Path:
    """A copy of the reference artifact with the last dump, which holds the host program."""
    sub, out = KIT / name / platform, folder / f"{name}_{platform}"
    shutil.copytree(sub / "artifact", out)
    facts = json.loads((sub / "passes" / "index.json").read_text(encoding="utf-8"))
    last = facts["passes"][-1]
    kept = next(f for f, same in facts["kept"].items() if last in same or Path(f).stem == last)
    (out / "passes_dump").mkdir()
    shutil.copy(sub / "passes" / kept, out / "passes_dump" / f"{Path(last).stem}.py")
    return out


def cases(name: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """(inputs, inputs after golden) for every seed whose reference text is right."""
    module, facts = golden(name), index()[name]
    wrong = set(facts.get("reference_wrong", {}).get("seeds", []))
    for seed in (s for s in getattr(module, "SEEDS", (0,)) if s not in wrong):
        start = module.inputs(seed)
        wanted = clones(start)
        module.golden(wanted)
        yield start, wanted


def clones(values: dict[str, Any]) -> dict[str, Any]:
    """Copies of the tensors."""
    return {k: v.clone() if torch.is_tensor(v) else v for k, v in values.items()}


def arrays(values: dict[str, Any]) -> list[Any]:
    """Tensors as numpy arrays that share their memory."""
    return [as_array(v) if torch.is_tensor(v) else v for v in values.values()]


def tensors(value: Any) -> Any:
    """What a run returned, as torch."""
    if isinstance(value, np.ndarray):
        return as_tensor(value)
    return tuple(tensors(v) for v in value) if isinstance(value, tuple) else value


def assert_agrees(name: str, got: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Every tensor within golden's tolerance, every number equal."""
    module = golden(name)
    for key, want in wanted.items():
        have = got[key]
        pairs = list(zip(have, want, strict=True)) if isinstance(want, tuple) else [(have, want)]
        for h, w in pairs:
            if not torch.is_tensor(w):
                assert h == w, key
                continue
            assert (h.shape, h.dtype) == (w.shape, w.dtype), key
            torch.testing.assert_close(
                h.double(),
                w.double(),
                rtol=module.RTOL,
                atol=module.ATOL,
                equal_nan=True,
                msg=lambda m, k=key: f"{k}: {m}",
            )
