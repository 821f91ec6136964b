"""Schemes as tables: the weights of Runge-Kutta methods, exponential in L or explicit."""

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from ..core.cached import cached_property
from .attempt import HIGHEST_PHI

CANCELLED_WEIGHTS = 1e-12  # sums of weights below this are rounding: the weights cancel
PROBE_NODE = (5 + 5**0.5) / 10  # irrational, as a period of N could be a simple part of the step


class Term(NamedTuple):
    """Summand of a weight: factor * phi_order(node * z)."""

    factor: float
    order: int
    node: float


class DenseOutput(NamedTuple):
    """Weights of further stages, and of the interpolation polynomial within a step.

    The slopes k_j are those of u, u_1, ..., u_s and u', then of the further stages at `nodes`. With
    D = u' - u and w_i = dt sum_j weights_ij k_j, the state after the fraction s of the step is

        u + s (D + (1 - s) (dt k_0 - D + s (2 D - dt k_0 - dt k_(s+1) + (1 - s) w)))
        w = w_1 + s (w_2 + (1 - s) (w_3 + s w_4))
    """

    nodes: tuple[float, ...]
    stages: tuple[dict[int, float], ...]
    weights: tuple[dict[int, float], ...]


class ParabolicOutput(NamedTuple):
    """Interpolation within a step of an exponential scheme, by a parabola in time for N.

    The parabola P has the values N(u), sum_j middle_j N(u_j) and N(u') at the beginning, in the
    middle and at the end of a step. The state after the fraction s of the step is

        e(s) + s^2 (3 - 2 s) (u' - e(1)),    e(s) = e^(s z) u + dt int_0^s e^((s - r) z) P(r) dr

    u' - e(1) has the size of an error estimate; this term makes the state continuous. No further
    evaluation of N is needed. The order at any time is 4, including the errors of the steps, if
    `middle` is correct to order 2.
    """

    middle: dict[int, float]


class Table(NamedTuple):
    """A scheme for compiled code.

    nodes : (m,) the distinct nodes
    decay : (s + 1,) index of the node in the factor e^(node z) of u: each stage, then the solution
    entries : (terms, 5) rows of [row, slot, index of the node, order of phi, factor]
    columns : (s + 2, slots) the stage that each slot of each row refers to. Slots are used in
        pairs: a slot that completes a pair repeats a stage, with weight 0; unused pairs are -1.
        (s + 3, slots) with a second estimate
    stability : bound of the step size times the rate
    joined : whether the error is the root of the sum of the squares of two estimates
    """

    nodes: np.ndarray
    decay: np.ndarray
    entries: np.ndarray
    columns: np.ndarray
    stability: float
    joined: bool


@dataclass(frozen=True, repr=False)
class Scheme:
    """An explicit exponential Runge-Kutta scheme for du/dt = L u + N(u), L diagonal.

        u_i = e^(c_i z) u + dt sum_{j < i} a_ij(z) N(u_j),        z = dt L,  i = 1, ..., s
        u'  = e^z u + dt sum_j b_j(z) N(u_j),   u_0 = u
        error estimate = dt sum_j e_j(z) N(u_j),  j = 0, ..., s + 1,  u_{s+1} = u'

    N(u') is the first stage of the next step, so that the estimate needs no further evaluation. A
    classical Runge-Kutta scheme is the case z = 0, with L u as a part of N.

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
        Weights of a second estimate E3. With E5 the first one, the error is then
        E5^2 / sqrt(E5^2 + E3^2 / 100), as in DOP853.
    joined : bool
        Whether the error is sqrt(E5^2 + E3^2) instead.
    explicit : bool
        Whether L u is part of N.
    dense : DenseOutput or ParabolicOutput, optional
        Interpolation within a step, of an explicit or an exponential scheme. Without it steps end
        at every output.
    stability : float
        Bound of the step size times the largest rate of a mode: of transport minus damping, or for
        an explicit scheme of transport and damping together. Beyond it the highest modes grow, at
        first unnoticed by the norm of errors.
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
    joined: bool = False
    explicit: bool = False
    stability: float = 2.2
    dense: DenseOutput | ParabolicOutput | None = None

    def __post_init__(self) -> None:
        self.known.setdefault(self.name, self)

    def __repr__(self) -> str:
        return self.name

    @property
    def evaluations(self) -> int:
        """Evaluations of N per step."""
        return len(self.nodes) + 1

    @property
    def sees_time(self) -> bool:
        """True if the error estimate notices an N that depends on t alone.

        Stages at the same time have the same N(t), so that the estimate is 0 if the weights of the
        stages at each time cancel. This is so for Krogstad and for HochbruckOstermann, whose
        estimates compare N at the last stage with N(u'), both at t + dt: they do not see the
        quadrature error in time.
        """
        times = 0.0, *self.nodes, 1.0
        sums: defaultdict[tuple[float, int, float], float] = defaultdict(float)
        for stage, terms in self.estimate.items():
            for term in terms:
                sums[times[stage], term.order, term.node] += term.factor
        return any(abs(total) > CANCELLED_WEIGHTS for total in sums.values())

    @cached_property
    def in_time(self) -> "Scheme":
        """The scheme for an N that depends on t, with an error estimate that notices time.

        In the second case one more stage, at t + c dt, serves the estimate alone, which is

            dt phi_1(z) (N(u_c) - P(c)),

        joined with the estimate of the scheme as the second one. P is the parabola of
        `ParabolicOutput`; u_c follows from the line through N(u) and the middle value of P. Both
        estimates are of order 4 in dt.

        Raises
        ------
        ValueError
            If the estimate does not see time, and `dense` is no ParabolicOutput.
        """
        if self.sees_time:
            return self
        if not isinstance(self.dense, ParabolicOutput):
            raise ValueError(
                f"The error estimate of {self.name} does not see how parameters depend on time, as "
                "its weights cancel at each time. Give it dense=ParabolicOutput(...), by which "
                "there is another one; or dt, the length of steps; or choose DormandPrince."
            )
        c, end, middle = PROBE_NODE, len(self.nodes) + 1, self.dense.middle
        line, probe = Term(2 * c * c, 2, c), {0: [Term(c, 1, c)]}
        estimate = {end: 1.0, 0: -(1 - c) * (1 - 2 * c), end + 1: -c * (2 * c - 1)}
        for j, factor in ((0, -1.0), *middle.items()):
            probe[j] = [*probe.get(j, ()), line._replace(factor=factor * line.factor)]
        for j, factor in middle.items():
            estimate[j] = estimate.get(j, 0.0) - 4 * c * (1 - c) * factor
        return replace(
            self,
            nodes=(*self.nodes, c),
            stages=(*self.stages, probe),
            estimate=_constants(estimate),
            second_estimate={j + (j == end): terms for j, terms in self.estimate.items()},
            joined=True,
        )

    def rows(self) -> list[dict[int, list[Term]]]:
        """The weights of every stage, of the solution and of the estimates."""
        second = [] if self.second_estimate is None else [self.second_estimate]
        return [*self.stages, self.solution, self.estimate, *second]

    @cached_property
    def explicit_weights(self) -> list[np.ndarray]:
        """The weights of `rows` at L = 0, as arrays: those of an explicit scheme."""
        sums = ({j: sum(t.factor for t in terms) for j, terms in r.items()} for r in self.rows())
        return [row_of(weights) for weights in sums]

    @cached_property
    def table(self) -> "Table":
        """The scheme as arrays for compiled code."""
        rows = self.rows()
        all_nodes = {t.node for row in rows for terms in row.values() for t in terms}
        nodes = sorted(all_nodes | {*self.nodes, 1.0})
        slots = max(-(-len(row) // 2) * 2 for row in rows)
        columns = np.full((len(rows), slots), -1)
        entries = []
        for i, row in enumerate(rows):
            padded = -(-len(row) // 2) * 2
            columns[i, :padded] = (list(row) * 2)[:padded]
            for slot, terms in enumerate(row.values()):
                entries += [(i, slot, nodes.index(t.node), t.order, t.factor) for t in terms]
        if max(entry[3] for entry in entries) > HIGHEST_PHI:
            raise ValueError(f"phi functions are available up to order {HIGHEST_PHI}, not beyond.")
        decay = np.array([nodes.index(node) for node in (*self.nodes, 1.0)])
        numbers = np.array(nodes, dtype=float), np.array(entries, dtype=float)  # floats only
        return Table(numbers[0], decay, numbers[1], columns, self.stability, self.joined)


def row_of(weights: dict[int, float]) -> np.ndarray:
    """Array of the weights of stages 0, 1, ..., up to the last stage that has one."""
    return np.array([weights.get(stage, 0.0) for stage in range(max(weights) + 1)])


def _constants(weights: dict[int, float]) -> dict[int, list[Term]]:
    """Constant weights as multiples of phi_1(z), which is 1 for an explicit scheme, z = 0."""
    return {stage: [Term(weight, 1, 1)] for stage, weight in weights.items()}


# Exponential schemes -----------------------------------------------------------------------

Krogstad = Scheme(
    name="Krogstad",
    order=4,
    estimate_order=3,
    nodes=(0.5, 0.5, 1.0),
    stages=(
        {0: [Term(1 / 2, 1, 0.5)]},
        {0: [Term(1 / 2, 1, 0.5), Term(-1, 2, 0.5)], 1: [Term(1, 2, 0.5)]},
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
    dense=ParabolicOutput({1: 1 / 2, 2: 1 / 2}),  # errors of order 2 of these stages cancel
)
"""ETD4RK of Krogstad with an error estimate of order 3 that costs nothing."""


def _minus(terms: list[Term]) -> list[Term]:
    return [term._replace(factor=-term.factor) for term in terms]


_LAST = [Term(1 / 2, 2, 0.5), Term(-1, 3, 1), Term(1 / 4, 2, 1), Term(-1 / 2, 3, 0.5)]

HochbruckOstermann = Scheme(
    name="HochbruckOstermann",
    order=4,
    estimate_order=3,
    nodes=(0.5, 0.5, 1.0, 0.5),
    stages=(
        {0: [Term(1 / 2, 1, 0.5)]},
        {0: [Term(1 / 2, 1, 0.5), Term(-1, 2, 0.5)], 1: [Term(1, 2, 0.5)]},
        {0: [Term(1, 1, 1), Term(-2, 2, 1)], 1: [Term(1, 2, 1)], 2: [Term(1, 2, 1)]},
        {
            0: [Term(1 / 2, 1, 0.5), Term(-1 / 4, 2, 0.5), *_minus(_LAST)],
            1: _LAST,
            2: _LAST,
            3: [Term(1 / 4, 2, 0.5), *_minus(_LAST)],
        },
    ),
    solution={
        0: [Term(1, 1, 1), Term(-3, 2, 1), Term(4, 3, 1)],
        3: [Term(-1, 2, 1), Term(4, 3, 1)],
        4: [Term(4, 2, 1), Term(-8, 3, 1)],
    },
    estimate={3: [Term(1, 2, 1), Term(-4, 3, 1)], 5: [Term(-1, 2, 1), Term(4, 3, 1)]},
    reference="Hochbruck and Ostermann, SIAM J. Numer. Anal. 43 (2005) 1069-1090, eq. (5.19)",
    dense=ParabolicOutput({4: 1.0}),
)
"""The five-stage scheme of Hochbruck and Ostermann, of order 4 also for stiff problems."""


# The classical scheme ----------------------------------------------------------------------

# fmt: off
_STAGES = (
    {0: 0.05260015195876773},
    {0: 0.0197250569845379, 1: 0.0591751709536137},
    {0: 0.02958758547680685, 2: 0.08876275643042054},
    {0: 0.2413651341592667, 2: -0.8845494793282861, 3: 0.924834003261792},
    {0: 0.037037037037037035, 3: 0.17082860872947386, 4: 0.12546768756682242},
    {0: 0.037109375, 3: 0.17025221101954405, 4: 0.06021653898045596,
     5: -0.017578125},
    {0: 0.03709200011850479, 3: 0.17038392571223998, 4: 0.10726203044637328,
     5: -0.015319437748624402, 6: 0.008273789163814023},
    {0: 0.6241109587160757, 3: -3.3608926294469414, 4: -0.868219346841726,
     5: 27.59209969944671, 6: 20.154067550477894, 7: -43.48988418106996},
    {0: 0.47766253643826434, 3: -2.4881146199716677, 4: -0.590290826836843,
     5: 21.230051448181193, 6: 15.279233632882423, 7: -33.28821096898486,
     8: -0.020331201708508627},
    {0: -0.9371424300859873, 3: 5.186372428844064, 4: 1.0914373489967295,
     5: -8.149787010746927, 6: -18.52006565999696, 7: 22.739487099350505,
     8: 2.4936055526796523, 9: -3.0467644718982196},
    {0: 2.273310147516538, 3: -10.53449546673725, 4: -2.0008720582248625,
     5: -17.9589318631188, 6: 27.94888452941996, 7: -2.8589982771350235,
     8: -8.87285693353063, 9: 12.360567175794303, 10: 0.6433927460157636},
)
_SOLUTION = {
    0: 0.054293734116568765, 5: 4.450312892752409, 6: 1.8915178993145003,
    7: -5.801203960010585, 8: 0.3111643669578199, 9: -0.1521609496625161,
    10: 0.20136540080403034, 11: 0.04471061572777259,
}
_ESTIMATE = {
    0: 0.01312004499419488, 5: -1.2251564463762044, 6: -0.4957589496572502,
    7: 1.6643771824549864, 8: -0.35032884874997366, 9: 0.3341791187130175,
    10: 0.08192320648511571, 11: -0.022355307863886294,
}
_SECOND_ESTIMATE = _SOLUTION | {
    0: -0.18980075407240762, 8: -0.4226823213237919, 11: 0.02265179219836082,
}
_DENSE_STAGES = (
    {0: 0.056167502283047954, 6: 0.25350021021662483, 7: -0.2462390374708025,
     8: -0.12419142326381637, 9: 0.15329179827876568, 10: 0.00820105229563469,
     11: 0.007567897660545699, 12: -0.008298},
    {0: 0.03183464816350214, 5: 0.028300909672366776, 6: 0.053541988307438566,
     7: -0.05492374857139099, 10: -0.00010834732869724932, 11: 0.0003825710908356584,
     12: -0.00034046500868740456, 13: 0.1413124436746325},
    {0: -0.42889630158379194, 5: -4.697621415361164, 6: 7.683421196062599,
     7: 4.06898981839711, 8: 0.3567271874552811, 12: -0.0013990241651590145,
     13: 2.9475147891527724, 14: -9.15095847217987},
)
_DENSE_WEIGHTS = (
    {0: -8.428938276109013, 5: 0.5667149535193777, 6: -3.0689499459498917,
     7: 2.38466765651207, 8: 2.117034582445028, 9: -0.871391583777973,
     10: 2.2404374302607883, 11: 0.6315787787694688, 12: -0.08899033645133331,
     13: 18.148505520854727, 14: -9.194632392478356, 15: -4.436036387594894},
    {0: 10.427508642579134, 5: 242.28349177525817, 6: 165.20045171727028,
     7: -374.5467547226902, 8: -22.113666853125306, 9: 7.733432668472264,
     10: -30.674084731089398, 11: -9.332130526430229, 12: 15.697238121770845,
     13: -31.139403219565178, 14: -9.35292435884448, 15: 35.81684148639408},
    {0: 19.985053242002433, 5: -387.0373087493518, 6: -189.17813819516758,
     7: 527.8081592054236, 8: -11.57390253995963, 9: 6.8812326946963,
     10: -1.0006050966910838, 11: 0.7777137798053443, 12: -2.778205752353508,
     13: -60.19669523126412, 14: 84.32040550667716, 15: 11.99229113618279},
    {0: -25.69393346270375, 5: -154.18974869023643, 6: -231.5293791760455,
     7: 357.6391179106141, 8: 93.40532418362432, 9: -37.45832313645163,
     10: 104.0996495089623, 11: 29.8402934266605, 12: -43.53345659001114,
     13: 96.32455395918828, 14: -39.17726167561544, 15: -149.72683625798564},
)
# fmt: on


DormandPrince = Scheme(
    name="DormandPrince",
    order=8,
    estimate_order=7,
    nodes=tuple(sum(weights.values()) for weights in _STAGES),
    stages=tuple(_constants(weights) for weights in _STAGES),
    solution=_constants(_SOLUTION),
    estimate=_constants(_ESTIMATE),
    second_estimate=_constants(_SECOND_ESTIMATE),
    explicit=True,
    stability=5.5,  # the half disc of radius 5.96 is stable
    reference="Hairer, Norsett and Wanner, Solving Ordinary Differential Equations I, DOP853",
    dense=DenseOutput((0.1, 0.2, 0.7777777777777778), _DENSE_STAGES, _DENSE_WEIGHTS),
)
"""The Runge-Kutta scheme of order 8 of Dormand and Prince, with dense output of order 7."""
