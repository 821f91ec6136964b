"""ETD4RK of Krogstad with an error estimate of order 3 that costs nothing."""

from .scheme import Scheme, Term

__all__ = ["Krogstad"]

_HALF = 0.5

Krogstad = Scheme(
    name="Krogstad",
    order=4,
    estimate_order=3,
    nodes=(_HALF, _HALF, 1.0),
    stages=(
        {0: [Term(1 / 2, 1, _HALF)]},
        {0: [Term(1 / 2, 1, _HALF), Term(-1, 2, _HALF)], 1: [Term(1, 2, _HALF)]},
        {0: [Term(1, 1, 1), Term(-2, 2, 1)], 2: [Term(2, 2, 1)]},
    ),
    solution={
        0: [Term(1, 1, 1), Term(-3, 2, 1), Term(4, 3, 1)],
        1: [Term(2, 2, 1), Term(-4, 3, 1)],
        2: [Term(2, 2, 1), Term(-4, 3, 1)],
        3: [Term(-1, 2, 1), Term(4, 3, 1)],
    },
    estimate={3: [Term(1, 2, 1), Term(-4, 3, 1)], 4: [Term(-1, 2, 1), Term(4, 3, 1)]},
    reference="Krogstad, J. Comput. Phys. 203 (2005) 72-88, equation (51)",
)
