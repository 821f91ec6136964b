"""Claim: a Transformer written in numpy has the hidden states of its translation, to rounding.

Four layers of random weights, n = 12, d = 64, four heads of 16, W_Q and W_K so large that weights
are uneven, gains other than 1 and a perceptron. The network is written as its papers write it; the
translation is that of the page "Run your own network's weights". Heads have

    beta = d/sqrt(d_head),   V = sqrt(d) W_V,   O = W_O by heads,

and states are directions x and lengths r of the hidden states h = r x:

    RMSNorm       pre-LN, causal, every layer a call of `solve`
    one call      pre-LN, causal, no perceptron: `PerLayer` matrices
    grouped       as RMSNorm, two heads of queries for each of keys
    LayerNorm     h centred, W_O and W_out centred, biases of all parts
    parallel      attention and perceptron of the same N(h)
    SwiGLU        as RMSNorm, with `FeedForward(gate=)`
    biased MLP    as RMSNorm, with `FeedForward(outer_bias=)` and the tanh form of GELU
    post-LN       gains 1, no mask
    capped        logits replaced by 5 tanh(logits/5)
    padding       keys of the last four tokens masked, by masses 0

Asked: differences of 1e-13 of the largest coordinate of h, at all layers.

    python validation/weights_of_a_network.py    # 5 s; exit code 1 on failure
"""

import sys
from types import SimpleNamespace

import numpy as np
from _report import Report

import meanfield as mf

LAYERS, N, D, HEADS, WIDTH = 4, 12, 64, 4, 16
TOLERANCE = 1e-13
LAYER = {"t_span": (0, 1), "scheme": mf.steppers.Layers, "dt": 1.0}


class Capped(mf.Weights):
    """k = exp(5 tanh(logits/5))."""

    def of_logits(self, logits, squares):
        return np.exp(5 * np.tanh(logits / 5))


def weights(rng: np.random.Generator, groups: int = HEADS) -> list[SimpleNamespace]:
    """Matrices of each layer as checkpoints hold them: W_Q (H d_head, d), W_O (d, H d_head)."""

    def matrix(rows: int, columns: int) -> np.ndarray:
        return rng.standard_normal((rows, columns)) / np.sqrt(columns)

    return [
        SimpleNamespace(
            Q=1.5 * matrix(D, D),
            K=1.5 * matrix(groups * WIDTH, D),
            V=matrix(groups * WIDTH, D),
            O=matrix(D, D),
            inner=matrix(4 * D, D),
            outer=matrix(D, 4 * D),
            gains=1 + 0.2 * rng.standard_normal((2, D)),
            b_Q=np.zeros(D),
            b_K=np.zeros(groups * WIDTH),
            b_V=np.zeros(groups * WIDTH),
            b_O=np.zeros(D),
            b=rng.standard_normal(4 * D),
        )
        for _ in range(LAYERS)
    ]


# The network ---------------------------------------------------------------------------------


def rms(h: np.ndarray) -> np.ndarray:
    return h / np.sqrt((h**2).mean(axis=-1, keepdims=True))


def layer_norm(h: np.ndarray) -> np.ndarray:
    return rms(h - h.mean(axis=-1, keepdims=True))


def attention(w, x: np.ndarray, masked: np.ndarray, cap: float = np.inf) -> np.ndarray:
    """What attention adds to the hidden states, for its input x (n, d); query by query."""
    q, k, v = x @ w.Q.T + w.b_Q, x @ w.K.T + w.b_K, x @ w.V.T + w.b_V
    groups, found = len(w.K) // WIDTH, np.empty((N, D))
    for head in range(HEADS):
        own, shared = (slice(i * WIDTH, (i + 1) * WIDTH) for i in (head, head * groups // HEADS))
        for i in range(N):
            logits = k[:, shared] @ q[i, own] / np.sqrt(WIDTH)
            logits = logits if np.isinf(cap) else cap * np.tanh(logits / cap)
            logits = np.where(masked[i], -np.inf, logits)
            share = np.exp(logits - logits.max())
            found[i, own] = share @ v[:, shared] / share.sum()
    return found @ w.O.T + w.b_O


def perceptron(w, x: np.ndarray) -> np.ndarray:
    return np.maximum(x @ w.inner.T + w.b, 0) @ w.outer.T


def swiglu(w, x: np.ndarray) -> np.ndarray:
    gate = x @ w.gate.T
    return (gate / (1 + np.exp(-gate)) * (x @ w.inner.T)) @ w.outer.T


def biased(w, x: np.ndarray) -> np.ndarray:
    h = x @ w.inner.T + w.b
    return (h * (1 + np.tanh(np.sqrt(2 / np.pi) * (h + 0.044715 * h**3))) / 2) @ w.outer.T + w.c


# The translation -----------------------------------------------------------------------------


def by_heads(w, causal: bool, weighting: mf.Weights, scale: float = np.sqrt(D)) -> mf.Attention:
    def rows(matrix: np.ndarray) -> np.ndarray:
        heads = (w.gains[0] * matrix).reshape(-1, WIDTH, D)
        return np.repeat(heads, HEADS // len(heads), axis=0)

    output = w.O.reshape(D, HEADS, WIDTH).transpose(1, 0, 2)
    return mf.Attention(
        rows(w.Q), rows(w.K), scale * rows(w.V), beta=D / np.sqrt(WIDTH), output=output,
        causal=causal, weights=weighting,
    )  # fmt: skip


def translated(w, causal=True, weighting=None) -> mf.Transformer:
    gain = np.sqrt(D) * w.gains[1]
    return mf.Transformer(
        by_heads(w, causal, weighting or mf.Softmax()),
        normalisation=mf.PreLN(),
        feedforward=lambda x: perceptron(w, gain * x),
    )


def tokens(h: np.ndarray, masses: np.ndarray | None = None) -> mf.Tokens:
    lengths = np.linalg.norm(h, axis=1)
    return mf.Tokens(h / lengths[:, None], masses, radii=lengths)


def layer_by_layer(models, state: mf.Tokens) -> list[np.ndarray]:
    found = []
    for model in models:
        state = mf.solve(model, state, **LAYER).final
        found.append(state.radii[:, None] * state.x)
    return found


def cases():
    """Name, hidden states by numpy and by the package, (layers, n, d) each."""
    rng = np.random.default_rng(0)
    start = 3 * rng.standard_normal((N, D))
    causal, none = np.triu(np.ones((N, N), dtype=bool), 1), np.zeros((N, N), dtype=bool)

    def network(layers, masked=causal, norm=rms, cap=np.inf, parallel=False, mlp=perceptron):
        h, found = start, []
        for w in layers:
            before, h = h, h + attention(w, w.gains[0] * norm(h), masked, cap)
            if mlp is not None:
                h = h + mlp(w, w.gains[1] * norm(before if parallel else h))
            found.append(h)
        return found

    layers = weights(rng)
    yield "RMSNorm", network(layers), layer_by_layer(map(translated, layers), tokens(start))

    heads = [by_heads(w, True, mf.Softmax()) for w in layers]
    stacked = {
        name: mf.PerLayer([getattr(head, name) for head in heads])
        for name in ("Q", "K", "V", "output")
    }
    model = mf.Transformer(
        mf.Attention(**stacked, beta=D / np.sqrt(WIDTH), causal=True), normalisation=mf.PreLN()
    )
    run = mf.solve(model, tokens(start), **LAYER | {"t_span": (0, LAYERS)})
    found = [run[i].radii[:, None] * run[i].x for i in range(1, LAYERS + 1)]
    yield "one call", network(layers, mlp=None), found

    grouped = weights(rng, HEADS // 2)
    yield "grouped", network(grouped), layer_by_layer(map(translated, grouped), tokens(start))

    for w in layers:
        w.gate = np.random.default_rng(3).standard_normal((4 * D, D)) / np.sqrt(D)
    models = [
        translated(w).replace(
            feedforward=mf.FeedForward(
                np.sqrt(D) * w.gains[1] * w.inner, w.outer, activation="silu",
                gate=np.sqrt(D) * w.gains[1] * w.gate,
            )
        )
        for w in layers
    ]  # fmt: skip
    yield "SwiGLU", network(layers, mlp=swiglu), layer_by_layer(models, tokens(start))

    yield "biased MLP", *with_biased_perceptron(weights(rng), start, network)

    yield "LayerNorm", *with_layer_norm(weights(rng), start, network, causal)

    models = [
        mf.Transformer(
            by_heads(w, True, mf.Softmax())
            + mf.Field(lambda x, w=w: perceptron(w, np.sqrt(D) * w.gains[1] * x)),
            normalisation=mf.PreLN(),
        )
        for w in layers
    ]
    yield "parallel", network(layers, parallel=True), layer_by_layer(models, tokens(start))

    yield "post-LN", *after_layers(weights(rng), start, none)

    models = [translated(w, False, Capped()) for w in layers]
    yield "capped", network(layers, none, cap=5.0), layer_by_layer(models, tokens(start))

    padded = np.broadcast_to(np.arange(N) >= N - 4, (N, N))
    masses = np.where(padded[0], 0.0, 1.0) / (N - 4)
    models = [translated(w, False) for w in layers]
    yield "padding", network(layers, padded), layer_by_layer(models, tokens(start, masses))


def with_layer_norm(layers, start, network, causal):
    """LayerNorm without biases of its own, the others with biases; states centred."""
    rng = np.random.default_rng(1)
    for w in layers:
        w.b_Q, w.b_K, w.b_V, w.b_O = rng.standard_normal((4, D))
    wanted = [h - h.mean(axis=-1, keepdims=True) for h in network(layers, causal, layer_norm)]
    models = []
    for w in layers:
        parts = {name: vars(w)[name] - vars(w)[name].mean(axis=0) for name in ("O", "outer")}
        centred = SimpleNamespace(**vars(w) | parts)
        Q, K, V = (b.reshape(HEADS, WIDTH) for b in (w.b_Q, w.b_K, w.b_V))
        biases = {"Q_bias": Q / np.sqrt(D), "K_bias": K / np.sqrt(D), "V_bias": V}
        model = translated(centred)
        drift = model.drift.replace(**biases, output_bias=w.b_O - w.b_O.mean())
        models.append(model.replace(drift=drift))
    return wanted, layer_by_layer(models, tokens(start - start.mean(axis=1, keepdims=True)))


def with_biased_perceptron(layers, start, network):
    """The tanh form of GELU between two biases; attention has none."""
    rng = np.random.default_rng(2)
    models = []
    for w in layers:
        w.c, inner = rng.standard_normal(D), np.sqrt(D) * w.gains[1] * w.inner
        own = mf.FeedForward(inner, w.outer, w.b, "gelu_tanh", outer_bias=w.c)
        models.append(translated(w).replace(feedforward=own))
    return network(layers, mlp=biased), layer_by_layer(models, tokens(start))


def after_layers(layers, start, masked):
    """Post-LN: h <- N(h + ...) sqrt(d) after attention and after the perceptron."""
    h, wanted, models = rms(start), [], []
    for w in layers:
        w.gains = np.ones((2, D))
        h = rms(h + attention(w, h, masked))
        h = rms(h + perceptron(w, h))
        wanted.append(h)
        models.append(
            mf.Transformer(
                by_heads(w, False, mf.Softmax(), scale=1.0),
                feedforward=lambda x, w=w: perceptron(w, np.sqrt(D) * x) / np.sqrt(D),
            )
        )
    state, found = mf.Tokens(rms(start) / np.sqrt(D)), []
    for model in models:
        state = mf.solve(model, state, **LAYER).final
        found.append(np.sqrt(D) * state.x)
    return wanted, found


def main() -> int:
    report = Report(["network"])
    for name, wanted, found in cases():
        scale = np.abs(wanted).max()
        worst = np.abs(np.subtract(wanted, found)).max() / scale
        report.compare(name, predicted=0.0, measured=worst, tolerance=TOLERANCE)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
