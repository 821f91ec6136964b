"""The page of a probe: complete, readable, and its sentences hold the numbers of the datasets."""

import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr
from click.testing import CliRunner
from scipy.linalg import expm
from test_networks import ALBERT, BERT, spread

import meanfield as mf
from meanfield.app.cli import main
from meanfield.networks.bootstrap import interval, means_over_pairs, rank_correlation
from meanfield.networks.clustering import clusters_of
from meanfield.networks.findings import (
    FAILS,
    HOLDS,
    UNDECIDED,
    Changes,
    Finding,
    changes_of,
    directions_of,
    in_layers,
    in_ranges,
    of_heads,
    of_layers,
    of_nulls,
    of_outliers,
    of_parts,
    verdict_of,
)
from meanfield.networks.page import clusters_section, row_in_words
from meanfield.networks.pictures import of_cosines, of_histograms
from meanfield.networks.probe import as_trace
from meanfield.networks.report import report

IDS = [3, 7, 1, 10, 3, 2, 5, 8]


@pytest.fixture(scope="module")
def found():
    return report(spread(BERT), [IDS, IDS[::-1]], fit=False, draws=2, progress=False)


def test_bootstrap_draws_are_means_over_pairs_of_the_tokens_drawn():
    h = np.random.default_rng(0).standard_normal((3, 12, 4))
    rng = np.random.default_rng(1)
    drawn = means_over_pairs([h], [lambda t: t, np.exp], 50, rng)
    again = np.random.default_rng(1).multinomial(12, np.full(12, 1 / 12), size=50)
    x = h / np.linalg.norm(h, axis=-1, keepdims=True)
    rows = np.repeat(np.arange(12), again[7])
    pairs = [(i, j) for i in rows for j in rows if i != j]
    for state in range(3):
        cosines = np.array([x[state, i] @ x[state, j] for i, j in pairs])
        assert drawn[0, state, 8] == pytest.approx(cosines.mean(), rel=1e-12)
        assert drawn[1, state, 8] == pytest.approx(np.exp(cosines).mean(), rel=1e-12)
    assert drawn[0, 0, 0] == pytest.approx(mf.networks.MeanCosine().value(h[0]), rel=1e-12)


def test_intervals_of_the_bootstrap_cover_the_mean_of_the_law():
    """Directions about a mean: the mean cosine of the law is |mean|^2, here by a large sample."""
    rng = np.random.default_rng(0)
    large = rng.standard_normal((200_000, 3)) + np.eye(3)[0]
    true = float((mf.Tokens.from_hidden(large).x.mean(axis=0) ** 2).sum())
    covered = 0
    for _ in range(100):
        h = rng.standard_normal((1, 60, 3)) + np.eye(3)[0]
        low, high = interval(means_over_pairs([h], [lambda t: t], 200, rng)[0, 0, 1:])
        covered += low <= true <= high
    assert 85 <= covered <= 100  # nominal 95, four standard errors below


def test_an_interval_leaves_out_as_much_on_either_side_and_texts_are_drawn_as_shares():
    np.testing.assert_allclose(interval(np.arange(1001.0)), [25, 975])
    np.testing.assert_allclose(interval(np.arange(101.0), 0.5), [25, 75])
    h = np.random.default_rng(0).standard_normal((2, 6, 3))
    ones = means_over_pairs([h] * 5, [np.ones_like], 30, np.random.default_rng(1))
    np.testing.assert_allclose(ones, 1, rtol=1e-12)  # whichever of the 5 texts are drawn


def certain(values):
    """Numbers with draws that all are as they are."""
    return np.repeat(np.array(values)[..., None], 9, axis=-1)


def test_sentences_name_the_layers_that_they_speak_of():
    part = {"attention": certain([[0.5, -0.1, 0.3]] * 2), "mlp": certain([[-0.4, -0.1, 0.2]] * 2)}
    changes = Changes(certain([0.1, 0.2, 0.0, 0.5]), certain([1.0, 3.0, 2.5, 2.0]), part)
    gather, energy = of_layers(changes)
    assert gather.verdict == HOLDS and "+0.4 [+0.4, +0.4], from 0.1" in gather.text
    assert energy.verdict == FAILS
    assert "Layer 1: rise. Layers 2 and 3: fall. The" in energy.text
    assert "The largest of these falls is -0.5 [-0.5, -0.5], in layer" in energy.text
    unsure = changes.energy.copy()
    unsure[3, :] += np.linspace(-0.4, 1, 9)  # most of all falls are in layer 3, or it is none
    text = of_layers(Changes(changes.cosine, unsure, part))[1].text
    assert "1: rise. Layer 2: fall. Layer 3: undecided (-0.9; intervals hold 0). The" in text
    assert text.count("ayer 2") == 2
    unsure[2:, 0] += 0.5  # the estimate of layer 2 is 0, that of layer 3 still a fall
    spread = np.repeat(unsure[:, :1], 9, axis=1)
    spread[2:, 1:] += np.linspace(-1, 1, 8)
    spread[3, 1:] += np.linspace(1, -3, 8)
    second = of_layers(Changes(changes.cosine, spread, part))[1]
    assert second.verdict == "undecided"
    assert "Layer 1: rise. Layers 2 and 3: undecided (+0, -0.9; inter" in second.text
    attention, mlp = of_parts(changes)
    assert attention.verdict == HOLDS and mlp.verdict == ""
    assert attention.text.endswith("Layers 1 and 3: positive. Layer 2: negative.")
    assert "The feed-forward map disperses tokens" in mlp.text and "-0.3 [" in mlp.text


def test_the_network_clusters_more_or_less_than_its_null_models():
    """By what the mean cosine gains: null models start elsewhere."""
    changes = Changes(certain([0.1, 0.4]), certain([1.0, 1.0]), {})
    draws = {"random weights": [[0.6, 0.7], [0.7, 0.9]],
             "shuffled weights": [[0.0, 0.8], [0.1, 0.6]],
             "untrained": [[0.3, 0.5], [0.3, 0.8]]}  # fmt: skip
    values = np.array(list(draws.values()))[:, :, None]
    null = xr.Dataset({"mean_cosine": (("null", "draw", "text", "layer"), values)},
                      {"null": list(draws)})  # fmt: skip
    words = [one.text for one in of_nulls(changes, null)]
    told = ["clusters tokens more.", "clusters tokens less.", "not distinguishably more or less."]
    assert all(word in text for word, text in zip(told, words, strict=True))
    assert "goes from 0.65 to 0.8, by +0.15 (standard deviation 0.071 of 2 draws)" in words[0]
    assert "goes from 0.1 to 0.4, by +0.3 [+0.3, +0.3]" in words[0]


def test_with_probability_95_percent_no_layer_has_a_wrong_direction():
    rng, layers, draws = np.random.default_rng(0), 24, 400
    wrong, alone, found = 0, 0, []
    for _ in range(400):
        error, noise = rng.standard_normal((layers, 1)), rng.standard_normal((layers, draws))
        steps = np.hstack([error, error + noise])
        wrong += directions_of(steps).any()
        alone += any(verdict_of(*interval(step[1:])) != UNDECIDED for step in steps)
        steps[:3] += np.array([6.0, -6.0, 0.0])[:, None]
        found.append(directions_of(steps)[:2])
    assert 3 <= wrong <= 37  # nominal 20, four standard errors; 71 % for intervals by layer
    assert alone > 200
    assert (np.array(found) == [1, -1]).mean() > 0.99


def test_heads_are_named_by_layer_and_number_and_compared_by_the_trace_of_output_v():
    part = np.array([[0.1, -0.2, 0.3, 0.0], [0.5, -0.4, 0.2, 0.05]])
    symmetric = np.stack([part + 1, np.full_like(part, -1), np.full_like(part, 2)], axis=-1)
    symmetric[..., 2] -= 2  # of sum `part`, and the largest not in its order
    symmetric[0, 0] += [9, -9, 0]
    given = {"value_symmetric": (("block", "head", "eigenvalue"), symmetric)}
    for name, size in (("head_beta", 2.0), ("head_slope_share", 0.1), ("head_slope", 3.0)):
        given[name] = ("text", "block", "head"), np.full((1, 2, 4), size)
    parts = xr.Dataset({"head_part": (("text", "block", "head"), part[None])})
    sign, logits = of_heads(xr.Dataset(given), parts, np.random.default_rng(0))
    assert "5 of 8 heads raise" in sign.text
    assert "most of all head 1 of layer 2 (+0.5), least head 2 of layer 2 (-0.4)" in sign.text
    assert "looks at to what it adds, is 1.00 [1.00, 1.00]" in sign.text
    assert sign.verdict == HOLDS and "agree in 100 %" in sign.text
    assert logits.verdict == FAILS and "explain 10.0 % [10.0, 10.0]" in logits.text


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ([], "no layer"),
        ([4], "layer 4"),
        ([1, 2], "layers 1 and 2"),
        ([3, 4, 5], "layers 3 to 5"),
        ([1, 3, 4, 5, 6, 8, 9], "layers 1, 3 to 6, 8 and 9"),
    ],
)
def test_layers_in_a_row_are_told_by_the_first_and_the_last(numbers, words):
    assert in_layers(numbers) == words
    told = {k for part in in_ranges(numbers) for k in range(*ends(part))}
    assert told == set(numbers)


def ends(part):
    first, _, last = part.partition(" to ")
    return int(first), int(last or first) + 1


def test_numbers_of_many_layers_are_told_by_the_ends_and_the_extremes():
    assert row_in_words(np.arange(4.0)) == "0, 1, 2, 3"
    said = row_in_words(np.sin(np.arange(33.0)))
    assert "0 in layer 0, 0.551 in layer 32" in said
    assert "from -1 (layer 11) to 0.991 (layer 14)" in said


def test_a_token_that_is_unlike_the_others_is_named_with_what_it_changes():
    rng = np.random.default_rng(0)
    h = 0.3 * rng.standard_normal((4, 20, 16)) + 2 * np.eye(16)[0]
    assert of_outliers(mf.networks.Trace([h], [])) == []
    h[2:, 3] *= 400  # long, and nothing else
    h[1:, 7] *= -1  # points elsewhere
    words = [f"w{k}" for k in range(20)]
    (finding,) = of_outliers(mf.networks.Trace([h], [words]))
    lengths = np.linalg.norm(h, axis=-1)
    most = (lengths / np.median(lengths, axis=1)[:, None]).max()
    long = f"Token 3 (w3) is up to {most:.3g} times as long as the median token (layers 2 and 3)"
    assert finding.text.startswith(long)
    assert "token 7 (w7) points elsewhere" in finding.text and "(layers 1 to 3)" in finding.text
    kept, mean = np.delete(h, [3, 7], axis=1), mf.networks.MeanCosine().value
    without, whole = (f"{mean(x[0]):.3g} to {mean(x[-1]):.3g}" for x in (kept, h))
    said = f"The mean cosine goes from {whole}; without them, from {without}."
    assert said in finding.text
    (finding,) = of_outliers(mf.networks.Trace([h, h[:, :3], h], []))
    assert finding.text.count("In text ") == 2 and "token 3 is" in finding.text


def clustered(**named):
    """A report on two clusters whose tokens alternate."""
    rng = np.random.default_rng(0)
    h = np.stack([np.eye(8)[[0, 1] * 12] + 0.02 * rng.standard_normal((24, 8))] * 2)
    given = mf.networks.Trace([h], **named) if named else h
    return report(given, fit=False, progress=False)


def test_tokens_without_words_are_told_by_their_places_in_the_order_of_the_text():
    page = clusters_section(clustered())
    assert "Clusters of tokens" in page and "by their position in the text" in page
    assert "0, 2, 4, 6, 8, 10, 12, 14, 16" in page and "Clusters of words" not in page
    ids = np.array([5, 7] * 12)
    page = clusters_section(clustered(words=[list(map(str, ids))], ids=[ids]))
    assert "by their ids" in page and "5 ×12" in page


@pytest.mark.long
def test_the_glossary_explains_what_the_report_uses():
    found = clustered()
    assert "<dt>energy</dt>" in found.html and "<dt>W2</dt>" in found.html
    for term in ("output V", "logits", "kappa", "SA", "test of fit, p"):
        assert f"<dt>{term}</dt>" not in found.html
    texts = "Of output V and of logits (SA) with kappa = 2 (p 0.1; the tails of the noise)."
    page = replace(found, findings=(Finding("A fit", HOLDS, texts),)).html
    for term in ("output V", "logits", "kappa", "SA", "test of fit, p", "the tails of the noise"):
        assert f"<dt>{term}</dt>" in page


@pytest.mark.long
def test_words_that_no_file_can_hold_are_escaped(tmp_path):
    words = ["a\ud800", "b"] * 11 + ["x" * 10**6, "\0<b>"]
    found = clustered(words=[words])
    found.save(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert r"a\ud800 ×11" in page and r"\x00&lt;b&gt;" in page and len(page) < 10**6


def test_clusters_have_three_tokens_and_more():
    places = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])
    h = np.stack([places[[0, 0, 1, 2, 1, 1, 0, 0]]] * 2)
    trace = mf.networks.Trace([h], [list("abcdefgh")])
    assert clusters_of(trace)[1] == [list("abgh"), list("cef")]


@pytest.mark.long
def test_one_cloud_is_told_from_clusters():
    """Of 30 tokens 20 are near one place: at the least beta they would be one cluster of all."""
    rng = np.random.default_rng(0)
    places = np.eye(8)[np.repeat([0, 1, 2], [20, 5, 5])] + 0.1 * rng.standard_normal((30, 8))
    found = report(np.stack([places] * 2), fit=False, progress=False)
    assert [len(words) for words in found.clusters[1]] == [20, 5, 5] and found.tokens == 30
    assert "20 of 30 tokens" in found.html and "one cloud" in found.html


def test_energies_with_intervals_are_those_of_the_table(found):
    table = found.layers.energy.sel(beta=4.0).mean("text")
    np.testing.assert_allclose(found.changes.energy[:, 0], table, rtol=1e-12)


@pytest.mark.long
def test_a_flow_in_many_dimensions_is_fitted_to_each_layer_too():
    """SA in the first layer, and away from it in the second."""
    start = mf.Tokens.from_hidden(np.random.default_rng(0).standard_normal((40, 64)) + 0.2)
    layers = [start.x]
    for layer, sign in enumerate((1.0, -1.0)):
        model = mf.Transformer(sign * mf.SA(4.0), kappa=1000.0)
        run = mf.solve(model, mf.Tokens(layers[-1]), (0, 1), dt=0.05, rng=layer, progress=False)
        layers.append(run.final.x)
    text = report(np.array(layers), progress=False).findings[-1].text
    assert "positive in layer 1, negative in layer 2" in text and "compromise" in text


def test_rank_correlation_is_that_of_scipy():
    from scipy.stats import spearmanr

    a, b = np.random.default_rng(0).standard_normal((2, 30))
    value, low, high = rank_correlation(a, a + b, np.random.default_rng(1))
    assert value == pytest.approx(spearmanr(a, a + b).statistic, rel=1e-12)
    assert low < value < high


def test_parts_of_changes_sum_to_the_whole_in_every_draw():
    trace = spread(BERT).trace([IDS])
    changes = changes_of(trace, np.random.default_rng(0), 20)
    total = sum(part[0] for part in changes.parts.values())
    np.testing.assert_allclose(total, np.diff(changes.cosine, axis=0), atol=1e-13)


def test_tokens_that_gather_and_that_spread_are_told_apart():
    rng = np.random.default_rng(0)
    h = rng.standard_normal((60, 4)) + np.arange(3.0)[:, None, None] * np.eye(4)[0]
    for states, wanted in ((h, HOLDS), (h[::-1], FAILS)):
        gather, energy = report(states, fit=False, progress=False).findings[:2]
        assert gather.verdict == energy.verdict == wanted


@pytest.mark.parametrize("layers", [2, 100])
def test_cosines_have_room_whatever_the_number_of_layers(layers):
    h = np.random.default_rng(0).standard_normal((layers + 1, 6, 3))
    page = of_cosines(mf.networks.probe(h, modes=False, distances=False))
    page.draw_without_rendering()
    ax, bar = page.axes
    assert len(ax.lines) == layers + 1
    assert ax.get_position().height > 0.6 and ax.get_position().width > 0.6
    assert bar.get_ylim() == (-0.5, layers + 0.5) and 3 <= len(bar.get_yticks()) <= 17


@pytest.mark.long
def test_a_flow_that_cannot_be_fitted_leaves_the_page_with_the_reason():
    h = np.random.default_rng(0).standard_normal((3, 8, 4))
    h[1, 0] = -h[0, 0]
    for states, word in ((h, "antipode"), (h[[0, 0, 0]], "do not move")):
        found = report(states, progress=False)
        assert found.fit is None and word in found.findings[-1].text
        assert word in found.html
    with pytest.raises(ValueError, match="5 tokens or more"):
        report(h[:, :4], progress=False)


def test_the_page_is_complete_and_can_be_read_out(found, tmp_path):
    page = found.save(tmp_path / "page.html").read_text(encoding="utf-8")
    assert not re.search(r'(?:src|href)="(?!#|data:)', page) and "url(http" not in page
    assert len(re.findall("<h1", page)) == 1 and 'lang="en"' in page
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    drawings = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert len(drawings) == len(found.figures()) == 4
    for drawing in drawings:
        root = ET.fromstring(drawing)
        named = root.attrib["aria-labelledby"].split()
        words = [e.text for e in root.iter() if e.attrib.get("id") in named]
        assert root.attrib["role"] == "img" and len(words) == 2 and all(words)
        for used in re.findall(r'(?:href="|url\()#([^")]+)', drawing):
            assert used in ids
        assert "currentColor" in drawing
    assert "prefers-color-scheme: dark" in page
    last = float(found.layers.mean_cosine.mean("text")[-1])
    assert f"{last:.3g}" in page
    moved = "</td><td>".join(f"{v:.3g}" for v in found.layers.moved.mean("text").values)
    assert f"angle moved</th><td></td><td>{moved}</td></tr>" in page  # of layer 0 none
    for one in found.findings:
        assert one.topic in str(found)


@pytest.mark.long
def test_the_command_writes_the_page_of_hidden_states(tmp_path):
    states, out = tmp_path / "states.npz", tmp_path / "page.html"
    rng = np.random.default_rng(0)
    h = rng.standard_normal((3, 8, 4)).cumsum(axis=0)
    np.savez(states, hidden=h, tokens=np.array(["<b>"] * 8))
    done = CliRunner().invoke(main, ["probe", str(states), "--out", str(out), "--no-fit"])
    assert done.exit_code == 0, done.output
    assert "Tokens cluster" in done.output
    assert "<b>" not in out.read_text(encoding="utf-8")  # words are no markup
    again = CliRunner().invoke(main, ["probe", str(states), "--out", str(out), "--no-fit"])
    assert again.exit_code == 2 and "--force" in again.output


@pytest.mark.long
def test_the_command_draws_the_cosines_of_pairs_of_any_albert(tmp_path):
    net = spread(ALBERT)
    trace = net.trace([IDS])
    trace.save(tmp_path / "states.npz")
    figure = tmp_path / "cosines.svg"
    given = ["probe", str(tmp_path / "states.npz"), "--out", str(tmp_path / "page.html")]
    done = CliRunner().invoke(main, [*given, "--no-fit", "--cosines", str(figure)])
    assert done.exit_code == 0, done.output
    assert figure.read_text(encoding="utf-8").lstrip().startswith("<?xml")
    axes = report(trace, fit=False, progress=False).histograms().axes
    shown = [ax for ax in axes if ax.patches]
    assert len(shown) == net.depth + 1
    for ax, h in zip(shown, trace.hidden[0], strict=True):
        x = h / np.linalg.norm(h, axis=-1, keepdims=True)
        mean = (x @ x.T)[np.triu_indices(len(x), 1)].mean()
        assert f"mean {mean:.3f}" in ax.get_title()
        area = sum(bar.get_height() * bar.get_width() for bar in ax.patches)
        assert area == pytest.approx(1.0)


@pytest.mark.parametrize("option", ["--out", "--cosines"])
def test_names_of_files_are_refused_before_the_work(option, tmp_path):
    """The page is not left behind either, so that the corrected call may write it."""
    np.save(tmp_path / "states.npy", np.random.default_rng(0).standard_normal((3, 8, 4)))
    page = tmp_path / "page.html"
    given = ["probe", str(tmp_path / "states.npy"), "--out", str(page), "--no-fit"]
    done = CliRunner().invoke(main, [*given, option, str(tmp_path / "a.foo")])
    assert done.exit_code == 2 and option in done.output and "a.foo" in done.output
    assert [path.name for path in tmp_path.iterdir()] == ["states.npy"]


@pytest.mark.parametrize("share", [0.1, 0.9])
def test_an_array_with_tokens_before_layers_is_named(share):
    """Layers of a stream are closer to each other than the tokens of a text."""
    rng = np.random.default_rng(0)
    steps = rng.standard_normal((5, 20, 16))
    h = np.sqrt(share) * steps[0] + np.sqrt(1 - share) * steps
    found = report(h, fit=False, progress=False)
    assert not any("unrelated" in one.topic for one in found.findings)
    turned = report(h.swapaxes(0, 1), fit=False, progress=False)
    assert "unrelated" in turned.findings[0].topic and "swapaxes(0, 1)" in turned.findings[0].text
    told = [{one.topic for one in page.findings} for page in (found, turned)]
    assert told[0] - told[1] == {
        "Tokens cluster",
        "Energy never falls",
        "How far layers move tokens",
    }


@pytest.mark.parametrize("precision", [np.float64, np.float32, np.float16])
def test_changes_of_the_size_of_rounding_are_told_as_such(precision):
    """Of rotations, which change no inner product: layers 1 to 4; layer 5 is none."""
    rng = np.random.default_rng(3)
    layers = [rng.standard_normal((30, 16)) + 1.0]
    for _ in range(4):
        A = 0.1 * rng.standard_normal((16, 16))
        layers.append(layers[-1] @ expm(A - A.T))
    layers = np.array(layers, dtype=precision)
    never = "Interaction energy at beta = 4. Layers 1 to 4: no change."
    first, second = of_layers(changes_of(as_trace(layers), np.random.default_rng(0)))
    assert "the mean cosine of pairs changes by 0, equal to rounding, from" in first.text
    assert second.text.startswith(never)
    assert second.verdict == HOLDS
    closer = np.append(layers, layers[-1:] + precision(0.1), axis=0)
    first, second = of_layers(changes_of(as_trace(closer), np.random.default_rng(0)))
    assert "Layer 5: rise. Layers 1 to 4: no change." in second.text
    assert first.verdict == second.verdict == HOLDS


@pytest.mark.long
def test_a_fit_of_unrelated_layers_is_not_told():
    """Numbers fitted to noise mean nothing: neither they nor a test of fit are in the report."""
    h = np.random.default_rng(2).standard_normal((5, 20, 6))
    (fitted,) = (one for one in report(h, progress=False).findings if "softmax" in one.topic)
    assert fitted.verdict == "fails" and "unrelated" in fitted.text
    assert "p =" not in fitted.text and "beta" not in fitted.text


def test_the_command_says_what_is_not_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("layers.npz", layer_0=np.ones((3, 4)), layer_1=np.ones((3, 4)))
    (tmp_path / "words.txt").write_text("a b", encoding="utf-8")
    spread(BERT).save("model")
    for given, word in (
        (["nowhere"], "nowhere"),
        (["layers.npz"], "hidden=np.stack"),
        (["model", "--text", "words.txt"], "tokenizer.json"),
    ):
        done = CliRunner().invoke(main, ["probe", *given])
        assert done.exit_code == 2 and word in done.output
        assert done.output.count("layers.npz") <= 1


@pytest.mark.parametrize("given", [["--text", "words.txt"], []])
def test_the_command_refuses_what_does_not_fit(given, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "words.txt").write_text("a b", encoding="utf-8")
    if given:
        np.save(tmp_path / "model", np.ones((2, 3, 4)))
    else:
        spread(BERT).save(tmp_path / "model")
    name = "model.npy" if given else "model"
    done = CliRunner().invoke(main, ["probe", name, *given])
    assert done.exit_code == 2 and "--text" in done.output
    assert not (tmp_path / "report.html").exists()


def test_a_network_needs_texts():
    with pytest.raises(ValueError, match="texts"):
        report(spread(BERT))


@pytest.mark.repeats
@pytest.mark.parametrize("depth", [1, 4, 8, 10])
def test_the_lowest_histogram_of_each_column_has_the_numbers_of_its_axis(depth):
    h = np.random.default_rng(0).standard_normal((depth + 1, 12, 4))
    page = of_histograms(mf.networks.probe(h, distances=False, modes=False))
    page.canvas.draw()
    panels = [ax for ax in page.axes if ax.axison]
    assert len(panels) == depth + 1
    for k, ax in enumerate(panels):
        shown = any(label.get_visible() for label in ax.get_xticklabels())
        assert shown == (k + 4 >= len(panels))
