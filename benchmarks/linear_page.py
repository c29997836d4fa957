"""The page about LinearCRF and CRFsuite, rendered from the measurements of `linear.py`."""

from __future__ import annotations

from typing import Any

from instruction_sets import NAMES, Target, answers, everywhere, host_lines, peers_of
from measuring import ROOT, host_line, verdict

VERSIONS = ("crfx", "numpy", "python-crfsuite")
PAGE = ROOT / "reports" / "linear.md"
TRAINING_TARGETS = (
    Target(
        "training_chunking",
        "training on CoNLL-2000, times faster than CRFsuite",
        {"avx512": 5, "avx2": 4},
        at_least=True,
    ),
    Target(
        "training_letters",
        "training on OCR letters, times faster than CRFsuite",
        {"avx512": 7, "avx2": 5},
        at_least=True,
    ),
)
TAGGING_TARGETS = (
    Target(
        "tagging_dicts",
        "tagging from dicts, times faster than CRFsuite",
        {"avx512": 4, "avx2": 3.5},
        at_least=True,
    ),
    Target(
        "tagging_prepared",
        "tagging from prepared features, times faster than CRFsuite",
        everywhere(10),
        at_least=True,
    ),
)
MOST_DIFFERENCE = 1e-4
MOST_ABOVE_DICTS, MOST_ABOVE_SENTENCES = 1.0, 0.25
MOST_BROWN = 0.5


def page(result: dict[str, Any]) -> str:
    """Return the report; parts that have not been measured are left out."""
    judged = (("training", TRAINING_TARGETS), ("tagging", TAGGING_TARGETS))
    lines = [
        "# LinearCRF beside CRFsuite",
        "",
        *answers((result[name], targets) for name, targets in judged if name in result),
        "",
        "All on one thread. Both tools get the same features and lower the same objective, "
        "sum -log p + |w|², over the pairs of feature and label, and the transitions, that occur "
        "in training: CRFsuite with `c1=0, c2=1`, ours is `LinearCRF(l2=1, start_end=False)`. "
        "CRFsuite has one thread, and its code does not depend on the instruction set.",
    ]
    sections = (
        ("training", training),
        ("tagging", tagging),
        ("chunking", chunking),
        ("letters", letters),
        ("memory", memory),
        ("brown", brown),
    )
    for name, section in sections:
        if name in result:
            part = result[name]
            hosts = host_lines(part, VERSIONS) if "sets" in part else [host_line(part, VERSIONS)]
            lines += ["", *section(part), "", *hosts]
    lines += [
        "",
        "Rendered by `benchmarks/linear.py` from [results/linear.json](results/linear.json). Each "
        "part names the command, machine and day it was measured with.",
    ]
    return "\n".join([*lines, ""])


def training(part: dict[str, Any]) -> list[str]:
    """Return seconds of the first iterations, and until the objective is near."""
    lines = [
        "## Training",
        "",
        f"The seconds of the first {part['iterations']} iterations of L-BFGS, the call that trains "
        f"as a whole, the fastest of {part['passes']} passes in turns; and from them the seconds "
        "until the objective is within 0.0001 of the lower of both ends, after as many iterations "
        "as the next sections say. The target is on these, on one thread.",
        "",
        "| data | instruction set | an iteration of CRFsuite | of crfx, 1 thread | 2 threads | "
        "to near: CRFsuite | crfx, 1 thread | 2 threads | times faster, 1 thread | 2 threads |",
        "|---" * 10 + "|",
    ]
    for name, title in (("chunking", "CoNLL-2000"), ("letters", "OCR letters")):
        near = part["to_near"][name]
        for isa, figures in part["sets"].items():
            seconds = [peers_of(part, isa)[name]]
            seconds += [figures["seconds"][f"{name}_{n_jobs}"] for n_jobs in (1, 2)]
            each = [one / part["iterations"] for one in seconds]
            ends = [each[0] * near["crfsuite"], each[1] * near["ours"], each[2] * near["ours"]]
            cells = [title, NAMES[isa], *(f"{1e3 * one:.1f} ms" for one in each)]
            cells += [f"{one:.2f} s" for one in ends]
            cells += [f"{ends[0] / one:.2f}" for one in ends[1:]]
            lines.append("| " + " | ".join(cells) + " |")
    return lines


def chunking(part: dict[str, Any]) -> list[str]:
    """Training on CoNLL-2000, and F1."""
    f1 = part["f1"]
    return [
        "## To the end: chunks of CoNLL-2000",
        "",
        f"All {part['instances']:,} training sentences, {part['positions']:,} tokens, "
        f"{part['labels']} labels; words and parts of speech from two before to two after, pairs "
        "of neighbouring words, pairs and triples of parts of speech.",
        "",
        *to_the_end(part),
        "",
        f"Chunks of the test sentences, F1: ours {100 * f1['ours']:.2f}, CRFsuite "
        f"{100 * f1['crfsuite']:.2f} (ours ≥ CRFsuite's: {verdict(f1['ours'] >= f1['crfsuite'])});"
        f" {100 * part['same_tags']:.3f} % of the tags are the same.",
    ]


def letters(part: dict[str, Any]) -> list[str]:
    """Training on OCR letters."""
    return [
        "## To the end: OCR letters",
        "",
        f"All {part['instances']:,} words, {part['positions']:,} letters, {part['labels']} labels; "
        "a feature for every pixel that is on.",
        "",
        *to_the_end(part),
    ]


def to_the_end(part: dict[str, Any]) -> list[str]:
    """Objectives at the end, and seconds until they are near the lower one."""
    tools = part["tools"]
    theirs, ours = tools["crfsuite"], tools["ours_1"]
    difference = (ours["objective"] - theirs["objective"]) / part["lowest"]
    return [
        "| tool | weights | iterations to its end | seconds | objective | iterations to near | "
        "seconds to near | times faster | reading | with reading | times faster |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
        end_row("CRFsuite", theirs, theirs),
        end_row("crfx, 1 thread", ours, theirs),
        end_row("crfx, 2 threads", tools["ours_2"], theirs),
        "",
        f"The objectives at the end differ by {difference:+.1e} of the lower one "
        f"(≤ {MOST_DIFFERENCE:g}: {verdict(abs(difference) <= MOST_DIFFERENCE)}; minus: ours is "
        f"lower). *Near* is within {part['near']:g} of the lower one; seconds count from the call "
        "that trains, features having been read; the fastest of "
        f"{ours['runs']} runs of ours and {theirs['runs']} of CRFsuite's, taking turns. Both stop "
        "once ten iterations improve the objective by less than a millionth.",
    ]


def end_row(name: str, ours: dict[str, Any], theirs: dict[str, Any]) -> str:
    """Return a tool's line."""
    near, peer = ours["seconds_to_near"], theirs["seconds_to_near"]
    cells = [name, f"{ours['weights']:,}", str(ours["iterations"]), f"{ours['seconds']:.2f} s"]
    cells.append(f"{ours['objective']:.2f}")
    if near is None:
        cells += ["never", "–", "–", f"{ours['reading']:.2f} s", "–", "–"]
    else:
        whole = near + ours["reading"]
        cells += [str(ours["iterations_to_near"]), f"{near:.2f} s"]
        cells += [f"{peer / near:.1f}" if peer else "–", f"{ours['reading']:.2f} s"]
        cells.append(f"{whole:.2f} s")
        cells.append(f"{(peer + theirs['reading']) / whole:.1f}" if peer else "–")
    return "| " + " | ".join(cells) + " |"


def tagging(part: dict[str, Any]) -> list[str]:
    """Return tokens a second."""
    lines = [
        "## Tagging",
        "",
        f"The {part['instances']:,} test sentences of CoNLL-2000, {part['positions']:,} tokens, "
        "the features of above, one thread, the fastest of "
        f"{part['repeats']} runs in turns; models after {part['iterations']} iterations. "
        "*Prepared* is a stacked CSR matrix for ours and a list of `ItemSequence` for CRFsuite, "
        "which still looks names up when it tags: it has no form that comes nearer. *Dicts* are "
        "as sklearn-crfsuite takes them, and everything from there to the tags counts.",
        "",
        "| from | instruction set | CRFsuite | crfx | times faster |",
        "|---|---|---|---|---|",
    ]
    for name in ("prepared", "dicts"):
        for isa, figures in part["sets"].items():
            both = [peers_of(part, isa)[name], figures["seconds"][name]]
            speeds = [part["positions"] / seconds for seconds in both]
            lines.append(
                f"| {name} | {NAMES[isa]} | {speeds[0]:,.0f} tokens/s | {speeds[1]:,.0f} tokens/s "
                f"| {speeds[1] / speeds[0]:.2f} |"
            )
    return lines


MEMORY_ROWS = (
    ("crfsuite-dicts", "CRFsuite, dicts"),
    ("ours-dicts", "crfx, dicts"),
    ("crfsuite-generator", "CRFsuite, dicts from a generator"),
    ("ours-generator", "crfx, dicts from a generator"),
    ("ours-template", "crfx, template"),
    ("sgd-generator", "crfx, dicts from a generator, trainer sgd"),
    ("sgd-template", "crfx, template, trainer sgd"),
)


def memory(part: dict[str, Any]) -> list[str]:
    """Peaks above what is there before."""
    peer = part["crfsuite-dicts"]
    lines = [
        "## Memory",
        "",
        f"Training on CoNLL-2003, {part['instances']:,} sentences, {part['positions']:,} tokens, "
        f"{part['iterations']} iterations on one thread, each row in a process of its own: the "
        "peak above the loaded sentences, and above the dicts. These are as a function of a user "
        "makes them: names of features are there once, words are those of the sentences, prefixes "
        "and pairs are new texts. With a generator one sentence of dicts is there at a time.",
        "",
        "| what | above the dicts | of CRFsuite's | above the sentences | of CRFsuite's, dicts |",
        "|---|---|---|---|---|",
    ]
    for case, title in MEMORY_ROWS:
        row = part[case]
        cells = [title, "–", "–", f"{row['above_sentences'] / 1e6:.0f} MB"]
        share = row["above_sentences"] / peer["above_sentences"]
        if case.endswith("-dicts"):
            ratio = row["above_features"] / peer["above_features"]
            cells[1] = f"{row['above_features'] / 1e6:.0f} MB"
            cells[2] = f"{ratio:.2f}"
            if case.startswith("ours"):
                cells[2] += f" (≤ {MOST_ABOVE_DICTS:g}: {verdict(ratio <= MOST_ABOVE_DICTS)})"
        aimed = not case.startswith("crfsuite") and not case.endswith("-dicts")
        target = f" (≤ {MOST_ABOVE_SENTENCES:g}: {verdict(share <= MOST_ABOVE_SENTENCES)})"
        cells.append(f"{share:.2f}{target if aimed else ''}")
        lines.append("| " + " | ".join(cells) + " |")
    lines += [
        "",
        "The target is set against CRFsuite with all dicts in memory; fed by a generator it needs "
        "less than half of that too, as its row shows. "
        "L-BFGS needs the most: the last six steps and slopes, and the features by columns beside "
        "the rows. Descent in mini-batches needs neither.",
    ]
    return lines


def chosen_sentences(every: int) -> str:
    """Return which sentences of the Brown corpus were used."""
    return "All" if every == 1 else f"One sentence in {every}, and all that bring a new tag"


def brown(part: dict[str, Any]) -> list[str]:
    """Seconds of an iteration with many labels."""
    peer = part["crfsuite"]
    lines = [
        "## Many labels: the Brown corpus",
        "",
        f"{chosen_sentences(part['every'])}: {peer['instances']:,} sentences, "
        f"{peer['positions']:,} tokens, {peer['labels']} tags; three words, prefixes and"
        f" suffixes. One iteration of L-BFGS, the fastest of {peer['iterations']} but the first. "
        "The target is on one thread.",
        "",
        "| tool | an iteration | of CRFsuite's | peak of the process |",
        "|---|---|---|---|",
    ]
    for case, title in (
        ("crfsuite", "CRFsuite"),
        ("ours-1", "crfx, 1 thread"),
        ("ours-2", "crfx, 2 threads"),
    ):
        row = part[case]
        share = row["seconds"] / peer["seconds"]
        cells = [title, f"{row['seconds']:.2f} s", f"{share:.2f}", f"{row['peak'] / 1e9:.1f} GB"]
        if case == "ours-1":
            cells[2] += f" (≤ {MOST_BROWN:g}: {verdict(share <= MOST_BROWN)})"
        lines.append("| " + " | ".join(cells) + " |")
    return lines
