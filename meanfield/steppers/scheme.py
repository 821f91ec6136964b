"""A scheme is a table: the weights of an explicit exponential Runge-Kutta method."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .phi import HIGHEST

__all__ = ["Scheme", "Term"]


class Term(NamedTuple):
    """factor * phi_order(node * z), one summand of a weight."""

    factor: float
    order: int
    node: float


@dataclass(frozen=True)
class Scheme:
    """An explicit exponential Runge-Kutta scheme for du/dt = L u + N(u), L diagonal.

        u_i = e^(c_i z) u + dt sum_{j < i} a_ij(z) N(u_j),        z = dt L,  i = 1, ..., s
        u'  = e^z u + dt sum_j b_j(z) N(u_j),   u_0 = u
        error estimate = dt sum_j e_j(z) N(u_j),  j = 0, ..., s + 1,  u_{s+1} = u'

    N(u') serves as the first stage of the next step, so the estimate costs nothing.

    Attributes
    ----------
    name : str
    order : int
        Order of u'.
    estimate_order : int
        Order of u' + estimate, the embedded scheme.
    nodes : tuple of float
        c_1, ..., c_s.
    stages : tuple of {j: [Term, ...]}
        a_ij for i = 1, ..., s.
    solution, estimate : {j: [Term, ...]}
        b_j and e_j.
    reference : str
    """

    name: str
    order: int
    estimate_order: int
    nodes: tuple[float, ...]
    stages: tuple[dict[int, list[Term]], ...]
    solution: dict[int, list[Term]]
    estimate: dict[int, list[Term]]
    reference: str

    @property
    def evaluations(self) -> int:
        """Evaluations of N per step."""
        return len(self.nodes) + 1

    def rows(self) -> list[dict[int, list[Term]]]:
        """The weights of every stage, of the solution and of the estimate."""
        return [*self.stages, self.solution, self.estimate]

    def table(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The scheme as arrays for compiled code.

        Returns
        -------
        nodes : (m,) the distinct nodes
        decay : (s + 1,) index of the node of each stage, and of the solution (node 1)
        entries : (terms, 5) rows of [row, column, node index, order of phi, factor]
        """
        used = {t.node for row in self.rows() for terms in row.values() for t in terms}
        distinct = sorted(used | {*self.nodes, 1.0})
        decay = [distinct.index(node) for node in (*self.nodes, 1.0)]
        entries = [
            (i, j, distinct.index(term.node), term.order, term.factor)
            for i, row in enumerate(self.rows())
            for j, terms in row.items()
            for term in terms
        ]
        orders = [entry[3] for entry in entries]
        if max(orders) > HIGHEST:
            raise ValueError(f"phi functions are available up to order {HIGHEST}; got {orders}.")
        return np.array(distinct), np.array(decay), np.array(entries)
