"""Parts of a change: they sum to the whole, and are those of integrals taken another way."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from scipy.integrate import quad_vec
from test_networks import ALBERT, BERT, GPT2, IDS, LLAMA, spread

import meanfield as mf
from meanfield.networks import (
    EffectiveRank,
    Energy,
    MeanCosine,
    MeanNorm,
    Quantity,
    attribute,
)

QUANTITIES = [MeanCosine(), Energy(3.0), MeanNorm(), EffectiveRank()]


@pytest.mark.parametrize("shape", [(5, 8), (9, 4)])
@pytest.mark.parametrize("quantity", QUANTITIES, ids=lambda q: q.name)
def test_gradients_are_those_of_differences(quantity, shape):
    rng = np.random.default_rng(0)
    h, e = rng.standard_normal((2, *shape))
    step = 1e-5
    difference = (quantity.value(h + step * e) - quantity.value(h - step * e)) / (2 * step)
    assert (quantity.gradient(h) * e).sum() == pytest.approx(difference, rel=1e-7)


@pytest.mark.repeats
@pytest.mark.parametrize("quantity", QUANTITIES, ids=lambda q: q.name)
@pytest.mark.parametrize("config", [BERT, ALBERT, GPT2, LLAMA], ids=lambda c: c["model_type"])
def test_parts_sum_to_the_whole_and_heads_to_attention(config, quantity):
    net = spread(config)
    trace = net.trace([IDS, IDS[1:]])
    found = attribute(trace, quantity, net)
    for k, hidden in enumerate(trace.hidden):
        values = [quantity.value(h) for h in hidden]
        np.testing.assert_allclose(found.value[k], values, rtol=1e-12)
        np.testing.assert_allclose(found.change[k], np.diff(values), rtol=1e-9, atol=1e-12)
    absolute = np.abs(found.part).sum("sublayer")
    assert (np.abs(found.residual) <= 1e-6 * absolute).all()
    total = found.part.sum("sublayer")
    np.testing.assert_allclose(total, found.change, atol=1e-6 * float(absolute.max()))
    attention = found.part.sel(sublayer="attention")
    np.testing.assert_allclose(found.head_part.sum("head"), attention, rtol=1e-9, atol=1e-12)
    plain = attribute(trace, quantity)
    np.testing.assert_allclose(plain.part.sum("sublayer"), plain.change, rtol=1e-9, atol=1e-12)
    assert "head_part" not in plain and "bias" not in plain.sublayer


def test_parts_of_heads_are_integrals_by_another_rule():
    net = spread(GPT2)
    trace, quantity = net.trace([IDS]), Energy(3.0)
    stream, heads = trace.streams[0], net.layer(0).heads_of(trace.streams[0][0])
    parts = [*heads.added, np.broadcast_to(heads.bias, stream[0].shape)]
    added = sum(parts)
    wanted, _ = quad_vec(
        lambda s: np.array([(quantity.gradient(stream[0] + s * added) * p).sum() for p in parts]),
        0, 1, epsabs=1e-12, epsrel=1e-10,
    )  # fmt: skip
    found = attribute(trace, quantity, net)
    np.testing.assert_allclose(found.head_part[0, 0], wanted[:-1], rtol=1e-6)


def test_a_linear_quantity_has_the_parts_of_its_increments():
    @dataclass(frozen=True)
    class First(Quantity):
        name: ClassVar[str] = "first coordinate"

        def value(self, h):
            return float(h[:, 0].mean())

        def gradient(self, h):
            return np.eye(1, h.shape[1]).repeat(len(h), axis=0) / len(h)

    net = spread(BERT)
    trace = net.trace([IDS])
    found = attribute(trace, First(), net)
    for index in range(net.depth):
        at = trace.steps.index(("attention", index + 1))
        heads = net.layer(index).heads_of(trace.streams[0][at - 1])
        np.testing.assert_allclose(
            found.head_part[0, index], heads.added[..., 0].mean(axis=1), rtol=1e-9, atol=1e-13
        )
        outer = net[f"encoder.layer.{index}.output.dense.bias"]
        bias = float(found.part.sel(text=0, block=index + 1, sublayer="bias"))
        assert bias == pytest.approx(heads.bias[0] + outer[0], rel=1e-9)


def test_a_network_in_single_precision_has_the_same_parts_to_its_rounding():
    net = spread(BERT)
    single = net.replaced(lambda w: w)
    single.weights = {name: w.astype(np.float32) for name, w in net.weights.items()}
    exact, found = (attribute(one.trace([IDS]), MeanCosine(), one) for one in (net, single))
    np.testing.assert_allclose(found.part, exact.part, atol=1e-5)
    np.testing.assert_allclose(found.residual, 0, atol=1e-5)


def test_what_is_not_smooth_is_told():
    @dataclass(frozen=True)
    class Sign(Quantity):
        name: ClassVar[str] = "sign of a coordinate"

        def value(self, h):
            return float(np.sign(h[:, 0]).sum())

        def gradient(self, h):
            return np.ones_like(h) * np.sin(1 / (np.abs(h) + 1e-9))

    net = spread(BERT)
    with pytest.warns(mf.UnresolvedWarning, match="sign of a coordinate"):
        attribute(net.trace([IDS]), Sign(), net)


def test_what_has_no_sublayers_or_is_no_quantity_is_refused():
    net = spread(BERT)
    trace = net.trace([IDS])
    with pytest.raises(TypeError, match="quantity"):
        attribute(trace, "mean cosine")
    with pytest.raises(TypeError, match="trace"):
        attribute(trace.hidden[0], MeanCosine())
    with pytest.raises(ValueError, match="hidden states only"):
        attribute(mf.networks.Trace(trace.hidden, trace.words), MeanCosine())
    with pytest.raises(ValueError, match="beta"):
        Energy(-1.0)
    with pytest.raises(ValueError, match="tolerance"):
        attribute(trace, MeanCosine(), tolerance=0)
