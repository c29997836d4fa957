"""Which features and settings should be the defaults for text files?

Every trial is judged on sentences that are kept for choosing: CoNLL-2003 testa (entities), the last
tenth of CoNLL-2000's training sentences (chunks), UD-EWT dev (universal tags). Data sets come from
$CRFX_DATA; one thread each.

    python benchmarks/text_template.py                      # all trials: some minutes each
    python benchmarks/text_template.py --only NAME NAME     # some; the others stay as measured
    python benchmarks/text_template.py --test               # the chosen settings on testb, once
    python benchmarks/text_template.py --render             # only write the page anew

Writes reports/results/text-template.json and from it reports/text-template.md.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from measuring import (
    RESULTS,
    ROOT,
    command_line,
    host_line,
    machine,
    verdict,
    write_json,
    write_whole,
)

from crfx import LinearCRF
from crfx.datasets import load_conll2003
from crfx.features import Template
from crfx.features.templates import text_template
from crfx.tag_report import TagReport
from reproduce.datasets import load_conll2000, load_ud_ewt

TARGET = RESULTS / "text-template.json"
PAGE = ROOT / "reports" / "text-template.md"
CHOSEN: dict[str, Any] = {"l2": 0.1, "min_count": 2, "constraints": "bioes"}
WANTED, MOST_SECONDS = 84.0, 180.0
TRIPLES = "{c}[-2..0] & {c}[-1..1] & {c}[0..2]\n"
NO_KINDS = """\
{w}[-2..2]
lower({w}[-1..1])
{w}[-1..0] & {w}[0..1]
prefix({w}[0], 1..4)
suffix({w}[0], 1..4)
shape({w}[-1..1])
kind({w}[-2..2])
"""
COLUMN = "{c}[-2..2]\n{c}[-1..0] & {c}[0..1]\n"


@dataclass(frozen=True)
class Trial:
    """Lines added to the default template, or replacing its lines; settings beside the chosen."""

    task: str
    what: str
    more: str = ""
    instead: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)


TRIALS = {
    "entities": Trial("entities", "the default"),
    "entities-bio": Trial("entities", "learned as BIO", settings={"constraints": "bio"}),
    "entities-free": Trial("entities", "no constraints", settings={"constraints": None}),
    "entities-strong": Trial("entities", "stronger penalty", settings={"l2": 0.2}),
    "entities-weak": Trial("entities", "weaker penalty", settings={"l2": 0.05}),
    "entities-rare": Trial("entities", "all names", settings={"min_count": 1}),
    "entities-no-kinds": Trial("entities", "without pairs of kinds", "", NO_KINDS),
    "entities-triples": Trial("entities", "and triples of columns", TRIPLES),
    "chunks": Trial("chunks", "the default"),
    "chunks-triples": Trial("chunks", "and triples of columns", TRIPLES),
    "tags": Trial("tags", "the default", settings={"constraints": None}),
}
FIGURE = {"entities": "F1", "chunks": "F1", "tags": "accuracy"}


@cache
def data_of(task: str) -> tuple[tuple[str, ...], Any, Any]:
    """Columns, and sentences with labels to train on and to judge by."""
    if task == "chunks":
        train = load_conll2000().train
        kept = len(train.X) // 10
        first = (train.X[:-kept], train.y[:-kept])
        return ("word", "c1"), first, (train.X[-kept:], train.y[-kept:])
    if task == "tags":
        data = load_ud_ewt()
        return ("word",), (data.train.tokens, data.train.upos), (data.dev.tokens, data.dev.upos)
    entities = load_conll2003()
    judged = entities.testb if task == "test" else entities.testa
    return ("word", "c1", "c2"), (entities.train.X, entities.train.y), (judged.X, judged.y)


def template_of(trial: Trial, columns: tuple[str, ...]) -> Template:
    """Return the default template with the lines of a trial, added or instead of word lines."""
    word, further = columns[0], columns[1:]
    if trial.instead is None:
        text = text_template(columns)
    else:
        text = trial.instead.format(w=word) + "".join(COLUMN.format(c=name) for name in further)
    if "{c}" in trial.more:
        text += "".join(trial.more.format(w=word, c=name) for name in further)
    else:
        text += trial.more.format(w=word)
    return Template(text, columns)


def run(trial: Trial) -> dict[str, Any]:
    """Train and judge."""
    columns, (X, y), (X_dev, y_dev) = data_of(trial.task)
    template = template_of(trial, columns)
    begin, begin_cpu = time.perf_counter(), time.process_time()
    crf = LinearCRF(**CHOSEN | trial.settings, n_jobs=1).fit(template(X), y)
    seconds = time.process_time() - begin_cpu
    report = TagReport(crf.classes_.tolist())
    for true, predicted in zip(y_dev, crf.predict(template(X_dev)), strict=True):
        report.add(list(true), predicted.tolist())
    scores = {}
    if report.has_spans():  # in schemes that need not be the same
        scores["F1"] = 100 * report.span().f1
    else:
        scores["accuracy"] = 100 * report.accuracy
    return {
        "command": command_line(),
        "machine": machine(),
        "took": time.perf_counter() - begin,
        "settings": CHOSEN | trial.settings,
        "template": template.text,
        "seconds": seconds,
        "iterations": crf.n_iter_,
        "weights": int(crf.coef_.nnz),
        "scores": scores,
    }


def page(results: dict[str, Any]) -> str:
    """Return the report in Markdown."""
    lines = [
        "# The template for text files",
        "",
        "What `crfx.features.templates` was chosen against. Judged on sentences kept for",
        "choosing: entities on CoNLL-2003 testa (F1 of spans), chunks on the last tenth of",
        "CoNLL-2000's training sentences (F1), tags on UD-EWT dev (right universal tags, percent).",
        f"`LinearCRF({', '.join(f'{k}={v}' for k, v in CHOSEN.items())})` unless the row says",
        "otherwise; one thread. Seconds are those of the processor, from sentences to a model, on",
        "a machine under other load: they compare roughly.",
        "",
        "| task | trial | settings | figure | weights | iterations | seconds |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, trial in TRIALS.items():
        if name in results:
            result = results[name]
            other = ", ".join(f"{key}={value}" for key, value in trial.settings.items())
            lines.append(
                f"| {trial.task} | {trial.what} | {other} | "
                f"{result['scores'][FIGURE[trial.task]]:.2f} | {result['weights']:,} | "
                f"{result['iterations']} | {result['seconds']:.0f} |"
            )
    if "test" in results:
        result = results["test"]
        f1, seconds = result["scores"]["F1"], result["seconds"]
        lines += [
            "",
            f"CoNLL-2003 testb with the default: F1 {f1:.2f} (≥ {WANTED:.0f}: "
            f"{verdict(f1 >= WANTED)}); training took "
            f"{seconds:.0f} s (≤ {MOST_SECONDS:.0f}: {verdict(seconds <= MOST_SECONDS)}).",
            "",
            "testb had been looked at twice before, without constraints and learned as BIO; BIOES "
            "was chosen on testa.",
            "",
            "The template there:",
            "",
            "```",
            result["template"].rstrip(),
            "```",
        ]
    named = sorted({host_line(result, ("crfx", "numpy")) for result in results.values()})
    return "\n".join([*lines, "", "\n\n".join(named), ""])


def main() -> None:
    """Run trials, unless asked only to write the page; then write it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=TRIALS, default=list(TRIALS), metavar="NAME")
    parser.add_argument("--test", action="store_true", help="the chosen settings on testb")
    parser.add_argument("--render", action="store_true", help="write the page anew")
    arguments = parser.parse_args()
    trials = {name: TRIALS[name] for name in arguments.only}
    if arguments.test:
        trials = {"test": Trial("test", "the default")}
    for name, trial in ({} if arguments.render else trials).items():
        result = run(trial)
        print(name, result["scores"], f"{result['seconds']:.0f} s", file=sys.stderr, flush=True)
        # Read anew: another process may have added trials meanwhile.
        results = json.loads(TARGET.read_text()) if TARGET.exists() else {}
        write_json(TARGET, results | {name: result})
    write_whole(PAGE, page(json.loads(TARGET.read_text())))


if __name__ == "__main__":
    main()
