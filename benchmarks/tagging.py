"""How fast is tagging a file, compared with CRFsuite: read, make features, decode, write?

CoNLL-2003 testb from $CRFX_DATA, an uncompressed file with three columns and no label. Both tools
have the same features, those of `crfx.features.templates`, and a model of 20 iterations on
eng.train. For CRFsuite features are made in Python, as its users do, but well: a column at a time.
Ours tags in every instruction set of the processor.

    python benchmarks/tagging.py                       # three minutes, half of them training
    python benchmarks/tagging.py --sets avx2 --quick   # a first look

Writes reports/results/tagging.json and from it reports/tagging.md.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from instruction_sets import (
    NAMES,
    Target,
    answers,
    everywhere,
    host_lines,
    in_turns,
    measured,
    parser_of,
    peers_of,
    report,
    run_child,
)
from measuring import RESULTS, ROOT, say

from crfx import LinearCRF, load
from crfx.cli.sources import MOST_AT_ONCE, as_they_come, sentences_of
from crfx.cli.tag import Tagger
from crfx.datasets import load_conll2003
from crfx.features import Template
from crfx.features.templates import FUNCTIONS, text_template
from crfx.io.conll import Conll
from crfx.io.reading import Reading
from reproduce import crfsuite
from reproduce.experiments.conll2003 import bio2

TARGET = RESULTS / "tagging.json"
PAGE = ROOT / "reports" / "tagging.md"
ITERATIONS, L2, PASSES, REPEATS = 20, 0.1, 4, 4
TARGETS = tuple(
    Target(
        f"tagging_{n_jobs}",
        f"tagging a file on {n_jobs} thread{'s' * (n_jobs > 1)}, times faster than CRFsuite",
        everywhere(2.0),
        at_least=True,
        digits=1,
    )
    for n_jobs in (1, 2)
)
COLUMNS = ("word", "pos", "chunk")
STAGES = ("read", "features", "decode", "write")
Sentences = list[list[tuple[str, ...]]]


class Watch:
    """Seconds of each stage of one run."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(STAGES, 0.0)
        self._last = time.perf_counter()

    def note(self, stage: str) -> None:
        """Record the end of a stage."""
        now = time.perf_counter()
        self.seconds[stage] += now - self._last
        self._last = now


class PlainFeatures:
    """The features of a template in plain Python: texts, one line of the template at a time."""

    def __init__(self, template: Template) -> None:
        self.template = template
        self.values = [
            (column, _remembered(function, size)) for column, function, size in template._values
        ]
        # What stands beyond the ends of a sentence.
        offsets = [offset for _, places in template._lines for _, offset in places]
        self.reach = max([0, *map(abs, offsets)])

    def __call__(self, sentence: Sequence[tuple[str, ...]]) -> list[list[str]]:
        """Return a list of texts for every token."""
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
        """Return the lines of the template: name of the feature, columns and offsets."""
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


def _remembered(name: str | None, size: int | None) -> Callable[[str], str | None]:
    if name is None:
        return str
    function = FUNCTIONS[name]
    return cache(function if size is None else lambda text: function(text, size))


def by_crfx(crf: LinearCRF, source: Path, target: Path) -> dict[str, float]:
    """Tag a file with the code of `crfx tag`: sentences are read in a thread of their own."""
    begin = time.perf_counter()
    reading = crf.reading_
    assert reading is not None
    tagger = Tagger(crf, reading, "file", None)
    comes = as_they_come(sentences_of(reading, str(source)), MOST_AT_ONCE)
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
        for lines, tags in zip(rows, labels, strict=True):
            pairs = zip(lines, tags, strict=True)
            file.write("\n".join(f"{line} {label}" for line, label in pairs) + "\n\n")
    watch.note("write")
    return watch.seconds | {"total": sum(watch.seconds.values())}


def check_equal(template: Template, plain: PlainFeatures, sentences: Sentences) -> None:
    """Both tools must get the same features."""
    for sentence in sentences:
        if plain(sentence) != template.features(sentence):
            raise ValueError(f"features differ: {sentence}")


def prepare(folder: Path) -> dict[str, Any]:
    """Train both tools and write the models and the file to tag; return the sizes."""
    data = load_conll2003()
    template = Template(text_template(COLUMNS), COLUMNS)
    plain = PlainFeatures(template)
    test = [[tuple(token) for token in sentence] for sentence in data.testb.X]
    check_equal(template, plain, test)
    y = [bio2(tags) for tags in data.train.y]
    say("training ours")
    crf = LinearCRF(l2=L2, start_end=False, max_iter=ITERATIONS).fit(template(data.train.X), y)
    crf.reading_ = Reading(Conll(COLUMNS, separator=" "), template)
    crf.save(folder / "model.crfx")
    say("training CRFsuite")
    params = crfsuite.settings(L2, ITERATIONS, 1e-9)
    X = (plain(sentence) for sentence in data.train.X)
    crfsuite.train(X, y, params, str(folder / "model.crfsuite"))
    text = "".join("".join(" ".join(t) + "\n" for t in s) + "\n" for s in test)
    (folder / "testb").write_text(text, encoding="utf-8")
    n_tokens = sum(map(len, test))
    n_features = sum(len(features) for sentence in test for features in plain(sentence))
    return {
        "sentences": len(test),
        "tokens": n_tokens,
        "features_per_token": n_features / n_tokens,
    }


def core(folder: str, repeats: str) -> dict[str, dict[str, float]]:
    """Measure ours in the instruction set of this process, by threads; leave the tags there."""
    place = Path(folder)
    crf = load(place / "model.crfx")
    tasks = {
        n_jobs: lambda n_jobs=n_jobs: by_crfx(
            crf.set_params(n_jobs=int(n_jobs)), place / "testb", place / n_jobs
        )
        for n_jobs in ("1", "2")
    }
    best = take_turns(tasks, int(repeats))
    if read_tags(place / "1") != read_tags(place / "2"):
        raise ValueError("one thread and two give other tags")
    return best


def peer(folder: str, repeats: str) -> dict[str, float]:
    """Measure CRFsuite; leave its tags there."""
    place = Path(folder)
    template = Template(text_template(COLUMNS), COLUMNS)
    tag = partial(
        by_crfsuite,
        crfsuite.open_tagger(str(place / "model.crfsuite")),
        PlainFeatures(template),
        place / "testb",
        place / "peer",
    )
    return take_turns({"CRFsuite": tag}, int(repeats))["CRFsuite"]


def figure(key: str, ours: dict[str, Any], peers: dict[str, Any]) -> float:
    """Return how many times faster than CRFsuite ours is."""
    return peers["total"] / ours["seconds"][key.rpartition("_")[2]]["total"]


def measure(sets: Sequence[str], *, quick: bool) -> dict[str, Any]:
    """Measure everything."""
    passes, repeats = (1, 1) if quick else (PASSES, REPEATS)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sizes = prepare(folder)
        result = in_turns(sets, passes, "core", folder, repeats, peers="peer")
        ours, theirs = (read_tags(folder / name) for name in ("1", "peer"))
    result["sets"] = {isa: {"seconds": seconds} for isa, seconds in result["sets"].items()}
    same = sum(a == b for a, b in zip(theirs, ours, strict=True)) / len(ours)
    return {**sizes, "repeats": passes * repeats, "same_tags": same, **result}


def take_turns(
    tasks: dict[str, Callable[[], dict[str, float]]], repeats: int
) -> dict[str, dict[str, float]]:
    """Return the fastest run of every task; tasks run in turns, and first runs are not counted."""
    best: dict[str, dict[str, float]] = {}
    for repeat in range(repeats + 1):
        for name, task in tasks.items():
            watch = task()
            if repeat and (name not in best or watch["total"] < best[name]["total"]):
                best[name] = watch
    return best


def read_tags(path: Path) -> list[str]:
    """Return the last column of a file."""
    return [line.rpartition(" ")[2] for line in path.read_text().splitlines() if line]


def page(result: dict[str, Any]) -> str:
    """Return the report in Markdown."""
    peer = result["peers"]
    size = f"{result['sentences']:,} sentences, {result['tokens']:,} tokens"
    lines = [
        "# Tagging a file, beside CRFsuite",
        "",
        *answers([(result, TARGETS)]),
        "",
        f"CoNLL-2003 testb, {size}, as a file of three columns: read it, make the features of the "
        f"default template ({result['features_per_token']:.0f} a token), decode, and write it with "
        f"labels. Models are of {ITERATIONS} iterations on the same features, and loaded before. "
        "Ours runs the code of `crfx tag`. For CRFsuite features are made in plain Python, as "
        "texts, a line of the template at a time. The fastest of "
        f"{result['repeats']} whole runs, in turns.",
        "",
        "| tool | instruction set | seconds | times faster |",
        "|---|---|---|---|",
        f"| CRFsuite | – | {peer['total']:.3f} | 1 |",
    ]
    for n_jobs in ("1", "2"):
        for isa, figures in result["sets"].items():
            seconds = figures["seconds"][n_jobs]["total"]
            ratio = peers_of(result, isa)["total"] / seconds
            threads = "1 thread" if n_jobs == "1" else f"{n_jobs} threads"
            lines.append(f"| crfx, {threads} | {NAMES[isa]} | {seconds:.3f} | {ratio:.1f} |")
    ours = min(
        figures["total"] for isa in result["sets"].values() for figures in isa["seconds"].values()
    )
    lines += [
        "",
        f"Of CRFsuite's time {peer['features']:.3f} s are spent on features in Python; the rest "
        f"takes {(peer['total'] - peer['features']) / ours:.1f} times what the fastest run of crfx "
        "takes for all of it.",
        "",
        f"{100 * result['same_tags']:.2f} % of the tags are the same; the models differ, since "
        "each tool took its own steps.",
        "",
        "Rendered by `benchmarks/tagging.py` from [results/tagging.json](results/tagging.json).",
        "",
        *host_lines(result, ("crfx", "numpy", "python-crfsuite")),
        "",
    ]
    return "\n".join(lines)


CHILDREN = {"core": core, "peer": peer}


def main() -> None:
    """Measure, print, write."""
    if run_child(CHILDREN):
        return
    arguments = parser_of(__doc__.splitlines()[0]).parse_args()

    def measure_all(sets: list[str], recorded: dict[str, Any]) -> dict[str, Any]:
        run = partial(measure, sets, quick=arguments.quick)
        return measured(sets, run, recorded, TARGETS, figure)

    report(arguments, TARGET, measure_all, PAGE, page)


if __name__ == "__main__":
    main()
