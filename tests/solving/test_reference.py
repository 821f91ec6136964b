"""Against numbers from elsewhere: printed tables, exact solutions, another discretisation."""

import numpy as np
import pytest
from collocation import Potential, Sa, Usa, collocate

import meanfield as mf
from meanfield.steppers import EXPONENTIAL

RTOL = 1e-10  # of every run here unless it says otherwise

# Moments 1, 2, 3 and the interaction energy from characteristics with 512 nodes, 12 digits.
DETERMINISTIC = [
    ("USA", 1, 0.25, [0.285415739419, 0.135451699055, 0.019900322220, 0.681571452773]),
    ("USA", 1, 0.5, [0.324661662144, 0.180193280135, 0.050210256948, 0.697068130476]),
    ("USA", 1, 1.0, [0.413114479931, 0.300065476267, 0.153465479571, 0.742250572679]),
    ("SA", 1, 0.25, [0.276781151744, 0.119903384069, 0.009909397770, 0.678282338715]),
    ("SA", 1, 0.5, [0.305792061956, 0.143232320472, 0.023186763249, 0.688677179595]),
    ("SA", 1, 1.0, [0.370331501177, 0.201331773257, 0.062822621940, 0.716132948844]),
    ("SA", 4, 0.25, [0.263294463412, 0.116130006206, 0.002667910354, 1.603540348309]),
    ("SA", 4, 1.0, [0.306752739640, 0.180564341796, 0.018223191281, 1.694971698072]),
    ("USA", 4, 0.25, [0.429504839197, 0.577876425476, 0.523522484082, 2.775193563320]),
]
# Moments 1, 2, 3 under USA with noise from 1 + 0.1 cos, by Fourier-Galerkin and Radau, 10 digits.
NOISY = [
    (1, 3.0, 1, [0.0630207650, 0.0025577156, 0.0000926146]),
    (1, 3.0, 5, [0.1574319001, 0.0222379220, 0.0025078064]),
    (1, 3.0, 20, [0.8543067643, 0.5907004651, 0.3456319432]),
    (1, 1.5, 1, [0.0451641464, 0.0010244670, 0.0000192360]),
    (1, 1.5, 5, [0.0300641302, 0.0005318546, 0.0000073020]),
    (1, 1.5, 20, [0.0065534198, 0.0000252746, 0.0000000756]),
    (2, 2.0, 5, [0.2164754417, 0.0602526365, 0.0129497648]),
    (2, 2.0, 20, [0.9131297116, 0.7398296294, 0.5396615219]),
    (5, 0.2, 1, [0.0440635088, 0.0032838320, 0.0001977408]),
    (5, 0.2, 20, [0.0036258063, 0.0000223343, 0.0000001109]),
]
# Moments 1, 2, 3 of stationary densities under USA, and F - F_uniform: 12 digits.
STATIONARY = [
    (1, 2.0, [0.543821203160, 0.205285340932, 0.061687841131, -1.070871312839e-2]),
    (1, 3.0, [0.863961101266, 0.601702334173, 0.355358317638, -1.267350879807e-1]),
    (1, 5.0, [0.947430064422, 0.808897477395, 0.627385709840, -2.985914802946e-1]),
    (2, 2.0, [0.914665945171, 0.741190700828, 0.541106139231, -2.292009972298e-1]),
    (2, 4.0, [0.977549558827, 0.913628180443, 0.817382167920, -6.411807017969e-1]),
    (5, 0.19, [0.775321066363, 0.631131123999, 0.468040162296, -5.002095247791e-2]),
    (5, 0.25, [0.954629361242, 0.878598862255, 0.770712094042, -1.847173041868]),
]
ORDER_PARAMETER = {  # r = I_1(kappa r)/I_0(kappa r)
    2.1: 0.303689343806,
    2.5: 0.589707987783,
    3.0: 0.724158717626,
    4.0: 0.831462024754,
    6.0: 0.902152779065,
    10.0: 0.945542186423,
}


def moments(density):
    """The first three, (..., 3)."""
    return np.stack([density.moment(k) for k in (1, 2, 3)], axis=-1)


def two_bumps(x):
    """No symmetry: every coefficient is complex."""
    return 1 + 0.3 * np.cos(x) + 0.1 * np.cos(2 * x) + 0.05 * np.sin(3 * x)


# Tables ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("drift", "beta", "t", "expected"), DETERMINISTIC)
def test_moments_and_energy_of_the_deterministic_flow(drift, beta, t, expected):
    """The error of a run is a small multiple of rtol; the table adds half a unit of its last."""
    mu0 = mf.Circle(32).density(lambda x: 1 + 0.5 * np.cos(x) + 0.2 * np.cos(2 * x))
    model = mf.Transformer(getattr(mf, drift)(beta))
    run = mf.solve(model, mu0, (0, t), t_eval=[t], rtol=RTOL)
    energy = run.observables.interaction_energy.values[-1]
    np.testing.assert_allclose([*moments(run.final).real, energy], expected, rtol=0, atol=RTOL)


@pytest.mark.parametrize(("beta", "kappa", "t", "expected"), NOISY)
def test_moments_of_the_noisy_flow(beta, kappa, t, expected):
    """Half a unit of the tenth digit, and as much for the run."""
    mu0 = mf.Circle(16).density(lambda x: 1 + 0.1 * np.cos(x))
    run = mf.solve(mf.Transformer(mf.USA(beta), kappa), mu0, (0, t), t_eval=[t], rtol=RTOL)
    np.testing.assert_allclose(moments(run.final), expected, rtol=0, atol=1e-10)


@pytest.mark.repeats
@pytest.mark.parametrize(("beta", "kappa", "expected"), STATIONARY)
def test_stationary_densities_are_reached(beta, kappa, expected):
    """A steady state solves the scheme exactly; what is left is the rate 1e-10 over the gap."""
    circle, model = mf.Circle(64), mf.Transformer(mf.USA(beta), kappa)
    run = mf.solve(model, circle.von_mises(0.3, 2.0), (0, 1000), rtol=1e-12, until="steady")
    assert run.status == "steady" and run.t[-1] < 300
    np.testing.assert_allclose(np.abs(moments(run.final)), expected[:3], rtol=0, atol=1e-8)
    uniform = mf.solve(model, circle.uniform(), (0, 1), t_eval=[0])
    excess = run.observables.free_energy[-1] - uniform.observables.free_energy[0]
    assert float(excess) == pytest.approx(expected[3], abs=1e-11)  # stationary: second order


@pytest.mark.parametrize(("kappa", "r"), ORDER_PARAMETER.items())
def test_noisy_kuramoto_orders_as_much_as_it_should(kappa, r):
    """The order parameter, and the second moment, 1 - 2/kappa exactly."""
    mu0 = mf.Circle(32).von_mises(1.0, 1.0)
    model = mf.Transformer(mf.Kuramoto(), kappa)
    run = mf.solve(model, mu0, (0, 1000), rtol=1e-12, until="steady")
    found = np.abs(moments(run.final)[:2])
    assert run.status == "steady"
    np.testing.assert_allclose(found, [r, 1 - 2 / kappa], rtol=0, atol=1e-8)


@pytest.mark.parametrize("kappa", [0.5, 1.5, 1.9])
def test_noisy_kuramoto_forgets_everything_below_the_threshold(kappa):
    """At kappa < 2 the uniform density is the only stationary one."""
    mu0 = mf.Circle(64).von_mises(1.0, 5.0)
    model = mf.Transformer(mf.Kuramoto(), kappa)
    run = mf.solve(model, mu0, (0, 1000), rtol=RTOL, until="steady")
    assert run.status == "steady"
    assert np.abs(run.final.coefficients[1:]).max() < 1e-8


# Exact solution ----------------------------------------------------------------------------


@pytest.mark.parametrize("direction", [0.0, 0.7, -2.5])
def test_ott_antonsen(direction):
    """Kuramoto without noise keeps c_k = z^k; r^2/(1 - r^2) grows like e^t."""
    r0, z = 0.2, np.exp(1j * direction)
    k = np.arange(129)
    mu0 = mf.Circle(128).fourier((r0 * np.conj(z)) ** k)
    run = mf.solve(mf.Transformer(mf.Kuramoto()), mu0, (0, 3), t_eval=[1, 2, 3], rtol=1e-12)
    for t, density in zip(run.t, run, strict=True):
        odds = np.exp(t) * r0**2 / (1 - r0**2)
        r = np.sqrt(odds / (1 + odds))
        for k in (1, 2, 3, 5, 10, 40):
            assert abs(density.moment(k) - (r * z) ** k) <= 1e-10


# Another discretisation --------------------------------------------------------------------

CASES = {
    "USA with noise": (mf.USA(4.0), Usa(4.0), 6.0, 0.4, 192),
    "SA with noise": (mf.SA(4.0), Sa(4.0), 6.0, 1.0, 96),
    "USA repelling": (mf.USA(-2.0), Usa(-2.0), 10.0, 1.0, 64),
    "SA without noise": (mf.SA(2.0), Sa(2.0), np.inf, 1.0, 128),
    "SA at large beta": (mf.SA(200.0), Sa(200.0), 30.0, 0.5, 192),
    "Kuramoto": (mf.Kuramoto(), Usa(0.0), 2.5, 2.0, 64),
    "a potential": (
        mf.Interaction(lambda t: t + 0.7 * t**2 - 0.4 * t**3),
        Potential(lambda t: 1 + 1.4 * t - 1.2 * t**2),
        5.0,
        1.0,
        64,
    ),
}


@pytest.mark.repeats
@pytest.mark.parametrize("name", CASES)
def test_another_discretisation_agrees(name):
    """Both are accurate to about 1e-11: 2e-10 leaves a factor for either."""
    drift, other, kappa, t, n = CASES[name]
    times = [t / 3, t]
    expected = collocate(other, kappa, two_bumps, times, n=n)
    mu0 = mf.Circle(16).density(two_bumps)
    run = mf.solve(mf.Transformer(drift, kappa), mu0, (0, t), t_eval=times, rtol=RTOL)
    found = np.array([moments(density) for density in run])
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-10)


def test_an_implicit_solver_agrees_where_the_equation_is_stiff():
    """USA at beta = 20: growth rates up to 3e7 against noise of the same size, by Radau."""
    beta, t = 20.0, 2e-7
    kappa = 1 / 2e6
    expected = collocate(Usa(beta), kappa, two_bumps, [t], n=64, method="Radau")
    mu0 = mf.Circle(16).density(two_bumps)
    run = mf.solve(mf.Transformer(mf.USA(beta), kappa), mu0, (0, t), t_eval=[t], rtol=RTOL)
    np.testing.assert_allclose(moments(run.final), expected[0], rtol=0, atol=2e-10)


ORDERS = {
    "USA with noise": (mf.USA(2.0), Usa(2.0), 6.0, 0.5, 128),
    "USA without noise": (mf.USA(1.0), Usa(1.0), np.inf, 1.0, 96),
    "SA with noise": (mf.SA(4.0), Sa(4.0), 2.0, 1.0, 64),
}


@pytest.mark.repeats
@pytest.mark.parametrize("scheme", EXPONENTIAL, ids=lambda scheme: scheme.name)
@pytest.mark.parametrize("name", ORDERS)
def test_fixed_steps_converge_at_the_order_of_the_scheme(scheme, name):
    """The equation itself, against the other discretisation, which is exact to 1e-12."""
    drift, other, kappa, t, n = ORDERS[name]
    expected = collocate(other, kappa, two_bumps, [t], n=n)[0]
    mu0, model = mf.Circle(16).density(two_bumps), mf.Transformer(drift, kappa)
    errors = []
    for steps in (8, 16, 32):
        options = {"dt": t / steps, "rtol": 1e-12, "min_degree": 64, "scheme": scheme}
        run = mf.solve(model, mu0, (0, t), t_eval=[t], **options)
        assert run.stats["steps"] == steps
        errors.append(np.abs(moments(run.final) - expected).max())
    assert errors[-1] > 1e-11, "the reference hides the order"
    orders = np.log2(np.array(errors[:-1]) / np.array(errors[1:]))
    np.testing.assert_allclose(orders, scheme.order, atol=0.1)
