"""Passes, pass context and instruments under the vendor's import name.

Every pass has a factory in snake case: `passes.convert_to_ssa()` gives the pass. A pass that this implementation does
not have is an error that says so.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..lazy import lazy_names

if TYPE_CHECKING:
    from ..passes.base import Pass

_BASE = __name__.rsplit(".", 2)[0] + ".passes"
_get, _listing = lazy_names(
    __name__,
    {
        f"{_BASE}.base": "Pass create_function_pass create_program_pass",
        f"{_BASE}.context": "PassContext VerificationLevel MemoryPlanner RuntimeKind runtime_kind_to_name "
        "runtime_kind_from_name get_default_verification_level get_default_diagnostic_phase",
        f"{_BASE}.manager": "PassPipeline",
        f"{_BASE}.properties": "IRProperty IRPropertySet PassProperties",
        f"{_BASE}.instruments": "PassInstrument CallbackInstrument VerificationInstrument VerificationMode "
        "ReportInstrument DiagnosticInstrument",
        f"{_BASE}.diagnostic_types": "Diagnostic DiagnosticCheck DiagnosticCheckSet DiagnosticPhase DiagnosticSeverity "
        "SSAErrorType TypeCheckErrorType NestedCallErrorType UseAfterDefErrorType",
        f"{_BASE}.diagnostics": "DiagnosticCheckRegistry",
        f"{_BASE}.verification": "PropertyVerifierRegistry VerificationError verify_properties run_verifier "
        "get_default_verify_properties get_structural_properties get_verified_properties",
    },
    globals(),
)


def _factory(name: str, class_name: str, module: str) -> Callable[[], Pass]:
    def make() -> Pass:
        from ..passes.pipeline import load_pass

        found = load_pass(class_name, module)
        if found is None:
            raise NotImplementedError(
                f"pass {class_name} is not part of the embedded compiler, which works on one chip; "
                "PassManager.get_strategy() lists the passes it has"
            )
        return found()

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"The pass {class_name}."
    return make


def auto_derive_task_dependencies(analyze_auto_scopes: bool = False) -> Pass:
    """The pass AutoDeriveTaskDependencies; it does nothing unless told to look at automatic scopes."""
    from ..passes.auto_derive_task_dependencies import AutoDeriveTaskDependencies

    return AutoDeriveTaskDependencies(analyze_auto_scopes)


def __getattr__(name: str) -> Any:
    from ..passes.pipeline import ORDER

    found = next(((c, m) for c, m in ORDER if m == name), None)
    if found is None:  # `import pypto.passes.manager as m` asks this module, which hides the package of that name
        return sys.modules[f"{_BASE}.{name}"] if f"{_BASE}.{name}" in sys.modules else _get(name)
    made = globals()[name] = _factory(name, *found)
    return made


def __dir__() -> list[str]:
    from ..passes.pipeline import ORDER

    return sorted({*_listing(), *(m for _, m in ORDER)})
