"""A scheme is a table: the weights of a Runge-Kutta method, exponential in L or not."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from .phi import HIGHEST

__all__ = ["DenseOutput", "Scheme", "Term"]


class Term(NamedTuple):
    """factor * phi_order(node * z), one summand of a weight."""

    factor: float
    order: int
    node: float


class DenseOutput(NamedTuple):
    """Weights of further stages, and of the polynomial within a step that they complete.

    The slopes k are those of u, u_1, ..., u_s and u', then of the further stages at `nodes`. With
    D = u' - u and w_i = dt sum_j weights_ij k_j the state after the part s of the step is

        u + s (D + (1 - s) (dt k_0 - D + s (2 D - dt k_0 - dt k_(s+1) + (1 - s) w)))
        w = w_1 + s (w_2 + (1 - s) (w_3 + s w_4))
    """

    nodes: tuple[float, ...]
    stages: tuple[dict[int, float], ...]
    weights: tuple[dict[int, float], ...]


class Table(NamedTuple):
    """A scheme for compiled code.

    nodes : (m,) the distinct nodes
    decay : (s + 1,) which of them e^(node z) each stage, and the solution, multiplies u by
    entries : (terms, 5) rows of [row, slot, node, order of phi, factor]
    columns : (s + 2, slots) the stage that each slot of each row refers to. A spare slot that
        fills up a pair repeats a stage, with weight 0; unused pairs are -1. One row more for a
        second estimate
    stability : the largest step times rate
    """

    nodes: np.ndarray
    decay: np.ndarray
    entries: np.ndarray
    columns: np.ndarray
    stability: float


@dataclass(frozen=True)
class Scheme:
    """An explicit exponential Runge-Kutta scheme for du/dt = L u + N(u), L diagonal.

        u_i = e^(c_i z) u + dt sum_{j < i} a_ij(z) N(u_j),        z = dt L,  i = 1, ..., s
        u'  = e^z u + dt sum_j b_j(z) N(u_j),   u_0 = u
        error estimate = dt sum_j e_j(z) N(u_j),  j = 0, ..., s + 1,  u_{s+1} = u'

    N(u') serves as the first stage of the next step, so the estimate costs nothing. A classical
    Runge-Kutta scheme is one with z = 0, and L u in N.

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
    second_estimate : {j: [Term, ...]}
        Weights of an estimate E3 beside the first, E5: the error is then
        E5^2 / sqrt(E5^2 + E3^2 / 100), as in DOP853.
    explicit : bool
        Whether L u is part of N.
    dense : DenseOutput, optional
        The state within a step; only for explicit schemes.
    stability : float
        Bound of the step size times the largest rate: at which transport moves a mode in excess
        of its damping, or for an explicit scheme of transport and damping together. Beyond, the
        highest modes grow, too weak for the norm of errors to see in time.
    """

    known: ClassVar[dict[str, "Scheme"]] = {}  # all schemes by their names

    name: str
    order: int
    estimate_order: int
    nodes: tuple[float, ...]
    stages: tuple[dict[int, list[Term]], ...]
    solution: dict[int, list[Term]]
    estimate: dict[int, list[Term]]
    reference: str
    second_estimate: dict[int, list[Term]] | None = None
    explicit: bool = False
    stability: float = 2.2
    dense: DenseOutput | None = None

    def __post_init__(self):
        self.known.setdefault(self.name, self)

    @property
    def evaluations(self) -> int:
        """Evaluations of N per step."""
        return len(self.nodes) + 1

    def rows(self) -> list[dict[int, list[Term]]]:
        """The weights of every stage, of the solution and of the estimates."""
        second = [] if self.second_estimate is None else [self.second_estimate]
        return [*self.stages, self.solution, self.estimate, *second]

    def table(self) -> "Table":
        """The scheme as arrays for compiled code."""
        rows = self.rows()
        used = {t.node for row in rows for terms in row.values() for t in terms}
        nodes = sorted(used | {*self.nodes, 1.0})
        slots = max(-(-len(row) // 2) * 2 for row in rows)
        columns = np.full((len(rows), slots), -1)
        entries = []
        for i, row in enumerate(rows):
            padded = -(-len(row) // 2) * 2
            columns[i, :padded] = (list(row) * 2)[:padded]
            for slot, terms in enumerate(row.values()):
                entries += [(i, slot, nodes.index(t.node), t.order, t.factor) for t in terms]
        if max(entry[3] for entry in entries) > HIGHEST:
            raise ValueError(f"phi functions are available up to order {HIGHEST}, not beyond.")
        decay = np.array([nodes.index(node) for node in (*self.nodes, 1.0)])
        return Table(np.array(nodes), decay, np.array(entries), columns, self.stability)
