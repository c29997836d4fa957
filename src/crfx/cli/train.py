"""`crfx train`: learn to label from a file, and save the model."""

from __future__ import annotations

import argparse
import json
import math
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crfx.cli.options import (
    add_estimator_options,
    add_example,
    add_quiet,
    check_output,
    print_status,
    settings_of,
)
from crfx.cli.resuming import Run, interrupted_run
from crfx.cli.sources import TEXT_OPTIONS, add_text_options
from crfx.estimators.arguments import TABLES, check_arguments

if TYPE_CHECKING:
    from crfx.cli.sources import Labelled
    from crfx.io.reading import Reading

SUMMARY = "learn to label the tokens of a file, and save the model"
EXAMPLE = """  crfx train --model linear --train train.conll --dev dev.conll -o ner.crfx
  crfx train --model gbcrf --train train.npz -o m.crfx --set n_estimators=300 --set max_depth=8"""

_MODELS = {
    "linear": "LinearCRF",
    "gbcrf": "GBCRF",
    "treecrf": "TreeCRF",
    "hidden-unit": "HiddenUnitCRF",
}
_USUAL_ON_TEXT: dict[str, dict[str, Any]] = {
    "linear": {"l2": 0.1, "min_count": 2},  # chosen on testa: reports/text-template.md
    "hidden-unit": {"min_count": 2},
    # Names that occur so rarely take trees time and give them next to nothing.
    "gbcrf": {"min_count": 5},
    "treecrf": {"min_count": 5},
}
"""Arguments that differ from the defaults of the estimators if features are names."""
_NAMED = ("early_stopping_rounds", "random_state", "n_jobs", "device")
"""Arguments that have their own options, beside constraints."""
_LONG = 300
"""Tokens per sentence that suggest that empty lines between sentences are missing."""
_PATIENCE = {"gbcrf": 20, "treecrf": 20}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add_example(parser, SUMMARY, EXAMPLE)
    parser.add_argument("--model", choices=tuple(_MODELS), required=True, help="which estimator")
    parser.add_argument("--train", required=True, metavar="FILE", help="training set; - is stdin")
    parser.add_argument(
        "--dev", metavar="FILE", help="evaluation set; trees stop after 20 rounds without gain"
    )
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="M.crfx", help="save the model there"
    )
    parser.add_argument(
        "--format",
        choices=("conll", "crfsuite", "conllu", "npz"),
        help="format of the files (guessed)",
    )
    add_text_options(parser)
    parser.add_argument(
        "--trees", action="store_true", help="label along the trees of a conllu file, not in order"
    )
    parser.add_argument(
        "--constraints",
        choices=("auto", "bio", "bioes", "none"),
        default="auto",
        help="the scheme that labellings must follow; auto: that of the labels, if they have "
        "one (%(default)s)",
    )
    parser.add_argument(
        "--init-model", type=Path, metavar="M.crfx", help="continue training from this model"
    )
    parser.add_argument(
        "--classes",
        type=lambda text: text.split(","),
        metavar="A,B,...",
        help="labels beside those of the file; with --init-model, new ones",
    )
    parser.add_argument(
        "--resume", action="store_true", help="resume this command after an interruption"
    )
    add_estimator_options(parser, "the estimator", TABLES["GBCRF"].kinds, _NAMED)
    parser.add_argument("--json", action="store_true", help="print one JSON object, no text")
    add_quiet(parser)


def run(arguments: argparse.Namespace) -> None:
    """Read the files, train, save the model, and print a summary."""
    # The initial model is not among them: it may be replaced by the new one.
    inputs = [arguments.train, arguments.dev, arguments.template]
    check_output(arguments.output, "the model", inputs)
    if arguments.early_stopping_rounds is not None and arguments.dev is None:
        raise ValueError("--patience needs --dev, a file to watch")
    if arguments.resume and arguments.init_model is not None:
        raise ValueError("--resume goes on with its own checkpoint: leave out --init-model")
    _check_settings(arguments)
    start = _start(arguments)
    reading, train, dev = _read(arguments, start)
    scheme, as_bio = _chosen_scheme(arguments.constraints, train, start, reading)
    if arguments.constraints == "auto" and isinstance(scheme, str):
        how = "learned as BIOES, written as BIO" if as_bio else scheme.upper()
        print_status(arguments, f"labels mark spans: {how} (--constraints)")
    model = _new_model(arguments, train, dev, start, scheme, on_text=reading is not None)
    if reading is not None:
        model.reading_ = replace(reading, as_bio=as_bio)
    run = Run(model, arguments.output, start if arguments.resume else None)
    eval_set = None if dev is None else {**dev.arguments, "y": dev.y}
    begin = time.perf_counter()
    run.fit(
        **train.arguments,
        y=train.y,
        eval_set=eval_set,
        init_model=start,
        classes=_all_tags(arguments.classes, as_bio),
    )
    seconds = time.perf_counter() - begin
    run.save()
    _print_summary(arguments, run.model, train, seconds)


def _check_settings(arguments: argparse.Namespace) -> None:
    """Raise ValueError at invalid arguments before the files are read."""
    from crfx.estimators.support import check_device

    name = _MODELS[arguments.model]
    if arguments.device is not None and "device" not in TABLES[name].kinds:
        raise ValueError(
            f"--device is for --model gbcrf, but --model is {arguments.model}, which XGBoost does "
            "not train: leave it out"
        )
    settings = settings_of(name, arguments.set, _named(arguments), {})
    check_arguments(_kind(arguments.model)(**settings))
    if arguments.device is not None:
        check_device(arguments.device)


def _named(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments that have options; constraints are set later, from the labels."""
    return {"constraints": None} | {name: getattr(arguments, name) for name in _NAMED}


def _start(arguments: argparse.Namespace) -> Any:
    """Return the model to start from, None for a new one."""
    from crfx.estimators.base import counted_in, rounds_done
    from crfx.estimators.registry import load

    path = interrupted_run(arguments.output) if arguments.resume else arguments.init_model
    if path is None:
        return None
    start = load(path)
    if not isinstance(start, _kind(arguments.model)):
        raise ValueError(f"{path} holds a {type(start).__name__}, but --model is {arguments.model}")
    done = f"{rounds_done(start)} {counted_in(start)} done"
    print_status(arguments, f"going on with {path}, {done}")
    return start


def _kind(name: str) -> Any:
    from crfx.estimators.registry import class_of

    return class_of(_MODELS[name])


def _read(
    arguments: argparse.Namespace, start: Any
) -> tuple[Reading | None, Labelled, Labelled | None]:
    """Return how files are read (None: as arrays), the training set, and the evaluation set."""
    from crfx.cli import sources
    from crfx.io.formats import is_arrays
    from crfx.io.lines import open_lines

    options = [name for name in ("format", *TEXT_OPTIONS) if getattr(arguments, name)]
    if arguments.format == "npz" or (arguments.format is None and is_arrays(arguments.train)):
        if text_options := [name for name in options if name != "format"]:
            raise ValueError(
                f"--{text_options[0]} is for files of text, but {arguments.train} holds arrays"
            )
        train = sources.read_labelled_arrays(arguments.train)
        size = f"{train.size}, {len(train.labels)} labels"
        print_status(arguments, f"{arguments.train}: npz, {size}")
        return None, train, arguments.dev and sources.read_labelled_arrays(arguments.dev)
    with open_lines(arguments.train) as lines:
        if start is None:
            reading = sources.new_reading(arguments, lines)
        else:
            reading = sources.reading_of(start, lines.name)
            if options:
                wanted = replace(sources.new_reading(arguments, lines), as_bio=reading.as_bio)
                if wanted.to_plain() != reading.to_plain():
                    raise ValueError(
                        f"--{options[0]}: the model to go on with reads {reading}, as it did in "
                        "training; leave the option out"
                    )
        train = sources.read_labelled(reading, lines)
        size = f"{train.size}, {len(train.labels)} labels"
        print_status(arguments, f"{lines.name}: {reading}, {size}")
        if train.n_tokens > _LONG * train.n_instances:
            print_status(arguments, "these are long: does an empty line end every sentence?")
    if arguments.dev is None:
        return reading, train, None
    with open_lines(arguments.dev) as lines:
        dev = sources.read_labelled(reading, lines)
        print_status(arguments, f"{lines.name}: {dev.size}")
    return reading, train, dev


def _chosen_scheme(
    wanted: str, train: Labelled, start: Any, reading: Reading | None
) -> tuple[Any, bool]:
    """Return the argument ``constraints`` of the estimator, and whether files get BIO for BIOES.

    ``wanted`` is the option --constraints.  A model that continues training keeps its scheme.  BIO
    is learned as BIOES, which finds more entities (reports/text-template.md), and written as BIO
    again; not if labels are missing, since the ends of spans are then unknown.
    """
    if wanted != "auto":
        return None if wanted == "none" else wanted, False
    if start is not None:
        return start.constraints, start.reading_ is not None and start.reading_.as_bio
    from crfx.structures.label_schemes import scheme_of_labels

    scheme = scheme_of_labels(train.labels)
    if scheme != "bio" or reading is None or any(None in labels for labels in train.y):
        return scheme, False
    return "bioes", True


def _all_tags(classes: list[str] | None, as_bio: bool) -> list[str] | None:
    """Return labels of the user with those that BIOES adds for the same types."""
    if classes is None or not as_bio:
        return classes
    kinds = {label[1:] for label in classes if label != "O"}
    return sorted({*classes, *(tag + kind for kind in kinds for tag in "BIES")})


def _new_model(
    arguments: argparse.Namespace,
    train: Labelled,
    dev: Labelled | None,
    start: Any,
    constraints: Any,
    *,
    on_text: bool,
) -> Any:
    named = _named(arguments) | {"constraints": constraints}
    if arguments.early_stopping_rounds is None and dev is not None:
        named["early_stopping_rounds"] = _PATIENCE.get(arguments.model)
    labels = train.labels if start is None else train.labels | set(start.classes_.tolist())
    usual: dict[str, Any] = {"eval_metric": _metric(labels)}
    if on_text:
        usual |= _USUAL_ON_TEXT.get(arguments.model, {})
    settings = settings_of(_MODELS[arguments.model], arguments.set, named, usual)
    return _kind(arguments.model)(**settings, verbose=0 if arguments.quiet else 1)


def _metric(labels: set[Any]) -> str:
    from crfx.structures.label_schemes import scheme_of_labels

    return "token_accuracy" if scheme_of_labels(labels) is None else "span_f1"


def _print_summary(
    arguments: argparse.Namespace, model: Any, train: Labelled, seconds: float
) -> None:
    from crfx.estimators.base import counted_in, rounds_done

    summary = {
        "model": str(arguments.output),
        "class": type(model).__name__,
        "sequences": train.n_instances,
        "tokens": train.n_tokens,
        "labels": len(model.classes_),
        "features": int(model.n_features_in_),
        counted_in(model): rounds_done(model),
        "seconds": round(seconds, 3),
    }
    on_dev = ""
    if watched := model.history_.get("eval_metric", []):
        best = watched[min(model.best_iteration_, len(watched) - 1)]
        summary["dev"] = {model.eval_metric: float(best) if math.isfinite(best) else None}
        on_dev = f", {model.eval_metric} {best:.4f} on dev"
    if arguments.json:
        print(json.dumps(summary, allow_nan=False))
        return
    print_status(
        arguments,
        f"{summary['class']}: {summary['labels']} labels, {summary['features']:,} features, "
        f"{rounds_done(model)} {counted_in(model)} in {summary['seconds']:.1f} s, preparing and "
        f"watching included{on_dev}; saved in {arguments.output}",
    )
