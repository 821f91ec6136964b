"""Attacks: how many things are tried, and what came of them, counted by outcome.

Each attack tries a few things in the suite, and many by `make attack` (pytest --attack), at the end
of which a table says how often each outcome was seen. Seeds are fixed.
"""

from collections import Counter

import pytest


class Attack:
    """The counts of one attack.

    Attributes
    ----------
    long : bool
        Whether this is `make attack`.
    outcomes : Counter
        How often each outcome was seen.
    failures : list of str
        The outcomes that must not be: what was tried and what came of it.
    """

    def __init__(self, long: bool):
        self.long = long
        self.outcomes: Counter[str] = Counter()
        self.failures: list[str] = []

    def rounds(self, short: int, long: int) -> int:
        """How many things to try in the suite, and by `make attack`."""
        return long if self.long else short

    def skip(self, reason: str) -> None:
        """Skip the test, which then tries nothing."""
        self.outcomes["skipped"] += 1
        pytest.skip(reason)

    def saw(self, outcome: str) -> None:
        """Count an outcome that may be."""
        self.outcomes[outcome] += 1

    def failed(self, outcome: str, what: str) -> None:
        """Count an outcome that must not be; the test fails at its end and says which they were."""
        self.outcomes[f"FAILED: {outcome}"] += 1
        self.failures.append(f"{outcome}: {what}")

    def report(self, outcomes) -> None:
        """Count pairs (outcome, what was tried); "FAILED outcome" must not be."""
        for outcome, what in outcomes:
            if outcome.startswith("FAILED "):
                self.failed(outcome.removeprefix("FAILED "), what)
            else:
                self.saw(outcome)


@pytest.fixture
def attack(request):
    """An `Attack`, which must be without failures at the end of the test."""
    attack = Attack(request.config.getoption("--attack"))
    yield attack
    request.node.user_properties.append(("attack", dict(attack.outcomes)))
    assert attack.outcomes, "nothing was tried"
    assert not attack.failures, "\n".join(attack.failures[:40])
