"""Rows of propagation_of_chaos.py: means with standard errors, and fitted rates."""

from _report import Report

from meanfield.chaos import Rate

__all__ = ["Sampled"]

ERRORS = 4.5  # standard errors


class Sampled(Report):
    """A report of sampled numbers with their 95 % intervals.

    Parameters
    ----------
    exponents : float
        Tolerance of exponents.
    """

    def __init__(self, exponents: float):
        super().__init__(["claim", "case", "95 % interval"], digits=4)
        self._exponents = exponents

    def agrees(self, claim, case, predicted, mean, error, beyond=0.0) -> None:
        """A mean: to 4.5 standard errors, and what the prediction leaves out."""
        self.compare(
            claim,
            case,
            f"[{mean - 1.96 * error:.3f}, {mean + 1.96 * error:.3f}]",
            predicted=predicted,
            measured=mean,
            tolerance=ERRORS * error + beyond,
            random=True,
        )

    def rate(self, claim, case, rate: Rate, predicted: float, tolerance=None) -> None:
        """An exponent of n."""
        low, high = rate.interval
        self.compare(
            claim,
            case,
            f"[{low:.3f}, {high:.3f}]",
            predicted=predicted,
            measured=rate.exponent,
            tolerance=tolerance or self._exponents,
        )
