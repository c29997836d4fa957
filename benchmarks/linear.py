"""How does LinearCRF compare with CRFsuite: objective, seconds, memory, tags?

Both get the same features and lower the same objective, sum -log p + |w|^2, over the pairs of
feature and label, and the transitions, that occur. Data sets come from $CRFX_DATA.

    python benchmarks/linear.py                       # five minutes: training and tagging
    python benchmarks/linear.py --sets avx2 --quick   # a first look
    python benchmarks/linear.py --all                 # all parts, one after the other
    python benchmarks/linear.py --only brown          # one part; the others stay as measured

Parts: training, tagging, measured in every instruction set of the processor; chunking, letters
(training to the end: once), memory, brown. Each runs in processes of its own and records its
machine and date. Writes reports/results/linear.json and from it reports/linear.md.
"""

from __future__ import annotations

import gc
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from instruction_sets import in_child, measured, parser_of, report_parts, run_child
from linear_page import PAGE, TAGGING_TARGETS, TRAINING_TARGETS, page
from linear_speed import (
    core_tagging,
    core_training,
    measure_tagging,
    measure_training,
    peer_tagging,
    peer_training,
    tagging_figure,
    training_figure,
)
from linear_tasks import (
    CHUNKING,
    ENTITIES,
    L2,
    MAX_ITER,
    TASKS,
    TOL,
    Texts,
    all_dicts,
    as_dicts,
    as_lists,
    brown_task,
    chunking_task,
    letters_task,
    new_crf,
    train_ours,
)
from measuring import RESULTS, command_line, held_memory, machine, peak_memory, say

from crfx import LinearCRF
from crfx.datasets import load_conll2003
from crfx.features import Template, Vocabulary
from crfx.metrics import span_f1
from reproduce import crfsuite
from reproduce.crfsuite import Trace
from reproduce.datasets import load_conll2000

TARGET = RESULTS / "linear.json"
NEAR = 1e-4  # how close to the lower of both objectives counts as arrived
RUNS, PEER_RUNS = 2, 1  # to the end
MEMORY_ITERATIONS = 10  # L-BFGS remembers six steps: fewer iterations would need less
BROWN_ITERATIONS = 3
BROWN_EVERY = 20  # CRFsuite needs minutes for an iteration over all sentences


# Training to the end: the objective, and the seconds until it is near.


def chunking() -> dict[str, object]:
    """Training on CoNLL-2000, and the chunks that both find in its test sentences."""
    texts, y = chunking_task()
    with tempfile.TemporaryDirectory() as folder:
        model = str(Path(folder) / "chunking.crfsuite")
        result, crf, vocabulary = train_both(texts, y, model)
        test = load_conll2000().test
        template = Template(CHUNKING, ("word", "pos"))
        asked = [template.features(sentence) for sentence in test.X]
        theirs = crfsuite.tag(crfsuite.open_tagger(model), asked)
    X, lengths = vocabulary.encode(asked)
    ours = np.split(crf.predict(X, lengths=lengths), np.cumsum(lengths)[:-1])
    same = np.concatenate(ours) == np.concatenate(theirs)
    scores = {"ours": span_f1(test.y, ours), "crfsuite": span_f1(test.y, theirs)}
    return {**result, "f1": scores, "same_tags": float(same.mean())}


def letters() -> dict[str, object]:
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
    ends = {name: run[0].objectives[-1] for name, run in runs.items()}
    result = {
        "instances": len(texts),
        "positions": int(sum(map(len, texts))),
        "labels": len(crf.classes_),
        "lowest": min(ends.values()),
        "near": NEAR,
        "tools": {name: summary(run, min(ends.values())) for name, run in runs.items()},
    }
    return result, crf, vocabulary


def in_short(trace: Trace) -> str:
    """Return a run as one line."""
    return (
        f"{len(trace.seconds)} iterations in {trace.seconds[-1]:.1f} s: {trace.objectives[-1]:.3f}"
    )


def summary(runs: list[Trace], lowest: float) -> dict[str, object]:
    """Return the fastest of several runs of a tool; all runs compute the same."""
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


def memory(case: str) -> dict[str, object]:
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
    """Train a few iterations, which need as much memory as many."""
    if tool == "crfsuite":
        params = crfsuite.settings(L2, MEMORY_ITERATIONS, TOL)
        crfsuite.train(X, (labels.tolist() for labels in y), params)
    elif tool == "sgd":
        LinearCRF("sgd", l2=L2, start_end=False, sweeps=2, n_jobs=1, random_state=0).fit(X, y)
    else:
        new_crf(1, MEMORY_ITERATIONS, tol=0.0).fit(X, y)


def measure_memory() -> dict[str, object]:
    """Measure each case in a separate process, because a peak belongs to a process."""
    train = load_conll2003().train
    result: dict[str, object] = {
        "instances": len(train.X),
        "positions": int(sum(map(len, train.X))),
        "iterations": MEMORY_ITERATIONS,
    }
    for case in MEMORY_CASES:
        say(case)
        result[case] = in_child("memory", case)
    return result


# Many labels: the Brown corpus.

BROWN_CASES = ("crfsuite", "ours-1", "ours-2")


def brown(case: str, every: str) -> dict[str, object]:
    """Seconds of the fastest iteration but the first, which prepares."""
    X, y = brown_task(int(every))
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
    """Measure each case in a separate process, one after the other."""
    result: dict[str, object] = {"every": every}
    for case in BROWN_CASES:
        say(case)
        result[case] = in_child("brown", case, every)
    return result


def iterations_to_near(recorded: dict[str, Any]) -> dict[str, dict[str, int]]:
    """Return after how many iterations each tool is near, from the parts that train to the end."""
    iterations = {}
    for name in TASKS:
        if name not in recorded:
            raise SystemExit(f"measure this first: python benchmarks/linear.py --only {name}")
        tools = recorded[name]["tools"]
        tool_names = {"ours": "ours_1", "crfsuite": "crfsuite"}
        iterations[name] = {
            key: tools[tool]["iterations_to_near"] for key, tool in tool_names.items()
        }
    return iterations


BY_SET = ("training", "tagging")
ONCE = ("chunking", "letters", "memory", "brown")  # the first two before training


def once(part: str, every: int) -> dict[str, Any]:
    """Measure a part that needs no instruction set."""
    say(part)
    begin = time.perf_counter()
    start = {"command": command_line(), "machine": machine()}
    if part == "memory":
        result = measure_memory()
    elif part == "brown":
        result = measure_brown(every)
    else:
        result = in_child(part)
    return {**start, **result, "took": time.perf_counter() - begin}


def measure(
    part: str, sets: Sequence[str], result: dict[str, Any], *, quick: bool, every: int
) -> dict[str, Any]:
    """Return a part; ``result`` has those measured so far."""
    recorded = result.get(part, {})
    if part == "training":
        to_near = iterations_to_near(result)
        run = partial(measure_training, sets, to_near, quick=quick)
        return measured(sets, run, recorded, TRAINING_TARGETS, partial(training_figure, to_near))
    if part == "tagging":
        run = partial(measure_tagging, sets, quick=quick)
        return measured(sets, run, recorded, TAGGING_TARGETS, tagging_figure)
    return once(part, every)


CHILDREN = {
    "core_training": core_training,
    "peer_training": peer_training,
    "core_tagging": core_tagging,
    "peer_tagging": peer_tagging,
    "chunking": chunking,
    "letters": letters,
    "memory": memory,
    "brown": brown,
}


def main() -> None:
    """Measure, print, write."""
    if run_child(CHILDREN):
        return
    parser = parser_of(__doc__.splitlines()[0])
    parser.add_argument(
        "--only", choices=(*BY_SET, *ONCE), help="measure one part, keep the others"
    )
    parser.add_argument("--all", action="store_true", help="measure all parts")
    parser.add_argument(
        "--every",
        type=int,
        default=BROWN_EVERY,
        help="part of the Brown corpus: every so manyth sentence; 1: all (%(default)s)",
    )
    arguments = parser.parse_args()
    parts = [arguments.only] if arguments.only else [*ONCE, *BY_SET] if arguments.all else [*BY_SET]
    run = partial(measure, quick=arguments.quick, every=arguments.every)
    report_parts(arguments, parts, TARGET, run, PAGE, page)


if __name__ == "__main__":
    main()
