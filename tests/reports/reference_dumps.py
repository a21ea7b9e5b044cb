"""How our pass results differ from the reference's, as information: where both made a dump of the same stage.

    python -m pytest_pypto run tests/reports/reference_dumps.py [--only TEXT] [--platform P] [--stages] [KIT]

Per program and platform every pass result is compared function by function with the kit's dump after the pass of the
same name: same text, same structure (names and buffers may differ), same operators in the same order, same addresses.
Prints one line per function that differs (`--stages`: for every stage, otherwise only for the last one), then totals.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pypto import ir

KIT = Path(__file__).resolve().parents[3] / "shared" / "compat"


class Facts(ir.IRVisitor):
    """Operators of a function in order, and the addresses of its tiles."""

    def __init__(self, function: Any) -> None:
        self.operators: list[str] = []
        self.addresses: list[tuple[str, int | None, int]] = []
        self.visit_function(function)

    def visit_call(self, op: Any) -> None:
        self.operators.append(op.op.name)
        super().visit_call(op)

    def visit_assign_stmt(self, op: Any) -> None:
        memref = getattr(op.var.type, "memref", None)
        if memref is not None and isinstance(op.var.type, ir.TileType):
            offset = memref.byte_offset_
            known = offset.value if isinstance(offset, ir.ConstInt) else None
            self.addresses.append((op.var.type.memory_space.name, known, memref.size_))
        super().visit_assign_stmt(op)


def verdict(ours: Any, theirs: Any) -> str:
    """The first of the levels at which two functions agree."""
    if ir.python_print(ours) == ir.python_print(theirs):
        return "same text"
    a, b = Facts(ours), Facts(theirs)
    where = "same addresses" if a.addresses == b.addresses else "other addresses"
    if ir.structural_equal(ours, theirs):
        return f"same structure, {where}"
    if a.operators == b.operators:
        return f"same operators, {where}"
    only_ours, only_theirs = Counter(a.operators) - Counter(b.operators), Counter(b.operators) - Counter(a.operators)
    return f"operators differ (ours more: {dict(only_ours)}, theirs more: {dict(only_theirs)})"


def stages(program: Any, platform: str, options: dict[str, Any]) -> dict[str, Any]:
    """Our program after every pass, by pass name (the later one where a pass runs twice)."""
    from pypto.backend import reset_for_testing, set_backend_type
    from pypto.ir.pass_manager import OptimizationStrategy, PassManager
    from pypto.pypto_core.passes import CallbackInstrument, MemoryPlanner, PassContext
    from pypto.runtime import RunConfig

    made: dict[str, Any] = {}
    reset_for_testing()
    set_backend_type(RunConfig(platform=platform).arch)
    planner = str(options.get("memory_planner", "PYPTO")).split(".")[-1]
    keep = CallbackInstrument(after_pass=lambda p, result: made.__setitem__(p.get_name(), result))
    try:
        with PassContext([keep], memory_planner=getattr(MemoryPlanner, planner)):
            edges = bool(options.get("analyze_auto_scopes_for_deps", False))
            PassManager.get_strategy(OptimizationStrategy.Default, analyze_auto_scopes_for_deps=edges).run_passes(
                program
            )
    finally:
        reset_for_testing()
    return made


def their_stages(passes: Path) -> Iterator[tuple[str, Any]]:
    """(pass name, program) for every dump of the kit that loads."""
    import pypto.language as pl

    for path in sorted(passes.glob("*_after_*.py")):
        try:
            yield path.stem.split("_after_")[1], pl.loads(str(path))
        except Exception as exc:
            print(f"  {path.name} does not load: {type(exc).__name__}")


def compare(folder: Path, sub: Path, options: dict[str, Any], every: bool, totals: Counter[str]) -> None:
    """Print and count the verdicts of one program on one platform."""
    import pypto.language as pl

    ours = stages(pl.loads(str(sub / "passes" / "00_frontend.py")), sub.name, options)
    theirs = [(name, p) for name, p in their_stages(sub / "passes") if name in ours]
    for i, (name, program) in enumerate(theirs):
        for function in program.functions.values():
            mine = ours[name].get_function(function.name)
            found = "only theirs" if mine is None else verdict(mine, function)
            totals[found.split(" (")[0]] += 1
            if found != "same text" and (every or i == len(theirs) - 1):
                print(f"{folder.name}/{sub.name} {name} {function.name}: {found}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kit", nargs="?", type=Path, default=KIT)
    parser.add_argument("--only", default="", help="programs whose name contains this")
    parser.add_argument("--platform", default="", help="one platform")
    parser.add_argument("--stages", action="store_true", help="list differences at every stage, not only at the last")
    args = parser.parse_args()
    if not args.kit.is_dir():
        parser.error(f"no compatibility kit at {args.kit}; give its directory")
    index = json.loads((args.kit / "index.json").read_text(encoding="utf-8"))
    totals: Counter[str] = Counter()
    for sub in sorted(p.parent for p in args.kit.glob("*/*/passes") if args.only in p.parents[1].name):
        facts = index.get(sub.parent.name, {})
        if args.platform in ("", sub.name) and "distributed" not in facts.get("features", []):
            compare(sub.parent, sub, facts.get("compile_options", {}), args.stages, totals)
    for found, count in totals.most_common():
        print(f"{count:6}  {found}")


if __name__ == "__main__":
    main()
