"""The page about how TreeCRF scales, rendered from what `treecrf.py` measured."""

from __future__ import annotations

from typing import Any

from measuring import ROOT, host_line, verdict

VERSIONS = ("crfx", "numpy", "xgboost")
PAGE = ROOT / "reports" / "treecrf-scale.md"
MOST_GROWTH = {"7": 1.75, "11": 2.5}
MOST_SHARE = 0.25
MOST_BYTES = 8e9
PAPER = {"1": (0.04, 0.8), "3": (0.66, 1.11), "5": (41.2, 1.2), "7": (1505, 1.4)}


def page(result: dict[str, Any]) -> str:
    """The report; parts that have not been measured are left out."""
    lines = [
        "# TreeCRF: how it scales",
        "",
        "Rendered by `benchmarks/treecrf.py` from "
        "[results/treecrf-scale.json](results/treecrf-scale.json). Each part names the command, "
        "machine and day it was measured with. One thread, unless it says otherwise.",
    ]
    sections = {
        "windows": windows,
        "orders": orders,
        "memory": memory,
        "labels": labels,
        "methods": methods,
    }
    for name, section in sections.items():
        if name in result:
            lines += ["", *section(result[name]["found"]), "", host_line(result[name], VERSIONS)]
    return "\n".join([*lines, ""])


def windows(found: dict[str, Any]) -> list[str]:
    """Table 3 of the paper."""
    trees, linear = found["treecrf"], found["linear"]
    lines = [
        "## Seconds per round, by window (the paper's Table 3)",
        "",
        f"The 111 training chains of Qian and Sejnowski, residues as categories, "
        f"{found['leaves']} leaves; the median of {found['rounds']} rounds less the first three, "
        "the fastest of five runs, windows taking turns. LinearCRF has a feature for every set of "
        'places of the window and what stands there, with each pair of labels (`edges="linear"`);'
        " ours keeps only those that occur. The paper's machine was of 2004: compare growth, not "
        "seconds.",
        "",
        "| window | TreeCRF | against window 1 | linear, all conjunctions | that occur | paper: "
        "TreeCRF | paper: linear |",
        "|---|---|---|---|---|---|---|",
    ]
    for window, seconds in trees.items():
        growth = seconds / trees["1"]
        shown = f"{growth:.2f}"
        if window in MOST_GROWTH:
            most = MOST_GROWTH[window]
            shown += f" (≤ {most:g}: {verdict(growth <= most)})"
        own = linear.get(window)
        paper = PAPER.get(window)
        lines.append(
            f"| {window} | {1e3 * seconds:.2f} ms | {shown} | "
            + (f"{own['seconds']:.2f} s | {own['features']:,}" if own else "not run |")
            + (f" | {paper[1]:g} s | {paper[0]:g} s |" if paper else " | | |")
        )
    return lines


def orders(found: dict[str, Any]) -> list[str]:
    """Growth with the order."""
    seconds = found["seconds"]
    lines = [
        "## Seconds per round, by order",
        "",
        f"The same chains, 3 labels, window 11, {found['leaves']} leaves. The paper claims that "
        "tree boosting grows linearly with the order. The search for splits does, nearly: it sees "
        "one more column; but sums over labellings and the scores of all label tuples grow by the "
        "number of labels with every step of the order, for any method that is exact.",
        "",
        "| order | a round | against order 1 |",
        "|---|---|---|",
    ]
    for order, own in seconds.items():
        lines.append(f"| {order} | {1e3 * own:.2f} ms | {own / seconds['1']:.2f} |")
    return lines


def memory(found: dict[str, Any]) -> list[str]:
    """Against rows x labels."""
    ours, copies = found["ours"], found["copies"]
    added = {name: own["peak"] - own["before"] for name, own in found.items()}
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


def labels(found: dict[str, Any]) -> list[str]:
    """Many labels."""
    limit = found["limit"]
    whole = 4.0 * limit["positions"] * limit["labels"] ** 2
    pruned = 4.0 * limit["positions"] * limit["pairs"]
    return [
        "## Many labels",
        "",
        f"UD English EWT, {found['labels']} fine tags, {found['instances']:,} sentences of "
        f"{found['positions']:,} words, {found['features']:,} features (words and spelling within "
        f"one position); trees of 100 leaves, all threads: a round takes "
        f"{found['seconds']:.1f} s, the peak is {found['peak'] / 1e9:.2f} GB (≤ "
        f"{MOST_BYTES / 1e9:g}: {verdict(found['peak'] <= MOST_BYTES)}). After "
        f"{found['rounds']} rounds, which is too few, {100 * found['accuracy']:.2f} % of the test "
        "words are right.",
        "",
        f"The limit: Brown's {limit['labels']} tags and {limit['positions']:,} words need "
        f"{whole / 1e12:.2f} TB for one array of all pairs of labels at all words, and "
        f"{pruned / 1e9:.0f} GB if only the {limit['pairs']:,} pairs were kept that occur in it: "
        "pruning would not be enough, and is not built. `fit` refuses what plainly does not fit "
        "into the machine before it starts.",
    ]


def methods(found: dict[str, Any]) -> list[str]:
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
    for pairs in found.values():
        for row in pairs:
            lines.append(
                f"| {row['one']} | {row['other']} | {row['only_one']} | {row['only_other']} | "
                f"{row['p']:.1e} |"
            )
    return lines
