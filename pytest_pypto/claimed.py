"""Around each marked test: its claim is open while it runs, and a test that passes without any check is told so."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from pytest_pypto.selection import variant_of

if TYPE_CHECKING:
    from pytest_pypto.harness.claims import Claim

CHECK_FIXTURE = "pypto_check"
FORGOTTEN = "{test} asked for pypto_check and passed without calling it: nothing was checked; call pypto_check(...)"
UNPROVEN = (
    "{test} is marked with {claim} and passed, but it ran and compiled nothing through the fixtures, so the marker "
    "says nothing; check a program, or remove the marker"
)
FIRST_ONLY = (
    "this test runs on {first} only, not on {others}: it cannot be parametrised, because it is a method of "
    "unittest.TestCase, or asks for its fixtures while it runs; ask for pypto_platform in the signature of a function"
)


class PytestPyptoWarning(pytest.PytestWarning):
    """A test that passed proves less than it seems to."""


_CLAIM: pytest.StashKey[Claim] = pytest.StashKey()


def concerns(item: pytest.Item) -> bool:
    """Whether a test makes a claim, or promises a check."""
    variant = variant_of(item)
    marked = variant is not None and bool(variant.split or variant.direction)
    return marked or CHECK_FIXTURE in getattr(item, "fixturenames", ())


@contextmanager
def claiming(item: pytest.Item) -> Iterator[None]:
    """Hold everything that is checked inside to the markers of a test."""
    from pytest_pypto.harness import claims

    variant = variant_of(item)
    claim = claims.Claim(variant.split, variant.direction) if variant is not None else claims.Claim()
    item.stash[_CLAIM] = claim
    with claims.claiming(claim):
        yield


def finish(item: pytest.Item) -> None:
    """After a test that passed: warn when it checked nothing, and fail when what it compiled breaks its claim.

    Raises:
        Failed: no compiled program keeps the claim.
    """
    claim = item.stash.get(_CLAIM, None)
    if claim is None or claim.checks:
        return
    if claim and claim.last_word is not None:
        claim.last_word()
    if CHECK_FIXTURE in getattr(item, "fixturenames", ()):
        item.warn(PytestPyptoWarning(FORGOTTEN.format(test=item.nodeid)))
    elif claim and claim.last_word is None:
        item.warn(PytestPyptoWarning(UNPROVEN.format(test=item.nodeid, claim=claim)))


def watch(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Take part in the session when one of the tests needs it; other sessions pay nothing."""
    if not config.pluginmanager.hasplugin("pypto-claims") and any(map(concerns, items)):
        config.pluginmanager.register(Claims(), "pypto-claims")


class Claims:
    """The hooks around each test."""

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Keep the claim of a test open while it runs."""
        if not concerns(item):
            yield
            return
        with claiming(item):
            yield

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        """Look back at a test that passed."""
        outcome: Any = yield
        if outcome.excinfo is None:
            try:
                finish(item)
            except BaseException as exc:  # a wrapper must not raise: it becomes the outcome of the test
                outcome.force_exception(exc)
