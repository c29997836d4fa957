"""The page about the speed of HiddenUnitCRF, rendered from what `hidden_units.py` measured."""

from __future__ import annotations

from typing import Any

from measuring import ROOT, host_line, verdict

VERSIONS = ("crfx", "numpy", "torch")
PAGE = ROOT / "reports" / "hidden-units-speed.md"
MOST_PRODUCTS = 3.0
LEAST_SPEED_UP = 5.0
MOST_MEMORY = 24e9


def page(result: dict[str, Any]) -> str:
    """The report; parts that have not been measured are left out."""
    lines = [
        "# HiddenUnitCRF: speed and memory",
        "",
        "Rendered by `benchmarks/hidden_units.py` from "
        "[results/hidden_units.json](results/hidden_units.json). Each part names the command, "
        "machine and day it was measured with. Everything runs on one thread, in float32.",
    ]
    for name, section in (("kernel", kernel), ("sweep", sweep), ("size", size)):
        if name in result:
            lines += ["", *section(result[name]), "", host_line(result[name], VERSIONS)]
    return "\n".join([*lines, ""])


KERNEL_ROWS = (
    ("softplus", "softplus: units summed out"),
    ("far", "softplus, weights to labels beyond ±20"),
    ("relu", "relu: units maximised over"),
    ("tanh", "tanh"),
)


def kernel(part: dict[str, Any]) -> list[str]:
    """Scores and gradients, in matrix products."""
    seconds = part["seconds"]
    names = ("product_inputs", "product_weights", "product_labels")
    products = [seconds[name] for name in names]
    lines = [
        "## Scores and gradients",
        "",
        f"All {part['positions']:,} OCR letters, {part['features']} pixels of −1 or 1, "
        f"{part['units']} units, {part['labels']} labels: the scores of all letters and, from "
        "random slopes, the gradient in all parameters. The unit is what NumPy needs for the "
        "matrix products of these shapes: features by weights (rows × features × units), features "
        "transposed by slopes of units (as many multiplications), and units by labels (rows × "
        f"units × labels), {', '.join(f'{1e3 * one:.1f}' for one in products)} ms, together "
        f"{1e3 * sum(products):.1f} ms. The fastest of {part['repeats']} runs, taking turns.",
        "",
        "| units | scores | gradient | both, in products |",
        "|---|---|---|---|",
    ]
    for name, title in KERNEL_ROWS:
        parts = [seconds[f"{name}_{task}"] for task in ("scores", "gradient")]
        times = sum(parts) / sum(products)
        cells = [title, *(f"{1e3 * one:.1f} ms" for one in parts), f"{times:.2f}"]
        if name == "softplus":
            cells[-1] += f" (≤ {MOST_PRODUCTS:g}: {verdict(times <= MOST_PRODUCTS)})"
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
    """A sweep of both, by size of mini-batch."""
    lines = [
        "## A sweep, beside PyTorch",
        "",
        f"One pass of stochastic gradient descent on the likelihood over the {part['instances']:,} "
        f"OCR words, {part['positions']:,} letters, {part['units']} units, order 1, no dropout. "
        "Ours are the steps that `fit` takes, in the core, without what it does between sweeps "
        "(averaging, the objective). The peer is the same model in PyTorch "
        "(`benchmarks/hidden_units_torch.py`): autograd, `torch.optim.SGD`, units computed for the "
        "letters that there are, the forward algorithm over the padded mini-batch in log space; "
        "its mini-batches were cut and padded before the time begins. Both begin with the same "
        "weights and take the same mini-batches in the same order with the same steps, of one size "
        f"for all parameters. The fastest of {part['repeats']} sweeps, taking turns.",
        "",
        "| words a step | PyTorch | crfx | times faster | losses differ, before | and after |",
        "|---|---|---|---|---|---|",
    ]
    for row in part["sizes"]:
        ours, theirs = row["seconds"]["ours"], row["seconds"]["torch"]
        times = theirs / ours
        before, after = (difference(row[when]) for when in ("first", "last"))
        lines.append(
            f"| {row['size']} | {theirs:.2f} s | {ours:.3f} s | {times:.1f} "
            f"(≥ {LEAST_SPEED_UP:g}: {verdict(times >= LEAST_SPEED_UP)}) | {before:.0e} | "
            f"{after:.0e} |"
        )
    return lines


def difference(losses: dict[str, float]) -> float:
    """Relative, of ours and PyTorch's."""
    return abs(losses["ours"] / losses["torch"] - 1)


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
        "| trainer | a sweep | 1,000 positions | peak | after training |",
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
        f"that move, their sum over sweeps in float64 ({double:.2f} GB), the last average and the "
        f"one that takes its place: {(4 * single + double):.2f} GB at the most; with Python, the "
        f"corpus and what reads it ({one['before'] / 1e9:.2f} GB before `fit`) that is the peak. "
        "After training the model stays, and the two arrays that `init_model` goes on with.",
    ]
    return lines
