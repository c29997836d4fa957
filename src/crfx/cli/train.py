"""`crfx train`: learn to label from a file, and save the model."""

from __future__ import annotations

import argparse
import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crfx.cli.models import reading_of
from crfx.cli.options import (
    Log,
    add_example,
    add_quiet,
    add_set,
    at_least,
    check_output,
    settings_of,
    span_scheme,
)
from crfx.cli.sources import add_text_options

if TYPE_CHECKING:
    from crfx.cli.sources import Labelled
    from crfx.io.reading import Reading

SUMMARY = "learn to label the tokens of a file, and save the model"
EXAMPLE = """  crfx train --model linear --train train.conll --dev dev.conll -o ner.crfx
  crfx train --model gbcrf --train train.npz -o m.crfx --set n_estimators=300 --set max_depth=8"""

_MODELS = {
    "linear": ("crfx.estimators.linear", "LinearCRF"),
    "gbcrf": ("crfx.estimators.gbcrf", "GBCRF"),
    "treecrf": ("crfx.estimators.treecrf", "TreeCRF"),
    "hidden-unit": ("crfx.estimators.hidden_unit", "HiddenUnitCRF"),
}
_USUAL_ON_TEXT: dict[str, dict[str, Any]] = {
    "linear": {"l2": 0.1, "min_count": 2},  # chosen on testa: reports/text-template.md
    "hidden-unit": {"min_count": 2},
    # Names that occur so rarely take trees time and give them next to nothing.
    "gbcrf": {"min_count": 5},
    "treecrf": {"min_count": 5},
}
"""Arguments that differ from the estimators' own defaults, where features are names."""
_PATIENCE = {"gbcrf": 20, "treecrf": 20}
_SECONDS_BETWEEN_CHECKPOINTS = 30.0


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add_example(parser, SUMMARY, EXAMPLE)
    parser.add_argument("--model", choices=tuple(_MODELS), required=True, help="which estimator")
    parser.add_argument("--train", required=True, metavar="FILE", help="to learn from; - is stdin")
    parser.add_argument("--dev", metavar="FILE", help="to watch; trees stop when it gets no better")
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="M.crfx", help="save the model there"
    )
    parser.add_argument(
        "--format",
        choices=("conll", "crfsuite", "conllu", "npz"),
        help="of the files (guessed, and said)",
    )
    add_text_options(parser)
    parser.add_argument(
        "--trees", action="store_true", help="label along the trees of a conllu file, not in order"
    )
    parser.add_argument(
        "--constraints",
        choices=("auto", "bio", "bioes", "none"),
        default="auto",
        help="labellings that may be; auto: bio or bioes where labels are such (%(default)s)",
    )
    add_set(parser, "the estimator")
    parser.add_argument(
        "--patience",
        type=at_least(1),
        metavar="N",
        help="stop once --dev has not become better for N rounds (20 for trees)",
    )
    parser.add_argument(
        "--init-model", type=Path, metavar="M.crfx", help="a model to go on with, on this file"
    )
    parser.add_argument(
        "--resume", action="store_true", help="go on where this command was interrupted"
    )
    parser.add_argument(
        "--seed", type=at_least(0), default=0, metavar="N", help="of what is drawn (%(default)s)"
    )
    parser.add_argument("--jobs", type=at_least(1), metavar="N", help="threads (all cores)")
    parser.add_argument("--json", action="store_true", help="print one JSON object, no text")
    add_quiet(parser)


def run(arguments: argparse.Namespace) -> None:
    """Read, train, save, tell."""
    check_output(arguments.output, "the model")
    if arguments.patience is not None and arguments.dev is None:
        raise ValueError("--patience needs --dev, a file to watch")
    if arguments.resume and arguments.init_model is not None:
        raise ValueError("--resume goes on with its own checkpoint: leave out --init-model")
    log = Log(arguments.quiet)
    start = _start(arguments, log)
    reading, train, dev = _read(arguments, start, log)
    model = _new_model(arguments, train, dev, start, on_text=reading is not None)
    if reading is not None:
        model.reading_ = reading
    _fit(arguments, model, train, dev, start)
    model.save(arguments.output)
    with suppress(FileNotFoundError):
        _checkpoint(arguments).unlink()
    _tell(arguments, model, train, log)


def _checkpoint(arguments: argparse.Namespace) -> Path:
    output: Path = arguments.output
    return output.with_name(f"{output.name.removesuffix('.crfx')}.checkpoint.crfx")


def _start(arguments: argparse.Namespace, log: Log) -> Any:
    """The model to begin with, None for a new one."""
    from crfx.estimators.loading import load

    path = arguments.init_model
    if arguments.resume:
        path = _checkpoint(arguments)
        if not path.is_file():
            raise FileNotFoundError(
                f"there is no {path}: nothing was interrupted, so leave out --resume"
            )
    if path is None:
        return None
    found, kind = load(path), _kind(arguments.model)
    if not isinstance(found, kind):
        raise ValueError(f"{path} holds a {type(found).__name__}, but --model is {arguments.model}")
    log(f"going on with {path}, {_count(found)} {_counted(found)} done")
    return found


def _kind(name: str) -> Any:
    from importlib import import_module

    module, own = _MODELS[name]
    return getattr(import_module(module), own)


def _read(
    arguments: argparse.Namespace, start: Any, log: Log
) -> tuple[Reading | None, Labelled, Labelled | None]:
    """How files are read, what is learned from, what is watched."""
    from crfx.cli.sources import read_labelled_arrays, wants_arrays

    if wants_arrays(arguments.train, arguments.format):
        _refuse_text_options(arguments)
        train = read_labelled_arrays(arguments.train)
        log(f"{arguments.train}: npz, {train.size}, {len(train.labels)} labels")
        return None, train, arguments.dev and read_labelled_arrays(arguments.dev)
    return _read_text(arguments, start, log)


def _read_text(
    arguments: argparse.Namespace, start: Any, log: Log
) -> tuple[Reading, Labelled, Labelled | None]:
    from crfx.cli.sources import new_reading, read_labelled
    from crfx.io.lines import open_lines

    with open_lines(arguments.train) as lines:
        # One that goes on keeps its features.
        reading = new_reading(arguments, lines) if start is None else reading_of(start, lines.name)
        train = read_labelled(reading, lines)
        log(f"{lines.name}: {reading}, {train.size}, {len(train.labels)} labels")
    if arguments.dev is None:
        return reading, train, None
    with open_lines(arguments.dev) as lines:
        dev = read_labelled(reading, lines)
        log(f"{lines.name}: {dev.size}")
    return reading, train, dev


def _refuse_text_options(arguments: argparse.Namespace) -> None:
    for name in ("template", "columns", "label", "comments", "trees"):
        if getattr(arguments, name):
            raise ValueError(f"--{name} is for files of text, but {arguments.train} holds arrays")


def _new_model(
    arguments: argparse.Namespace,
    train: Labelled,
    dev: Labelled | None,
    start: Any,
    *,
    on_text: bool,
) -> Any:
    patience = arguments.patience
    if patience is None and dev is not None:
        patience = _PATIENCE.get(arguments.model)
    named = {
        "constraints": _constraints(arguments.constraints, train.labels),
        "early_stopping_rounds": patience,
        "n_jobs": arguments.jobs,
        "random_state": arguments.seed,
    }
    usual: dict[str, Any] = {"eval_metric": _metric(train.labels)}
    if on_text:
        usual |= _USUAL_ON_TEXT.get(arguments.model, {})
    kind = _kind(arguments.model)
    settings = settings_of(kind, arguments.set, named, usual)
    model = kind(**settings, verbose=0 if arguments.quiet else 1)
    if arguments.resume:
        _count_down(model, start)
    return model


def _count_down(model: Any, start: Any) -> None:
    """An interrupted run has the rounds left that it had not done."""
    differing = [
        name
        for name, value in model.get_params(deep=False).items()
        if name not in ("n_jobs", "verbose") and start.get_params(deep=False)[name] != value
    ]
    if differing:
        raise ValueError(
            f"--resume: {differing[0]} is {getattr(model, differing[0])!r}, but the run that was "
            f"interrupted had {getattr(start, differing[0])!r}; use --init-model to go on otherwise"
        )
    name = _rounds_name(model)
    setattr(model, name, max(getattr(model, name) - _count(start), 1))


def _constraints(wanted: str, labels: set[Any]) -> str | None:
    """What --constraints means for these labels."""
    if wanted != "auto":
        return None if wanted == "none" else wanted
    return span_scheme(labels)


def _metric(labels: set[Any]) -> str:
    return "token_accuracy" if span_scheme(labels) is None else "span_f1"


def _fit(
    arguments: argparse.Namespace, model: Any, train: Labelled, dev: Labelled | None, start: Any
) -> None:
    from crfx.trainers.callbacks import Checkpoint

    path = _checkpoint(arguments)
    saves = Checkpoint(path, every=1, seconds=_SECONDS_BETWEEN_CHECKPOINTS)
    eval_set = None if dev is None else {**dev.arguments, "y": dev.y}
    try:
        model.fit(
            **train.arguments, y=train.y, eval_set=eval_set, init_model=start, callbacks=[saves]
        )
    except KeyboardInterrupt:
        if not hasattr(model, "model_"):
            raise KeyboardInterrupt("interrupted before anything was learned") from None
        model.save(path)
        raise KeyboardInterrupt(
            f"interrupted after {_count(model)} {_counted(model)}, kept in {path}; the same "
            "command with --resume goes on from there"
        ) from None


def _rounds_name(model: Any) -> str:
    """The argument that says how long training goes on."""
    if hasattr(model, "n_estimators"):
        return "n_estimators"
    return "max_iter" if model.trainer == "lbfgs" else "sweeps"


def _count(model: Any) -> int:
    return int(model.n_rounds_ if hasattr(model, "n_rounds_") else model.n_iter_)


def _counted(model: Any) -> str:
    names = {"n_estimators": "rounds", "max_iter": "iterations", "sweeps": "sweeps"}
    return names[_rounds_name(model)]


def _tell(arguments: argparse.Namespace, model: Any, train: Labelled, log: Log) -> None:
    watched = model.history_.get("eval_metric", [])
    told = {
        "model": str(arguments.output),
        "class": type(model).__name__,
        "sequences": train.n_instances,
        "tokens": train.n_tokens,
        "labels": len(model.classes_),
        "features": int(model.n_features_in_),
        _counted(model): _count(model),
        "seconds": round(sum(model.history_["seconds"]), 3),
    }
    if watched:
        told["dev"] = {model.eval_metric: float(watched[model.best_iteration_])}
    if arguments.json:
        print(json.dumps(told))
        return
    better = f", {model.eval_metric} {told['dev'][model.eval_metric]:.4f} on dev" if watched else ""
    log(
        f"{told['class']}: {told['labels']} labels, {told['features']:,} features, "
        f"{_count(model)} {_counted(model)} in {told['seconds']:.1f} s{better}; "
        f"saved in {arguments.output}"
    )
