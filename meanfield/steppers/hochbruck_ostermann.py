"""The five-stage scheme of Hochbruck and Ostermann, of order 4 also for stiff problems."""

from .scheme import Scheme, Term

__all__ = ["HochbruckOstermann"]

_HALF = 0.5


def _minus(terms: list[Term]) -> list[Term]:
    return [term._replace(factor=-term.factor) for term in terms]


_LAST = [Term(1 / 2, 2, _HALF), Term(-1, 3, 1), Term(1 / 4, 2, 1), Term(-1 / 2, 3, _HALF)]

HochbruckOstermann = Scheme(
    name="HochbruckOstermann",
    order=4,
    estimate_order=3,
    nodes=(_HALF, _HALF, 1.0, _HALF),
    stages=(
        {0: [Term(1 / 2, 1, _HALF)]},
        {0: [Term(1 / 2, 1, _HALF), Term(-1, 2, _HALF)], 1: [Term(1, 2, _HALF)]},
        {0: [Term(1, 1, 1), Term(-2, 2, 1)], 1: [Term(1, 2, 1)], 2: [Term(1, 2, 1)]},
        {
            0: [Term(1 / 2, 1, _HALF), Term(-1 / 4, 2, _HALF), *_minus(_LAST)],
            1: _LAST,
            2: _LAST,
            3: [Term(1 / 4, 2, _HALF), *_minus(_LAST)],
        },
    ),
    solution={
        0: [Term(1, 1, 1), Term(-3, 2, 1), Term(4, 3, 1)],
        3: [Term(-1, 2, 1), Term(4, 3, 1)],
        4: [Term(4, 2, 1), Term(-8, 3, 1)],
    },
    estimate={3: [Term(1, 2, 1), Term(-4, 3, 1)], 5: [Term(-1, 2, 1), Term(4, 3, 1)]},
    reference="Hochbruck and Ostermann, SIAM J. Numer. Anal. 43 (2005) 1069-1090, eq. (5.19)",
)
