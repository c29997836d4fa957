"""The page about how TreeCRF scales, rendered from the measurements of `treecrf.py`."""

from __future__ import annotations

from typing import Any

from instruction_sets import NAMES, Target, answers, everywhere, host_lines
from measuring import ROOT, host_line, verdict

VERSIONS = ("crfx", "numpy", "xgboost")
PAGE = ROOT / "reports" / "treecrf-scale.md"
WINDOWS_TARGETS = (
    Target("window_7", "a round with window 7, rounds with window 1", everywhere(1.75)),
    Target("window_11", "a round with window 11, rounds with window 1", everywhere(2.5)),
)
ORDERS_TARGETS = (
    Target("order_2", "a round of order 2, rounds of order 1", {}),
    Target("order_3", "a round of order 3, rounds of order 1", {}),
)
MOST_SHARE = 0.25
MOST_BYTES = 8e9
PAPER = {"1": (0.04, 0.8), "3": (0.66, 1.11), "5": (41.2, 1.2), "7": (1505, 1.4)}


def page(result: dict[str, Any]) -> str:
    """Return the report; parts that have not been measured are left out."""
    judged = (("windows", WINDOWS_TARGETS), ("orders", ORDERS_TARGETS))
    lines = [
        "# TreeCRF: how it scales",
        "",
        *answers((result[name], targets) for name, targets in judged if name in result),
        "",
        "On one thread, unless it says otherwise.",
    ]
    by_set = {"windows": windows, "orders": orders}
    once = {"linear": linear, "memory": memory, "labels": labels, "methods": methods}
    for name, section in by_set.items():
        if name in result:
            lines += ["", *section(result[name]), "", *host_lines(result[name], VERSIONS)]
    for name, section in once.items():
        if name in result:
            lines += ["", *section(result[name]["found"]), "", host_line(result[name], VERSIONS)]
    lines += [
        "",
        "Rendered by `benchmarks/treecrf.py` from "
        "[results/treecrf-scale.json](results/treecrf-scale.json). Each part names the command, "
        "machine and day it was measured with.",
    ]
    return "\n".join([*lines, ""])


def windows(part: dict[str, Any]) -> list[str]:
    """Return the trees of Table 3 of the paper."""
    lines = [
        "## Seconds per round, by window (the paper's Table 3)",
        "",
        "The 111 training chains of Qian and Sejnowski, residues as categories, "
        f"{part['leaves']} leaves; the median of {part['rounds']} rounds less the first three, "
        f"the fastest of {part['passes']} passes in turns. The paper's machine was of 2004: "
        "compare growth, not seconds.",
        "",
        "| window | " + " | ".join(f"{NAMES[isa]} | growth" for isa in part["sets"]) + " | paper |",
        "|---" * (2 * len(part["sets"]) + 2) + "|",
    ]
    for window in next(iter(part["sets"].values()))["seconds"]:
        paper = PAPER.get(window)
        cells = [window, *round_cells(part, window), f"{paper[1]:g} s" if paper else "–"]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def round_cells(part: dict[str, Any], case: str) -> list[str]:
    """Return a round and its growth in every instruction set."""
    cells = []
    for figures in part["sets"].values():
        seconds = figures["seconds"]
        cells += [f"{1e3 * seconds[case]:.2f} ms", f"{seconds[case] / seconds['1']:.2f}"]
    return cells


def orders(part: dict[str, Any]) -> list[str]:
    """Return the growth with the order."""
    lines = [
        "## Seconds per round, by order",
        "",
        f"The same chains, 3 labels, window 11, {part['leaves']} leaves. The paper claims that "
        "tree boosting grows linearly with the order. The search for splits does, nearly: it sees "
        "one more column; but sums over labellings and the scores of all label tuples grow by the "
        "number of labels with every step of the order, for any method that is exact.",
        "",
        "| order | " + " | ".join(f"{NAMES[isa]} | growth" for isa in part["sets"]) + " |",
        "|---" * (2 * len(part["sets"]) + 1) + "|",
    ]
    for order in next(iter(part["sets"].values()))["seconds"]:
        lines.append("| " + " | ".join([order, *round_cells(part, order)]) + " |")
    return lines


def linear(windows: dict[str, Any]) -> list[str]:
    """Return the linear CRFs of Table 3."""
    lines = [
        "## Linear CRFs over all conjunctions, by window",
        "",
        "The other half of Table 3, seconds of an iteration: LinearCRF has a feature for every set "
        "of places of the window and what stands there, with each pair of labels "
        '(`edges="linear"`); ours keeps only those that occur.',
        "",
        "| window | an iteration | features that occur | paper |",
        "|---|---|---|---|",
    ]
    for window, row in windows.items():
        lines.append(
            f"| {window} | {row['seconds']:.2f} s | {row['features']:,} | {PAPER[window][0]:g} s |"
        )
    return lines


def memory(peaks: dict[str, Any]) -> list[str]:
    """Against rows x labels."""
    ours, copies = peaks["ours"], peaks["copies"]
    added = {name: row["peak"] - row["before"] for name, row in peaks.items()}
    share = added["ours"] / added["copies"]
    pairs = 4 * ours["rows"] * ours["labels"] ** 2
    return [
        "## Memory, against a copy of each row for every label before it",
        "",
        f"OCR: {ours['rows']:,} letters, {ours['features']} pixels, {ours['labels']} labels; trees "
        "of 30 leaves, first order. The peer is XGBoost on the expanded matrix, the label before "
        "as a column of categories, best split first; gradients are at random. Bytes are the peak "
        "of the process above what it held with the data read. Ours are those of whole training "
        f"rounds and hold two arrays of all label pairs, {pairs / 1e6:.0f} MB each, the scores and "
        "their gradient; the peer holds these too, and the curvature that it asks for.",
        "",
        "| | memory | a round |",
        "|---|---|---|",
        f"| rows × labels, XGBoost | {added['copies'] / 1e6:,.0f} MB | {copies['seconds']:.1f} s |",
        f"| TreeCRF | {added['ours'] / 1e6:,.0f} MB: {share:.2f} of it (≤ {MOST_SHARE:g}: "
        f"{verdict(share <= MOST_SHARE)}) | {ours['seconds']:.2f} s |",
    ]


def labels(result: dict[str, Any]) -> list[str]:
    """Many labels."""
    limit = result["limit"]
    whole = 4.0 * limit["positions"] * limit["labels"] ** 2
    pruned = 4.0 * limit["positions"] * limit["pairs"]
    return [
        "## Many labels",
        "",
        f"UD English EWT, {result['labels']} fine tags, {result['instances']:,} sentences of "
        f"{result['positions']:,} words, {result['features']:,} features (words and spelling "
        f"within one position); trees of 100 leaves, all threads: a round takes "
        f"{result['seconds']:.1f} s, the peak is {result['peak'] / 1e9:.2f} GB (≤ "
        f"{MOST_BYTES / 1e9:g}: {verdict(result['peak'] <= MOST_BYTES)}). After "
        f"{result['rounds']} rounds, which is too few, {100 * result['accuracy']:.2f} % of "
        "the test words are right.",
        "",
        f"The limit: Brown's {limit['labels']} tags and {limit['positions']:,} words need "
        f"{whole / 1e12:.2f} TB for one array of all pairs of labels at all words, and "
        f"{pruned / 1e9:.0f} GB if only the {limit['pairs']:,} pairs were kept that occur in it: "
        "pruning would not be enough, and is not built. `fit` refuses what plainly does not fit "
        "into the machine before it starts.",
    ]


def methods(data_sets: dict[str, Any]) -> list[str]:
    """McNemar's test."""
    lines = [
        "## McNemar's test between methods",
        "",
        "Position by position, between the rows of [treecrf](treecrf.md): how many only one of two "
        "methods has right, and the probability of so uneven a share by chance (exact, two-sided; "
        "neighbouring positions are not independent, so it is too small).",
        "",
        "| one | other | only one right | only the other | p |",
        "|---|---|---|---|---|",
    ]
    for pairs in data_sets.values():
        for row in pairs:
            lines.append(
                f"| {row['one']} | {row['other']} | {row['only_one']} | {row['only_other']} | "
                f"{row['p']:.1e} |"
            )
    return lines
