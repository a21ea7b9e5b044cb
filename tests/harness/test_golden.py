"""Golden functions: they work on clones, before anything else, and must leave something to compare with."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from pytest_pypto.harness.errors import CaseError  # noqa: E402
from pytest_pypto.harness.golden import compute_golden  # noqa: E402


def inputs() -> dict[str, object]:
    return {"x": torch.arange(4.0), "n": 3, "o": torch.zeros(4)}


def test_it_works_on_clones() -> None:
    given = inputs()

    def golden(t):
        t["x"] += 1
        t["o"][:] = t["x"]

    found = compute_golden(golden, given)
    assert torch.equal(given["x"], torch.arange(4.0))
    assert torch.equal(found.expected["o"], torch.arange(1.0, 5.0))
    assert sorted(found.expected) == ["o", "x"]


def test_only_what_it_touches_is_expected() -> None:
    found = compute_golden(lambda t: t["o"].copy_(t["x"]), inputs())
    assert (list(found.expected), found.returned) == (["o"], None)


def test_writing_equal_values_counts_as_touching() -> None:
    def golden(t):
        t["o"][:] = 0.0

    assert torch.equal(compute_golden(golden, inputs()).expected["o"], torch.zeros(4))


def test_a_name_may_get_a_new_tensor() -> None:
    def golden(t):
        t["o"] = t["x"] * 2

    assert torch.equal(compute_golden(golden, inputs()).expected["o"], torch.arange(4.0) * 2)


def test_a_returned_value_and_a_returned_dict() -> None:
    assert compute_golden(lambda t: t["x"].sum(), inputs()).returned == 6.0
    found = compute_golden(lambda t: {"o": t["x"] + 1}, inputs())
    assert (found.returned, list(found.expected)) == (None, ["o"])


def nothing(t):
    """Computes and throws away."""
    t["x"] + 1


@pytest.mark.parametrize(
    ("golden", "message"),
    [
        (nothing, r"golden 'nothing' wrote no tensor and returned nothing.*t\['out'\]\[:\] = "),
        (lambda t: t.update(extra=t["x"]), "golden '<lambda>' added 'extra'; the names are 'x', 'n', 'o'"),
        (lambda t: t.__delitem__("o"), "golden '<lambda>' removed 'o'"),
        (lambda t: t.update(o=torch.zeros(5)), r"gives 'o' shape \(5,\), the program has shape \(4,\)"),
        (lambda t: t.update(o=torch.zeros(1)), r"gives 'o' shape \(1,\), the program has shape \(4,\)"),
        (
            lambda t: t.update(o=torch.zeros(4).double()),
            "gives 'o' dtype torch.float64, the program has dtype torch.fl",
        ),
        (lambda t: {"p": t["x"]}, "golden '<lambda>' added 'p'"),
    ],
)
def test_wrong_goldens(golden, message: str) -> None:
    with pytest.raises(CaseError, match=message):
        compute_golden(golden, inputs())


def test_its_own_errors_pass_through() -> None:
    def golden(t):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        compute_golden(golden, inputs())


def test_an_input_may_be_the_returned_value() -> None:
    """An in-place operation gives back the tensor it wrote; a tensor that nothing wrote is a value."""
    x = torch.arange(4.0)
    assert torch.equal(compute_golden(lambda t: t["x"], {"x": x}).returned, x)
    assert compute_golden(lambda t: t["x"].zero_(), {"x": x}).returned is None
