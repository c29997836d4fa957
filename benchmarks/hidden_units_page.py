"""The page about the speed of HiddenUnitCRF, rendered from results of `hidden_units.py`."""

from __future__ import annotations

from typing import Any

from instruction_sets import NAMES, Target, answers, everywhere, host_lines, peers_of
from measuring import ROOT, host_line, verdict

VERSIONS = ("crfx", "numpy", "torch")
PAGE = ROOT / "reports" / "hidden-units-speed.md"
KERNEL_TARGETS = (
    Target(
        "kernel",
        "scores and gradient, softplus, in their matrix products",
        {"avx512": 1.8, "avx2": 2.2},
    ),
)
SWEEP_TARGETS = tuple(
    Target(
        f"sweep_{size}",
        f"an epoch of mini-batches of {size}, times faster than PyTorch",
        everywhere(5),
        at_least=True,
        digits=1,
    )
    for size in (1, 8, 32, 100)
)
THREADS_TARGETS = (
    Target(
        "threads_hidden_sgd",
        "HiddenUnitCRF by SGD, mini-batches of 32, two threads, times faster than one",
        everywhere(1.7),
        at_least=True,
    ),
    Target(
        "threads_linear_lbfgs",
        "LinearCRF by L-BFGS on OCR, two threads, times faster than one",
        everywhere(1.7),
        at_least=True,
    ),
)
MOST_MEMORY = 24e9


def page(result: dict[str, Any]) -> str:
    """Return the report; parts that have not been measured are left out."""
    judged = (("kernel", KERNEL_TARGETS), ("sweep", SWEEP_TARGETS), ("threads", THREADS_TARGETS))
    lines = [
        "# HiddenUnitCRF: speed and memory",
        "",
        *answers((result[name], targets) for name, targets in judged if name in result),
        "",
        "Everything runs on one thread unless it says otherwise, in float32.",
    ]
    sections = (("kernel", kernel), ("sweep", sweep), ("threads", threads), ("size", size))
    for name, section in sections:
        if name in result:
            part = result[name]
            hosts = host_lines(part, VERSIONS) if "sets" in part else [host_line(part, VERSIONS)]
            lines += ["", *section(part), "", *hosts]
    lines += [
        "",
        "Rendered by `benchmarks/hidden_units.py` from "
        "[results/hidden_units.json](results/hidden_units.json). Each part names the command, "
        "machine and day it was measured with.",
    ]
    return "\n".join([*lines, ""])


KERNEL_ROWS = (
    ("softplus", "softplus: units summed out"),
    ("far", "softplus, weights to labels beyond ±20"),
    ("relu", "relu: units maximised over"),
    ("tanh", "tanh"),
)


PRODUCTS = ("product_inputs", "product_weights", "product_labels")


def in_products(name: str, seconds: dict[str, float]) -> float:
    """Return the time of scores and gradient of some units, in their matrix products."""
    both = seconds[f"{name}_scores"] + seconds[f"{name}_gradient"]
    return both / sum(seconds[each] for each in PRODUCTS)


def kernel(part: dict[str, Any]) -> list[str]:
    """Return scores and gradients, in matrix products."""
    first = next(iter(part["sets"].values()))["seconds"]
    products = [first[name] for name in PRODUCTS]
    lines = [
        "## Scores and gradients",
        "",
        f"All {part['positions']:,} OCR letters, {part['features']} pixels of −1 or 1, "
        f"{part['units']} units, {part['labels']} labels: the scores of all letters and, from "
        "random slopes, the gradient in all parameters. The unit is what NumPy needs for the "
        "matrix products of these shapes: features by weights (rows × features × units), features "
        "transposed by slopes of units (as many multiplications), and units by labels (rows × "
        f"units × labels), {', '.join(f'{1e3 * one:.1f}' for one in products)} ms, together "
        f"{1e3 * sum(products):.1f} ms. The fastest of {part['repeats']} runs; instruction sets "
        "take turns, and so do the products in each of them.",
        "",
        "| units | instruction set | scores | gradient | both, in products |",
        "|---|---|---|---|---|",
    ]
    for name, title in KERNEL_ROWS:
        for isa, figures in part["sets"].items():
            both = [figures["seconds"][f"{name}_{task}"] for task in ("scores", "gradient")]
            cells = [title, NAMES[isa], *(f"{1e3 * one:.1f} ms" for one in both)]
            cells.append(f"{in_products(name, figures['seconds']):.2f}")
            lines.append("| " + " | ".join(cells) + " |")
    lines += [
        "",
        "Units that are summed out cost two multiplications and an addition per letter, unit and "
        "label, for the gradient a reciprocal too, but no exponential: those of the weights to "
        "labels, V, are a table. It is there as long as none is beyond ±20; with larger ones (here "
        f"up to {part['largest']['far']:g}) every exponential is taken. The target is on the "
        "former.",
    ]
    return lines


def sweep(part: dict[str, Any]) -> list[str]:
    """Return an epoch of both, by size of mini-batch."""
    lines = [
        "## An epoch, beside PyTorch",
        "",
        f"One epoch of stochastic gradient descent on the likelihood over the {part['instances']:,}"
        f" OCR words, {part['positions']:,} letters, {part['units']} units, order 1, no dropout. "
        "Ours are the steps that `fit` takes, in the core, without what it does between epochs "
        "(averaging, the objective). The peer is the same model in PyTorch "
        "(`benchmarks/hidden_units_torch.py`): autograd, `torch.optim.SGD`, units computed for the "
        "letters that there are, the forward algorithm over the padded mini-batch in log space; "
        "its mini-batches were cut and padded before the time begins. Both begin with the same "
        "weights and take the same mini-batches in the same order with the same steps, of one size "
        f"for all parameters. The fastest of {part['repeats']} epochs of ours.",
        "",
        "| words a step | instruction set | PyTorch | crfx | times faster | losses differ, before "
        "| and after |",
        "|---|---|---|---|---|---|---|",
    ]
    for size in next(iter(part["sets"].values()))["sizes"]:
        for isa, figures in part["sets"].items():
            ours, theirs = figures["sizes"][size], peers_of(part, isa)[size]
            before, after = (abs(ours[when] / theirs[when] - 1) for when in ("first", "last"))
            lines.append(
                f"| {size} | {NAMES[isa]} | {theirs['seconds']:.2f} s | {ours['seconds']:.3f} s | "
                f"{theirs['seconds'] / ours['seconds']:.1f} | {before:.0e} | {after:.0e} |"
            )
    return lines


def threads(part: dict[str, Any]) -> list[str]:
    """Return training on one thread and on two."""
    lines = [
        "## Two threads against one",
        "",
        f"Training on the {part['instances']:,} OCR words, dense pixels, the call to `fit` as a "
        f"whole: `HiddenUnitCRF` with {part['units']} units, {part['sweeps']} epochs of SGD in "
        f"mini-batches of {part['batch_size']} words, the step given, and `LinearCRF`, "
        f"{part['iterations']} iterations of L-BFGS. *Equal* says whether all parameters are the "
        "same to the bit. Independent matrix products, on one core each, show what the second core "
        "of the machine adds at most.",
        "",
        "| model | instruction set | 1 thread | 2 threads | times faster | equal |",
        "|---|---|---|---|---|---|",
    ]
    for name, title in (
        ("hidden_sgd", "HiddenUnitCRF, SGD"),
        ("linear_lbfgs", "LinearCRF"),
        ("products", "independent matrix products"),
    ):
        for isa, figures in part["sets"].items():
            one, two = figures["1"][name], figures["2"][name]
            equal = "–"
            if "digest" in one:
                equal = "yes" if one["digest"] == two["digest"] else "**no**"
            lines.append(
                f"| {title} | {NAMES[isa]} | {one['seconds']:.2f} s | {two['seconds']:.2f} s | "
                f"{one['seconds'] / two['seconds']:.2f} | {equal} |"
            )
    return lines


def size(part: dict[str, Any]) -> list[str]:
    """Seconds and memory with hundreds of millions of parameters."""
    one = part["sgd"]
    parameters = one["parameters"]
    lines = [
        "## Many features",
        "",
        f"A corpus at random, as large as the paper's of the Penn Treebank in all but sentences: "
        f"{one['instances']:,} of them, {one['positions']:,} positions, {one['features']:,} binary "
        f"features, by Zipf's law, {one['features_a_row']:.1f} a position, {one['labels']} labels, "
        f"{one['units']:,} units: {parameters:,} parameters. Seconds are of the last of "
        f"{one['sweeps']} sweeps, its average and objective included; no dropout, the step given, "
        "each trainer in a process of its own.",
        "",
        "| trainer | an epoch | 1,000 positions | peak | after training |",
        "|---|---|---|---|---|",
    ]
    for name in ("sgd", "perceptron"):
        row = part[name]
        reached = verdict(row["peak"] <= MOST_MEMORY)
        cells = [name, f"{row['seconds']:.1f} s"]
        cells.append(f"{1e3 * row['seconds'] / row['positions']:.3f} s")
        cells.append(f"{row['peak'] / 1e9:.2f} GB (≤ {MOST_MEMORY / 1e9:g}: {reached})")
        cells.append(f"{row['after'] / 1e9:.2f} GB")
        lines.append("| " + " | ".join(cells) + " |")
    single, double = 4 * parameters / 1e9, 8 * parameters / 1e9
    lines += [
        "",
        f"An array of parameters takes {single:.2f} GB in float32. There are the model's, those "
        f"that move, their sum over epochs in float64 ({double:.2f} GB), the last average and the "
        f"one that takes its place: {(4 * single + double):.2f} GB at the most; with Python, the "
        f"corpus and what reads it ({one['before'] / 1e9:.2f} GB before `fit`) that is the peak. "
        "After training the model remains, with the two arrays from which `init_model` continues.",
    ]
    return lines
