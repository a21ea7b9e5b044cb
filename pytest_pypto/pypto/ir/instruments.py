"""Pass instruments under their public import name."""

from __future__ import annotations

from ..lazy import lazy_names

_BASE = __name__.rsplit(".", 2)[0]
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        f"{_BASE}.passes.instruments": "CallbackInstrument PassInstrument VerificationInstrument ReportInstrument "
        "DiagnosticInstrument VerificationMode make_roundtrip_instrument",
        f"{_BASE}.passes.context": "PassContext VerificationLevel",
        f"{_BASE}.passes.diagnostic_types": "DiagnosticPhase DiagnosticCheck DiagnosticCheckSet",
    },
    globals(),
)
