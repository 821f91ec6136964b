"""What `probe` measures, against sums over tokens that are written out here."""

import numpy as np
import pytest
from test_networks import ALBERT, BERT, GPT2, IDS, LLAMA, spread

import meanfield as mf
from meanfield.networks import Trace, probe
from meanfield.networks.clustering import modes_of, renyi_centres
from meanfield.networks.nulls import NULL_MODELS

MOST = {"rtol": 1e-10, "atol": 1e-12}


def unit(h):
    return h / np.sqrt((h**2).sum(axis=-1))[..., None]


@pytest.fixture(scope="module")
def clouds():
    """Hidden states of two texts: tokens that gather about three places, layer by layer."""
    rng = np.random.default_rng(0)
    places = 3 * rng.standard_normal((3, 5))
    return [
        np.array([rng.standard_normal((n, 5)) + k * places[np.arange(n) % 3] for k in range(3)])
        for n in (14, 9)
    ]


@pytest.fixture(scope="module")
def found(clouds):
    return probe(clouds, betas=(0.5, 3.0), angles=(0.4, 1.0), bins=10, causal=True)


def test_energies_ranks_and_cosines_are_their_sums(clouds, found):
    for text, hidden in enumerate(clouds):
        for layer, h in enumerate(hidden):
            x, here = unit(h), found.isel(text=text, layer=layer)
            n = len(x)
            cosines = [x[i] @ x[j] for i in range(n) for j in range(n) if i != j]
            assert float(here.mean_cosine) == pytest.approx(np.mean(cosines), rel=1e-12)
            shares = np.histogram(cosines, np.linspace(-1, 1, 11))[0] / len(cosines)
            np.testing.assert_allclose(here.cosine_share, shares, **MOST)
            np.testing.assert_allclose(here.bin, np.arange(-0.9, 1, 0.2), **MOST)  # middles
            for beta in (0.5, 3.0):
                total = sum(np.exp(beta * (a @ b)) for a in x for b in x)
                energy = float(here.energy.sel(beta=beta))
                assert energy == pytest.approx(total / (2 * beta * n**2), rel=1e-12)
            p = np.linalg.eigvalsh(x.T @ x / n)
            assert float(here.effective_rank) == pytest.approx(np.exp(-p @ np.log(p)), rel=1e-10)
            lengths = np.sqrt((h**2).sum(axis=1))
            assert float(here.norm) == pytest.approx(lengths.mean(), rel=1e-12)
            assert float(here.norm_spread) == pytest.approx(lengths.std(), rel=1e-12)


def test_clusters_and_centres_are_those_of_the_package_and_of_their_definition(clouds, found):
    for layer, h in enumerate(clouds[0]):
        x, here = unit(h), found.isel(text=0, layer=layer)
        for angle in (0.4, 1.0):
            labels = mf.cluster_labels(mf.Tokens(x), angle)
            assert int(here.clusters.sel(angle=angle)) == labels.max() + 1
            between = np.arccos(np.clip(x @ x.T, -1, 1))
            strong = [j for j in range(len(x)) if (between[j, :j] > angle).all()]
            assert int(here.strong_renyi_centres.sel(angle=angle)) == len(strong)
            centres: list[int] = []
            for j in range(len(x)):
                centres += [j] * all(between[j, c] > angle for c in centres)
            assert int(here.renyi_centres.sel(angle=angle)) == len(centres)
    assert "renyi_centres" not in probe(clouds)
    antipodes = np.array([[1.0, -1.0], [-1.0, 1.0]])  # at pi, which is not farther than pi
    assert renyi_centres(antipodes, np.pi) == (1, 1)


def test_distances_are_those_of_the_package_and_w2_is_at_most_what_tokens_move(clouds, found):
    for text, hidden in enumerate(clouds):
        tokens = [mf.Tokens(unit(h)) for h in hidden]
        for block in (1, 2):
            a, b = tokens[block - 1], tokens[block]
            here = found.sel(text=text, block=block)
            assert float(here.w2) == pytest.approx(float(mf.wasserstein(a, b)), rel=1e-9)
            angles = np.arccos((a.x * b.x).sum(axis=1))
            assert float(here.moved) == pytest.approx(np.sqrt((angles**2).mean()), rel=1e-9)
            assert float(here.w2) <= float(here.moved) * (1 + 1e-12)
            for beta in (0.5, 3.0):
                mmd = float(mf.mmd(a, b, beta))
                assert float(here.mmd.sel(beta=beta)) == pytest.approx(mmd, rel=1e-6)


def test_modes_are_counted_as_on_the_circle_where_their_number_is_proved():
    x = mf.Tokens.uniform(60, 2, rng=4).x
    for beta in (2.0, 20.0, 200.0, 5000.0):
        assert modes_of(x, beta).max() + 1 == len(mf.kernel_modes(mf.Tokens(x), beta))
    far = np.eye(4)[[0, 0, 1, 1, 1, 2]]
    assert modes_of(far, 50.0).tolist() == [1, 1, 0, 0, 0, 2]  # the largest first


def test_two_modes_that_have_just_parted_are_two():
    """Two points at the angle 2 phi have two modes where sin(phi)^2/cos(phi) > 1/beta."""
    beta = 20.0
    critical = np.arccos((np.sqrt(1 + 4 * beta**2) - 1) / (2 * beta))
    for factor, modes in ((0.98, 1), (1 + 2e-4, 2)):  # 0.07 bandwidths apart
        phi = factor * critical
        x = np.array([[np.cos(phi), np.sin(phi)], [np.cos(phi), -np.sin(phi)]])
        assert modes_of(x, beta).max() + 1 == len(mf.kernel_modes(mf.Tokens(x), beta)) == modes


def test_every_token_is_told_the_mode_that_it_reaches():
    x, beta = mf.Tokens.uniform(50, 3, rng=1).x, 12.0
    y = x
    for _ in range(3000):
        y = np.exp(beta * (y @ x.T)) @ x
        y /= np.sqrt((y**2).sum(axis=1))[:, None]
    labels = modes_of(x, beta)
    np.testing.assert_array_equal(labels[:, None] == labels, y @ y.T > 1 - 1e-6)
    assert np.bincount(labels).tolist() == sorted(np.bincount(labels), reverse=True)
    assert labels.max() >= 2


def test_one_cluster_has_one_of_everything():
    h = np.ones((2, 4, 3)) * np.arange(1, 5)[:, None]
    found = probe(h, causal=True)
    for name in ("mean_cosine", "effective_rank", "clusters", "modes", "renyi_centres"):
        np.testing.assert_allclose(found[name], 1, **MOST)
    assert renyi_centres(np.eye(3), 1.0) == (3, 3)


@pytest.mark.parametrize("config", [BERT, ALBERT, GPT2, LLAMA])
def test_heads_add_up_to_what_attention_adds_and_spectra_are_those_of_their_matrices(config):
    net = spread(config)
    trace = net.trace([IDS], attention=True)
    found = probe(trace, net, modes=False, distances=False)
    stream = trace.streams[0]
    for index in range(net.depth):
        at = trace.steps.index(("attention", index + 1))
        heads, h = net.layer(index).heads_of(stream[at - 1]), stream[at - 1]
        added = heads.added.sum(axis=0) + heads.bias
        np.testing.assert_allclose(added, stream[at] - stream[at - 1], rtol=0, atol=1e-11)
        logits = heads.logits
        seen = np.tril(np.ones((5, 5))) if net.layer(0).causal else np.ones((5, 5))
        weights = np.exp(logits - logits.max(axis=-1, keepdims=True)) * seen
        weights /= weights.sum(axis=-1, keepdims=True)
        np.testing.assert_allclose(weights, trace.attention[0][index], rtol=0, atol=1e-11)
        here = found.sel(text=0, block=index + 1)
        size = heads.queries.shape[-1]
        squares = [(a**2).sum(axis=(1, 2)) / 5 for a in (heads.queries, heads.keys)]
        beta = np.sqrt(squares[0] * squares[1] / size)
        np.testing.assert_allclose(here.head_beta, beta, **MOST)
        x = unit(h)
        for k in range(layer_heads := net.layer(index).heads):
            energy = np.exp(beta[k] * (x @ x.T)).mean() / (2 * beta[k])
            assert float(here.head_log_energy[k]) == pytest.approx(np.log(energy), rel=1e-9)
            pairs = [(i, j) for i in range(5) for j in range(5) if seen[i, j]]
            design = np.array([[x[i] @ x[j], *np.eye(5)[i]] for i, j in pairs])
            target = np.array([logits[k, i, j] for i, j in pairs])
            by_all, by_rows = (
                np.linalg.lstsq(matrix, target, rcond=None) for matrix in (design, design[:, 1:])
            )
            assert float(here.head_slope[k]) == pytest.approx(by_all[0][0], rel=1e-7)
            left, whole = (
                ((target - matrix @ one[0]) ** 2).sum()
                for matrix, one in ((design, by_all), (design[:, 1:], by_rows))
            )
            assert float(here.head_slope_share[k]) == pytest.approx(1 - left / whole, abs=1e-9)
        assert len(here.head_beta) == layer_heads
    assert ("renyi_centres" in found) == net.layer(0).causal


def matrices_of(net, config, index):
    """output V and Q^T K/sqrt(k) of every head as d x d matrices, from the names of tensors."""
    if config is LLAMA:
        n, groups = f"layers.{index}.self_attn.", 2
        gain = 4 * net[f"layers.{index}.input_layernorm.weight"]
        q, k, v = (net[f"{n}{r}_proj.weight"] * gain for r in "qkv")
        out, heads = net[f"{n}o_proj.weight"], 4
    else:
        n, groups, heads = f"encoder.layer.{index}.attention.", 1, 2
        q, k, v = (net[f"{n}self.{r}.weight"] for r in ("query", "key", "value"))
        out = net[f"{n}output.dense.weight"]
    size = len(q) // heads
    found = []
    for head in range(heads):
        mine, theirs = (slice(g * size, (g + 1) * size) for g in (head, head // groups))
        found.append((out[:, mine] @ v[theirs], q[mine].T @ k[theirs] / np.sqrt(size)))
    return found


@pytest.mark.parametrize("config", [BERT, LLAMA])
def test_spectra_are_those_of_dense_matrices(config):
    net = spread(config)
    spectra = net.layer(1).spectra()
    for head, pair in enumerate(matrices_of(net, config, 1)):
        for name, M in zip(("value", "key"), pair, strict=True):
            singular = spectra[f"{name}_singular"][head]
            dense = np.linalg.svd(M, compute_uv=False)
            np.testing.assert_allclose(singular, dense[: len(singular)], rtol=1e-9, atol=1e-12)
            values = np.linalg.eigvalsh((M + M.T) / 2)
            values = values[np.argsort(-np.abs(values))]
            some = spectra[f"{name}_symmetric"][head]
            np.testing.assert_allclose(some, np.sort(values[: len(some)])[::-1], atol=1e-10)


def test_entropies_and_sinks_of_weights():
    net = spread(GPT2)
    trace = net.trace([IDS], attention=True)
    found = probe(trace, modes=False, distances=False)  # causal, as the weights tell
    weights = trace.attention[0][1, 0]
    entropy = np.mean([-sum(a * np.log(a) for a in row if a > 0) for row in weights])
    here = found.sel(text=0, block=2).isel(head=0)
    assert float(here.entropy) == pytest.approx(entropy, rel=1e-12)
    most = np.mean(np.log([1, 2, 3, 4, 5]))
    assert float(here.entropy_share) == pytest.approx(entropy / most, rel=1e-12)
    received = weights.mean(axis=0)
    assert float(here.sink_share) == pytest.approx(received.max(), rel=1e-12)
    assert int(here.sink_position) == received.argmax()
    assert "renyi_centres" in found
    trace = spread(BERT).trace([IDS], attention=True)
    found = probe(trace, modes=False, distances=False)
    np.testing.assert_allclose(found.entropy_share, found.entropy / np.log(5), **MOST)
    assert "renyi_centres" not in found


def test_null_models_are_drawn_from_the_same_architecture():
    net = spread(BERT)

    def measure(trace, other):
        return probe(trace, other, modes=False, distances=False)

    found = mf.networks.nulls(net, [IDS, IDS[:4]], measure, draws=2, rng=1)
    assert found.mean_cosine.dims == ("null", "draw", "text", "layer")
    own = measure(net.trace([IDS, IDS[:4]]), net)
    turned = found.sel(null="shuffled tokens")
    for text in (0, 1):  # the norms of token embeddings do not know of their order: no positions
        assert not np.allclose(turned.mean_cosine[0, text], own.mean_cosine[text])
    assert not np.allclose(found.value_singular[0, 0], own.value_singular)
    np.testing.assert_allclose(turned.value_singular[1], own.value_singular, **MOST)
    again = mf.networks.nulls(net, [IDS, IDS[:4]], measure, draws=2, rng=1)
    assert again.identical(found)
    with pytest.raises(ValueError, match="random weights"):
        mf.networks.nulls(net, [IDS], measure, kinds=["noise"])


def test_null_models_keep_what_they_say():
    net, ids = spread(BERT), np.array([9, 1, 2, 3, 4, 5, 6, 7, 8])
    drawn = {kind: draw(net, [ids], np.random.default_rng(0)) for kind, draw in NULL_MODELS.items()}
    moved = drawn["shuffled tokens"][1][0]
    assert (moved[0], moved[-1]) == (9, 8) and sorted(moved) == sorted(ids) and any(moved != ids)
    before = drawn["untrained"][0].weights
    for name, w in before.items():
        center = float(w.ndim == 1 and name.endswith("weight"))
        assert w.shape == net.weights[name].shape and abs(w - center).max() < 0.1
    assert drawn["untrained"][0].config == net.config
    kept, new = drawn["shuffled weights"][0].weights, drawn["random weights"][0].weights
    for name, w in net.weights.items():
        np.testing.assert_array_equal(np.sort(kept[name], axis=None), np.sort(w, axis=None))
        assert w.size == 1 or not np.isin(new[name], w).any()
    large = max(net.weights, key=lambda name: net.weights[name].size)
    w, size = net.weights[large], net.weights[large].size
    assert abs(new[large].mean() - w.mean()) < 4 * w.std() / np.sqrt(size)
    assert new[large].std() == pytest.approx(w.std(), rel=4 / np.sqrt(2 * size))


@pytest.mark.parametrize(
    ("given", "options", "says"),
    [
        ("states", {}, "trace"),
        (np.ones((2, 1, 3)), {}, "trace"),
        (np.ones((1, 4, 3)), {}, "trace"),
        (np.full((2, 4, 3), np.nan), {}, "finite"),
        (np.zeros((2, 4, 3)), {}, "direction"),
        ([np.ones((2, 4, 3)), np.ones((3, 4, 3))], {}, "depth"),
        (Trace([np.ones((2, 4, 3))], [["a"] * 5]), {}, "a word for each token"),
        (np.ones((2, 4, 3)), {"betas": [0.0]}, "betas"),
        (np.ones((2, 4, 3)), {"betas": [501.0]}, "betas"),
        (np.ones((2, 4, 3)), {"angles": [4.0]}, "angle"),
        (np.ones((2, 4, 3)), {"bins": 0}, "bins"),
        (np.ones((2, 4, 3)), {"modes": 1}, "modes"),
    ],
)
def test_what_is_no_trace_is_refused_by_name(given, options, says):
    with pytest.raises((TypeError, ValueError), match=says):
        probe(given, **options)
