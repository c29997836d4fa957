"""How does LinearCRF stand beside CRFsuite: objective, seconds, memory, tags?

Both get the same features and lower the same objective, sum -log p + |w|^2, over the pairs of
feature and label, and the transitions, that occur. Data sets come from $CRFX_DATA.

    python benchmarks/linear.py                   # all parts, one after the other
    python benchmarks/linear.py --only tagging    # one part; the others stay as they were measured
    python benchmarks/linear.py --render          # only write the page anew

Parts: chunking, letters (training), tagging, memory, brown. Each runs in processes of its own and
records its machine and date. Writes reports/results/linear.json and from it reports/linear.md.
"""

from __future__ import annotations

import argparse
import gc
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from linear_page import PAGE, page
from measuring import (
    RESULTS,
    command_line,
    fastest,
    held_memory,
    machine,
    peak_memory,
    write_json,
    write_whole,
)

from crfx import LinearCRF
from crfx.datasets import load_brown, load_conll2000, load_conll2003, load_ocr
from crfx.features import Template, Vocabulary
from crfx.metrics import span_f1
from crfx.report import crfsuite
from crfx.report.crfsuite import Trace
from crfx.report.experiments.tagging import TEMPLATES

TARGET = RESULTS / "linear.json"
L2, MAX_ITER, TOL = 1.0, 1000, 1e-6
NEAR = 1e-4  # how close to the lower of both objectives counts as arrived
RUNS, PEER_RUNS = 3, 2
REPEATS = 7
TAGGING_ITERATIONS = 20
MEMORY_ITERATIONS = 10  # L-BFGS remembers six steps: fewer iterations would need less
BROWN_ITERATIONS = 3
BROWN_EVERY = 20  # CRFsuite needs minutes for an iteration over all sentences

CHUNKING = TEMPLATES["neighbours"]
ENTITIES = """
word[-2..2]
word[-1..0] & word[0..1]
pos[-1..1]
chunk[-1..1]
prefix(word[0], 1..4)
suffix(word[0], 1..4)
shape(word[-1..1])
true
"""
TAGS = """
word[-1..1]
prefix(word[0], 1..2)
suffix(word[0], 1..3)
"""
Texts = list[list[list[str]]]


def say(text: str) -> None:
    """Tell whoever waits; results have standard output to themselves."""
    print(f"  {time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def as_lists(y: Sequence[Any]) -> list[list[str]]:
    """Labels as CRFsuite takes them."""
    return [labels.tolist() for labels in y]


def as_dicts(template: Template, sentence: Any, names: dict[str, str]) -> list[dict[str, str]]:
    """Features as users of sklearn-crfsuite write them: {"word[0]": "the", ...}.

    In memory too they are what a function of a user makes: ``names`` are there once, words are
    those of the sentence, and what is computed from them is new.
    """
    own = {text: text for token in sentence for text in token}
    found = []
    for features in template.features(sentence):
        pairs = (feature.partition("=")[::2] for feature in features)
        found.append({names.setdefault(key, key): own.get(text, text) for key, text in pairs})
    return found


def all_dicts(template: Template, sentences: Sequence[Any]) -> list[list[dict[str, str]]]:
    """The dicts of all sentences."""
    names: dict[str, str] = {}
    return [as_dicts(template, sentence, names) for sentence in sentences]


def new_crf(n_jobs: int, max_iter: int = MAX_ITER, tol: float = TOL) -> LinearCRF:
    """Ours, with CRFsuite's objective."""
    return LinearCRF(l2=L2, start_end=False, max_iter=max_iter, tol=tol, n_jobs=n_jobs)


def train_ours(
    texts: Any, y: Sequence[Any], n_jobs: int, max_iter: int = MAX_ITER, tol: float = TOL
) -> tuple[LinearCRF, Vocabulary, Trace]:
    """Read the features into a matrix, then train on it: reading is timed apart."""
    trace, vocabulary = Trace(), Vocabulary()
    begin = time.perf_counter()
    X, lengths = vocabulary.encode(texts, learn=True)
    trace.reading = time.perf_counter() - begin
    labels = np.concatenate(y)
    crf = new_crf(n_jobs, max_iter, tol)
    begin = time.perf_counter()

    def note(progress: Any) -> None:
        trace.note(time.perf_counter() - begin, progress.history["objective"][-1])

    crf.fit(X, labels, lengths=lengths, callbacks=[note])
    trace.n_weights = count_weights(crf)
    return crf, vocabulary, trace


def count_weights(crf: LinearCRF) -> int:
    """Weights that training moved."""
    node = np.count_nonzero(crf.model_.node.weights)
    return int(node + np.count_nonzero(crf.transitions_))


# Training to the end: the objective, and the seconds until it is near.


def chunking_task() -> tuple[Texts, list[Any]]:
    """The sentences that CoNLL-2000 trains on, as lists of names."""
    train = load_conll2000().train
    template = Template(CHUNKING, ("word", "pos"))
    return [template.features(sentence) for sentence in train.X], train.y


def letters_task() -> tuple[Texts, list[Any]]:
    """All OCR letters, as lists of the pixels that are on."""
    letters = load_ocr()
    names = np.array([f"pixel{number}" for number in range(letters.X[0].shape[1])])
    return [[names[row > 0].tolist() for row in word] for word in letters.X], letters.y


def one_chunking() -> dict[str, object]:
    """Training on CoNLL-2000, and the chunks that both find in its test sentences."""
    texts, y = chunking_task()
    with tempfile.TemporaryDirectory() as folder:
        model = str(Path(folder) / "chunking.crfsuite")
        found, crf, vocabulary = train_both(texts, y, model)
        test = load_conll2000().test
        template = Template(CHUNKING, ("word", "pos"))
        asked = [template.features(sentence) for sentence in test.X]
        theirs = crfsuite.tag(crfsuite.open_tagger(model), asked)
    X, lengths = vocabulary.encode(asked)
    ours = np.split(crf.predict(X, lengths=lengths), np.cumsum(lengths)[:-1])
    same = np.concatenate(ours) == np.concatenate(theirs)
    scores = {"ours": span_f1(test.y, ours), "crfsuite": span_f1(test.y, theirs)}
    return {**found, "f1": scores, "same_tags": float(same.mean())}


def one_letters() -> dict[str, object]:
    """Training on OCR letters."""
    with tempfile.TemporaryDirectory() as folder:
        return train_both(*letters_task(), str(Path(folder) / "letters.crfsuite"))[0]


def train_both(
    texts: Texts, y: Sequence[Any], model: str
) -> tuple[dict[str, object], LinearCRF, Vocabulary]:
    """Runs of both, taking turns; CRFsuite's last one writes the model."""
    runs: dict[str, list[Trace]] = {"crfsuite": [], "ours_1": [], "ours_2": []}
    labels, params = as_lists(y), crfsuite.settings(L2, MAX_ITER, TOL)
    for number in range(max(RUNS, PEER_RUNS)):
        if number < PEER_RUNS:
            runs["crfsuite"].append(crfsuite.train(texts, labels, params, model))
            say(f"CRFsuite, {in_short(runs['crfsuite'][-1])}")
        for n_jobs in (1, 2) if number < RUNS else ():
            crf, vocabulary, trace = train_ours(texts, y, n_jobs)
            runs[f"ours_{n_jobs}"].append(trace)
            say(f"crfx on {n_jobs}, {in_short(trace)}")
    ends = {name: own[0].objectives[-1] for name, own in runs.items()}
    found = {
        "instances": len(texts),
        "positions": int(sum(map(len, texts))),
        "labels": len(crf.classes_),
        "lowest": min(ends.values()),
        "near": NEAR,
        "tools": {name: summary(own, min(ends.values())) for name, own in runs.items()},
    }
    return found, crf, vocabulary


def in_short(trace: Trace) -> str:
    """A run in a line."""
    return (
        f"{len(trace.seconds)} iterations in {trace.seconds[-1]:.1f} s: {trace.objectives[-1]:.3f}"
    )


def summary(runs: list[Trace], lowest: float) -> dict[str, object]:
    """The fastest of several runs of a tool; they all take the same path."""
    number = runs[0].first_below(lowest * (1 + NEAR))
    near = None if number is None else min(run.seconds[number] for run in runs)
    return {
        "runs": len(runs),
        "objective": runs[0].objectives[-1],
        "weights": runs[0].n_weights,
        "iterations": len(runs[0].seconds),
        "iterations_to_near": None if number is None else number + 1,
        "seconds_to_near": near,
        "reading": min(run.reading for run in runs),
        "seconds": min(run.seconds[-1] for run in runs),
    }


# Tags from a trained model.


def one_tagging() -> dict[str, object]:
    """Seconds for the tags of the test sentences of CoNLL-2000, on one thread."""
    texts, y = chunking_task()
    test = load_conll2000().test
    template = Template(CHUNKING, ("word", "pos"))
    asked = [template.features(sentence) for sentence in test.X]
    prepared = prepared_tasks(texts, y, asked)
    say("from prepared features")
    seconds = {"prepared": fastest(prepared, REPEATS)}
    del texts, asked, prepared
    train = load_conll2000().train
    dicts = all_dicts(template, train.X)
    tasks = dict_tasks(dicts, train.y, all_dicts(template, test.X))
    say("from dicts")
    seconds["dicts"] = fastest(tasks, REPEATS)
    return {
        "instances": len(test.X),
        "positions": int(sum(map(len, test.X))),
        "iterations": TAGGING_ITERATIONS,
        "repeats": REPEATS,
        "seconds": seconds,
    }


def prepared_tasks(texts: Texts, y: Sequence[Any], asked: Texts) -> dict[str, Any]:
    """Tag features in the form that each tool likes best: CSR, and CRFsuite's `ItemSequence`."""
    crf, vocabulary, _ = train_ours(texts, y, 1, TAGGING_ITERATIONS, tol=0.0)
    X, lengths = vocabulary.encode(asked)
    tagger = quickly_trained_tagger(texts, y)
    items = crfsuite.prepared(asked)
    return {
        "ours": lambda: crf.predict(X, lengths=lengths),
        "crfsuite": lambda: crfsuite.tag_prepared(tagger, items),
    }


def dict_tasks(dicts: Any, y: Sequence[Any], asked: Any) -> dict[str, Any]:
    """Tag dicts, which both read anew every time."""
    crf = new_crf(1, TAGGING_ITERATIONS, tol=0.0).fit(dicts, y)
    tagger = quickly_trained_tagger(dicts, y)
    return {
        "ours": lambda: crf.predict(asked),
        "crfsuite": lambda: crfsuite.tag(tagger, asked),
    }


def quickly_trained_tagger(X: Any, y: Sequence[Any]) -> Any:
    """After few iterations: the time to tag does not depend on what the weights are."""
    with tempfile.TemporaryDirectory() as folder:
        model = str(Path(folder) / "tagging.crfsuite")
        crfsuite.train(X, as_lists(y), crfsuite.settings(L2, TAGGING_ITERATIONS, TOL), model)
        return crfsuite.open_tagger(model)  # it has read the file whole


# Memory while features are read and training runs.

MEMORY_CASES = (
    "crfsuite-dicts",
    "ours-dicts",
    "crfsuite-generator",
    "ours-generator",
    "ours-template",
    "sgd-generator",
    "sgd-template",
)


def one_memory(case: str) -> dict[str, object]:
    """Peak bytes above the loaded sentences, and above the dicts where there are any."""
    train = load_conll2003().train
    template = Template(ENTITIES, ("word", "pos", "chunk"))
    fit_some(template, train.X[:50], train.y[:50])
    gc.collect()
    sentences = held_memory()
    tool, _, form = case.rpartition("-")
    X: Any = template(train.X)
    if form == "dicts":
        X = all_dicts(template, train.X)
    elif form == "generator":
        X = (as_dicts(template, sentence, {}) for sentence in train.X)
    gc.collect()
    features = held_memory()
    fit_shortly(tool, X, train.y)
    peak = peak_memory()
    return {"above_sentences": peak - sentences, "above_features": peak - features}


def fit_some(template: Template, X: Sequence[Any], y: Sequence[Any]) -> None:
    """Both have run once, so that libraries are loaded before anything is noted."""
    for tool in ("crfsuite", "ours", "sgd"):
        fit_shortly(tool, all_dicts(template, X), y)


def fit_shortly(tool: str, X: Any, y: Sequence[Any]) -> None:
    """A few iterations, which need the memory of many."""
    if tool == "crfsuite":
        params = crfsuite.settings(L2, MEMORY_ITERATIONS, TOL)
        crfsuite.train(X, (labels.tolist() for labels in y), params)
    elif tool == "sgd":
        LinearCRF("sgd", l2=L2, start_end=False, sweeps=2, n_jobs=1, random_state=0).fit(X, y)
    else:
        new_crf(1, MEMORY_ITERATIONS, tol=0.0).fit(X, y)


def measure_memory() -> dict[str, object]:
    """Each in a process of its own: a peak is a property of a process."""
    train = load_conll2003().train
    found: dict[str, object] = {
        "instances": len(train.X),
        "positions": int(sum(map(len, train.X))),
        "iterations": MEMORY_ITERATIONS,
    }
    for case in MEMORY_CASES:
        say(case)
        found[case] = in_new_process("--one", "memory", "--case", case)
    return found


# Many labels: the Brown corpus.

BROWN_CASES = ("crfsuite", "ours-1", "ours-2")


def brown_task(every: int) -> tuple[Iterator[list[list[str]]], list[Any]]:
    """Every so manyth sentence, and all those in which a tag is new: all tags are there."""
    brown = load_brown()
    seen: set[str] = set()
    chosen = []
    for number, labels in enumerate(brown.y):
        new = set(labels.tolist()) - seen
        if new or number % every == 0:
            chosen.append(number)
        seen |= new
    template = Template(TAGS, ("word",))
    features = (template.features(brown.X[number]) for number in chosen)
    return features, [brown.y[number] for number in chosen]


def one_brown(case: str, every: int) -> dict[str, object]:
    """Seconds of the fastest iteration but the first, which prepares."""
    X, y = brown_task(every)
    tool, _, n_jobs = case.partition("-")
    if tool == "crfsuite":
        params = crfsuite.settings(L2, BROWN_ITERATIONS, TOL)
        trace = crfsuite.train(X, as_lists(y), params, tell=say)
    else:
        trace = train_ours(X, y, int(n_jobs), BROWN_ITERATIONS, tol=0.0)[2]
    return {
        "instances": len(y),
        "positions": int(sum(map(len, y))),
        "labels": len(np.unique(np.concatenate(y))),
        "weights": trace.n_weights,
        "iterations": len(trace.seconds),
        "trials": trace.trials,
        "seconds": min(np.diff(trace.seconds).tolist()),
        "first": trace.seconds[0],
        "objectives": trace.objectives,
        "peak": peak_memory(),
    }


def measure_brown(every: int) -> dict[str, object]:
    """Each in a process of its own, one after the other."""
    found: dict[str, object] = {"every": every}
    for case in BROWN_CASES:
        say(case)
        asked = ("--one", "brown", "--case", case, "--every", str(every))
        found[case] = in_new_process(*asked)
    return found


PARTS = ("chunking", "letters", "tagging", "memory", "brown")


def in_new_process(*arguments: str) -> dict[str, object]:
    """What another run of this script prints."""
    asked = [sys.executable, __file__, *arguments]
    return json.loads(subprocess.run(asked, stdout=subprocess.PIPE, text=True, check=True).stdout)


def one(part: str, case: str, every: int) -> dict[str, object]:
    """Measure in this process."""
    if part == "memory":
        return one_memory(case)
    if part == "brown":
        return one_brown(case, every)
    return {"chunking": one_chunking, "letters": one_letters, "tagging": one_tagging}[part]()


def recorded() -> dict[str, Any]:
    """The parts that have been measured so far."""
    return json.loads(TARGET.read_text(encoding="utf-8")) if TARGET.exists() else {}


def measured(part: str, every: int) -> dict[str, object]:
    """Measure in new processes."""
    if part == "memory":
        return measure_memory()
    if part == "brown":
        return measure_brown(every)
    return in_new_process("--one", part)


def measure(part: str, every: int) -> None:
    """Measure a part and put it in its place; the others stay."""
    say(part)
    begin = time.perf_counter()
    found = {"command": command_line(), "machine": machine(), **measured(part, every)}
    found["took"] = time.perf_counter() - begin
    result = {**recorded(), part: found}
    write_json(TARGET, {name: result[name] for name in PARTS if name in result})


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=PARTS, help="measure one part, keep the others")
    parser.add_argument(
        "--every",
        type=int,
        default=BROWN_EVERY,
        help="part of the Brown corpus: every so manyth sentence; 1: all (%(default)s)",
    )
    parser.add_argument("--render", action="store_true", help="only write the page anew")
    parser.add_argument("--one", choices=PARTS, help=argparse.SUPPRESS)
    parser.add_argument("--case", default="", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(one(arguments.one, arguments.case, arguments.every)))
        return
    parts = [] if arguments.render else [arguments.only] if arguments.only else list(PARTS)
    for part in parts:
        measure(part, arguments.every)
    text = page(recorded())
    write_whole(PAGE, text)
    print(text)


if __name__ == "__main__":
    main()
