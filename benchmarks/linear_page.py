"""The page about LinearCRF and CRFsuite, rendered from what `linear.py` measured."""

from __future__ import annotations

from typing import Any

from measuring import ROOT, host_line, verdict

VERSIONS = ("crfx", "numpy", "python-crfsuite")
PAGE = ROOT / "reports" / "linear.md"
MOST_DIFFERENCE = 1e-4
LEAST_TRAINING = {1: 3.0, 2: 5.0}  # threads: times faster
LEAST_PREPARED, LEAST_DICTS = 10.0, 2.0
MOST_ABOVE_DICTS, MOST_ABOVE_SENTENCES = 1.0, 0.25
MOST_BROWN = 0.5


def page(result: dict[str, Any]) -> str:
    """The report; parts that have not been measured are left out."""
    lines = [
        "# LinearCRF beside CRFsuite",
        "",
        "Rendered by `benchmarks/linear.py` from [results/linear.json](results/linear.json). Each "
        "part names the command, machine and day it was measured with. Both tools get the same "
        "features and lower the same objective, sum -log p + |w|², over the pairs of feature and "
        "label, and the transitions, that occur in training: CRFsuite with `c1=0, c2=1`, ours is "
        "`LinearCRF(l2=1, start_end=False)`. CRFsuite has one thread.",
    ]
    sections = (
        ("chunking", chunking),
        ("letters", letters),
        ("tagging", tagging),
        ("memory", memory),
        ("brown", brown),
    )
    for name, section in sections:
        if name in result:
            lines += ["", *section(result[name]), "", host_line(result[name], VERSIONS)]
    return "\n".join([*lines, ""])


def chunking(part: dict[str, Any]) -> list[str]:
    """Training on CoNLL-2000, and F1."""
    f1 = part["f1"]
    return [
        "## Training: chunks of CoNLL-2000",
        "",
        f"All {part['instances']:,} training sentences, {part['positions']:,} tokens, "
        f"{part['labels']} labels; words and parts of speech from two before to two after, pairs "
        "of neighbouring words, pairs and triples of parts of speech.",
        "",
        *training(part),
        "",
        f"Chunks of the test sentences, F1: ours {100 * f1['ours']:.2f}, CRFsuite "
        f"{100 * f1['crfsuite']:.2f} (ours ≥ CRFsuite's: {verdict(f1['ours'] >= f1['crfsuite'])});"
        f" {100 * part['same_tags']:.3f} % of the tags are the same.",
    ]


def letters(part: dict[str, Any]) -> list[str]:
    """Training on OCR letters."""
    return [
        "## Training: OCR letters",
        "",
        f"All {part['instances']:,} words, {part['positions']:,} letters, {part['labels']} labels; "
        "a feature for every pixel that is on.",
        "",
        *training(part),
    ]


def training(part: dict[str, Any]) -> list[str]:
    """Objectives at the end, and seconds until they are near the lower one."""
    tools = part["tools"]
    theirs, ours = tools["crfsuite"], tools["ours_1"]
    difference = (ours["objective"] - theirs["objective"]) / part["lowest"]
    return [
        "| tool | weights | iterations to its end | seconds | objective | iterations to near | "
        "seconds to near | times faster | reading | with reading | times faster |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
        training_row("CRFsuite", theirs, theirs, None),
        training_row("crfx, 1 thread", ours, theirs, 1),
        training_row("crfx, 2 threads", tools["ours_2"], theirs, 2),
        "",
        f"The objectives at the end differ by {difference:+.1e} of the lower one "
        f"(≤ {MOST_DIFFERENCE:g}: {verdict(abs(difference) <= MOST_DIFFERENCE)}; minus: ours is "
        f"lower). *Near* is within {part['near']:g} of the lower one; seconds count from the call "
        "that trains, features having been read; the fastest of "
        f"{ours['runs']} runs of ours and {theirs['runs']} of CRFsuite's, taking turns. Both stop "
        "once ten iterations improve the objective by less than a millionth.",
    ]


def training_row(name: str, own: dict, theirs: dict, n_jobs: int | None) -> str:
    """A tool's line; the target is on the seconds without reading."""
    near, peer = own["seconds_to_near"], theirs["seconds_to_near"]
    cells = [name, f"{own['weights']:,}", str(own["iterations"]), f"{own['seconds']:.2f} s"]
    cells.append(f"{own['objective']:.2f}")
    if near is None:
        missed = "–" if n_jobs is None else f"never: {verdict(False)}"
        cells += ["–", "–", missed, f"{own['reading']:.2f} s", "–", "–"]
        return "| " + " | ".join(cells) + " |"
    whole = near + own["reading"]
    cells += [str(own["iterations_to_near"]), f"{near:.2f} s"]
    if n_jobs is None:
        cells += ["1", f"{own['reading']:.2f} s", f"{whole:.2f} s", "1"]
    elif peer is None:
        cells += ["CRFsuite never", f"{own['reading']:.2f} s", f"{whole:.2f} s", "–"]
    else:
        times, least = peer / near, LEAST_TRAINING[n_jobs]
        cells.append(f"{times:.1f} (≥ {least:g}: {verdict(times >= least)})")
        cells += [f"{own['reading']:.2f} s", f"{whole:.2f} s"]
        cells.append(f"{(peer + theirs['reading']) / whole:.1f}")
    return "| " + " | ".join(cells) + " |"


def tagging(part: dict[str, Any]) -> list[str]:
    """Tokens a second."""
    lines = [
        "## Tagging",
        "",
        f"The {part['instances']:,} test sentences of CoNLL-2000, {part['positions']:,} tokens, "
        "the features of above, one thread, the fastest of "
        f"{part['repeats']} runs, taking turns; models after {part['iterations']} iterations. "
        "*Prepared* is a stacked CSR matrix for ours and a list of `ItemSequence` for CRFsuite, "
        "which still looks names up when it tags: it has no form that comes nearer. *Dicts* are "
        "as sklearn-crfsuite takes them, and everything from there to the tags counts.",
        "",
        "| from | CRFsuite | crfx | times faster |",
        "|---|---|---|---|",
    ]
    for name, least in (("prepared", LEAST_PREPARED), ("dicts", LEAST_DICTS)):
        seconds = part["seconds"][name]
        speeds = [part["positions"] / seconds[tool] for tool in ("crfsuite", "ours")]
        times = speeds[1] / speeds[0]
        lines.append(
            f"| {name} | {speeds[0]:,.0f} tokens/s | {speeds[1]:,.0f} tokens/s | "
            f"{times:.1f} (≥ {least:g}: {verdict(times >= least)}) |"
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
            own = row["above_features"] / peer["above_features"]
            cells[1] = f"{row['above_features'] / 1e6:.0f} MB"
            cells[2] = f"{own:.2f}"
            if case.startswith("ours"):
                cells[2] += f" (≤ {MOST_ABOVE_DICTS:g}: {verdict(own <= MOST_ABOVE_DICTS)})"
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
    """Which sentences of the Brown corpus were taken."""
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
