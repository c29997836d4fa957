"""How fast is a file tagged, beside CRFsuite: read it, make features, decode, write it?

CoNLL-2003 testb from $CRFX_DATA, an uncompressed file with three columns and no label. Both tools
have the same features, those of `crfx.features.text_template`, and a model of 20 iterations on
eng.train. For CRFsuite features are made in Python, as its users do, but well: a column at a time.

    python benchmarks/tagging.py             # some minutes, most of them training
    python benchmarks/tagging.py --render    # only write the page anew

Writes reports/results/tagging.json and from it reports/tagging.md.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
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
from crfx.cli.models import sentences_of
from crfx.cli.streaming import MOST_AT_ONCE, as_they_come
from crfx.cli.tagged_text import Tagger
from crfx.datasets import load_conll2003
from crfx.features import Template
from crfx.features.templates import FUNCTIONS, Value
from crfx.features.text_template import text_template
from crfx.io.conll import Conll
from crfx.io.reading import Reading
from crfx.report import crfsuite
from crfx.report.experiments.conll2003 import bio2

TARGET = RESULTS / "tagging.json"
PAGE = ROOT / "reports" / "tagging.md"
ITERATIONS, L2, REPEATS = 20, 0.1, 15
WANTED = 2.0
COLUMNS = ("word", "pos", "chunk")
STAGES = ("read", "features", "decode", "write")
Sentences = list[list[tuple[str, ...]]]


class Watch:
    """Seconds of each stage of one run."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(STAGES, 0.0)
        self._last = time.perf_counter()

    def note(self, stage: str) -> None:
        """A stage has ended."""
        now = time.perf_counter()
        self.seconds[stage] += now - self._last
        self._last = now


class PlainFeatures:
    """The features of a template in plain Python: texts, made a line of the template at a time."""

    def __init__(self, template: Template) -> None:
        self.template = template
        self.values = [(value.column, _remembered(value)) for value in template._values]
        # What stands beyond the ends of a sentence.
        offsets = [offset for _, places in template._lines for _, offset in places]
        self.reach = max([0, *map(abs, offsets)])

    def __call__(self, sentence: Sequence[tuple[str, ...]]) -> list[list[str]]:
        """A list of texts for every token."""
        n, reach = len(sentence), self.reach
        start, end = ["<start>"] * reach, ["<end>"] * reach
        columns = list(zip(*sentence, strict=True))
        padded = [
            start + [function(text) for text in columns[column]] + end
            for column, function in self.values
        ]
        lines = [list(self._line(name, places, padded, n)) for name, places in self.lines()]
        return [[text for text in row if text is not None] for row in zip(*lines, strict=True)]

    def lines(self) -> list[tuple[str, list[tuple[int, int]]]]:
        """Of the template: the name of the feature, and which values it looks at, where."""
        return self.template._lines

    def _line(
        self, name: str, places: list[tuple[int, int]], padded: list[list[Any]], n: int
    ) -> Iterator[str | None]:
        seen = [
            padded[value][self.reach + offset : self.reach + offset + n] for value, offset in places
        ]
        if len(seen) == 1:
            return (None if text is None else name + text for text in seen[0])
        joined = zip(*seen, strict=True)
        return (None if None in texts else name + "|".join(texts) for texts in joined)


def _remembered(value: Value) -> Callable[[str], str | None]:
    if value.function is None:
        return str
    function = FUNCTIONS[value.function]
    return cache(function if value.size is None else lambda text: function(text, value.size))


def by_crfx(crf: LinearCRF, source: Path, target: Path) -> dict[str, float]:
    """Tag a file with the code of `crfx tag`: sentences are read in a thread of their own."""
    begin = time.perf_counter()
    reading = crf.reading_
    assert reading is not None
    tagger = Tagger(crf, reading, "file", None)
    comes = as_they_come(sentences_of(reading, str(source), labelled=False), MOST_AT_ONCE)
    with target.open("w", encoding="utf-8") as file:
        for sentences in comes:
            file.writelines(tagger.texts(reading.arguments(sentences), sentences))
    return {"total": time.perf_counter() - begin}


def by_crfsuite(
    tagger: Any, features: PlainFeatures, source: Path, target: Path
) -> dict[str, float]:
    """Tag a file with CRFsuite, as a script of a user would."""
    watch = Watch()
    blocks = source.read_text(encoding="utf-8").strip().split("\n\n")
    rows = [block.split("\n") for block in blocks]
    sentences = [[tuple(line.split(" ")) for line in lines] for lines in rows]
    watch.note("read")
    texts = [features(sentence) for sentence in sentences]
    watch.note("features")
    labels = [tagger.tag(each) for each in texts]
    watch.note("decode")
    with target.open("w", encoding="utf-8") as file:
        for lines, own in zip(rows, labels, strict=True):
            pairs = zip(lines, own, strict=True)
            file.write("\n".join(f"{line} {label}" for line, label in pairs) + "\n\n")
    watch.note("write")
    return watch.seconds | {"total": sum(watch.seconds.values())}


def say(text: str) -> None:
    """Tell whoever waits."""
    print(f"  {time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def check_equal(template: Template, plain: PlainFeatures, sentences: Sentences) -> None:
    """Both tools must get the same features."""
    for sentence in sentences:
        if plain(sentence) != template.features(sentence):
            raise ValueError(f"features differ: {sentence}")


def measure() -> dict[str, Any]:
    """All figures."""
    begin = time.perf_counter()
    data = load_conll2003()
    template = Template(text_template(COLUMNS), COLUMNS)
    plain = PlainFeatures(template)
    test = [[tuple(token) for token in sentence] for sentence in data.testb.X]
    check_equal(template, plain, test)
    y = [bio2(tags) for tags in data.train.y]
    say("training ours")
    crf = LinearCRF(l2=L2, start_end=False, max_iter=ITERATIONS).fit(template(data.train.X), y)
    crf.reading_ = Reading(Conll(COLUMNS, separator=" "), template)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        say("training CRFsuite")
        params = crfsuite.settings(L2, ITERATIONS, 1e-9)
        model = str(folder / "model")
        crfsuite.train((plain(sentence) for sentence in data.train.X), y, params, model)
        tagger = crfsuite.open_tagger(model)
        source = folder / "testb"
        source.write_text("".join("".join(" ".join(t) + "\n" for t in s) + "\n" for s in test))
        say("tagging")
        tasks = {
            "CRFsuite": lambda: by_crfsuite(tagger, plain, source, folder / "peer"),
            "crfx, 1 thread": lambda: by_crfx(crf.set_params(n_jobs=1), source, folder / "1"),
            "crfx, 2 threads": lambda: by_crfx(crf.set_params(n_jobs=2), source, folder / "2"),
        }
        runs = take_turns(tasks)
        tags = {name: read_tags(folder / name) for name in ("peer", "1", "2")}
    if tags["1"] != tags["2"]:
        raise ValueError("one thread and two give other tags")
    same = sum(a == b for a, b in zip(tags["peer"], tags["1"], strict=True)) / len(tags["1"])
    return {
        "command": command_line(),
        "machine": machine(),
        "took": time.perf_counter() - begin,
        "sentences": len(test),
        "tokens": len(tags["1"]),
        "features_per_token": sum(len(p) for s in test for p in plain(s)) / len(tags["1"]),
        "repeats": REPEATS,
        "same_tags": same,
        "seconds": runs,
    }


def take_turns(tasks: dict[str, Callable[[], dict[str, float]]]) -> dict[str, dict[str, float]]:
    """Of every task its fastest run, the tasks taking turns; the first of each does not count."""
    best: dict[str, dict[str, float]] = {}
    for repeat in range(REPEATS + 1):
        for name, task in tasks.items():
            found = task()
            if repeat and (name not in best or found["total"] < best[name]["total"]):
                best[name] = found
    return best


def read_tags(path: Path) -> list[str]:
    """The last column of a file."""
    return [line.rpartition(" ")[2] for line in path.read_text().splitlines() if line]


def page(found: dict[str, Any]) -> str:
    """The report in Markdown."""
    peer = found["seconds"]["CRFsuite"]
    size = f"{found['sentences']:,} sentences, {found['tokens']:,} tokens"
    lines = [
        "# Tagging a file, beside CRFsuite",
        "",
        f"CoNLL-2003 testb, {size}, as a file of three columns: read it, make the",
        f"features of the default template ({found['features_per_token']:.0f} a token), decode,",
        f"and write it with labels. Models are of {ITERATIONS} iterations on the same features,",
        "and loaded before. Ours runs the code of `crfx tag`. For CRFsuite features are made in",
        "plain Python, as texts, a line of the template at a time. The fastest of "
        f"{found['repeats']} whole runs, in turns.",
        "",
        "| tool | seconds | times faster |",
        "|---|---|---|",
    ]
    for name, own in found["seconds"].items():
        ratio = peer["total"] / own["total"]
        reached = "" if name == "CRFsuite" else f" (≥ {WANTED:.0f}: {verdict(ratio >= WANTED)})"
        lines.append(f"| {name} | {own['total']:.3f} | {ratio:.1f}{reached} |")
    peer_rest = peer["total"] - peer["features"]
    ours = min(own["total"] for name, own in found["seconds"].items() if name != "CRFsuite")
    lines += [
        "",
        f"Of CRFsuite's time {peer['features']:.3f} s are spent on features in Python; the rest "
        f"takes {peer_rest / ours:.1f} times what crfx takes for all of it.",
    ]
    lines += [
        "",
        f"{100 * found['same_tags']:.2f} % of the tags are the same; the models differ, since each",
        "tool took its own steps.",
        "",
        host_line(found, ("crfx", "numpy", "python-crfsuite")),
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    """Measure, unless asked only to write the page; then write it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--render", action="store_true", help="write the page anew")
    if not parser.parse_args().render:
        write_json(TARGET, measure())
    text = page(json.loads(TARGET.read_text()))
    write_whole(PAGE, text)
    print(text)


if __name__ == "__main__":
    main()
