"""`crfx demo`: train on handwritten digit strings, without and with their structure.

Three models of the same trees: LogitBoost, which looks at one image at a time, and GBCRF with
chains of order 1 and 2, which also learn transitions. The last one is saved, with a plot of the
learning curves of all three.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crfx.cli.options import add_example, at_least

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from rich.console import Console

    from crfx.datasets import DigitStrings
    from crfx.estimators.gbcrf import GBCRF

    Reading = Sequence[NDArray[np.integer]]

SUMMARY = "train on strings of handwritten digits, without and with their structure"
EXAMPLE = "  crfx demo --strings 200 --output digits"
_MODELS: dict[str, dict[str, Any]] = {
    "its image alone (LogitBoost)": {"edges": None},
    "and the digit before (GBCRF)": {"order": 1},
    "and the two before (GBCRF)": {"order": 2},
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add_example(parser, SUMMARY, EXAMPLE)
    parser.add_argument(
        "--strings",
        type=at_least(2),
        default=400,
        metavar="N",
        help="number of strings, half for training and half for tests (%(default)s)",
    )
    parser.add_argument(
        "--seed", type=at_least(0), default=0, metavar="N", help="seed of the strings (%(default)s)"
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("crfx-demo"),
        metavar="FOLDER",
        help="folder for the model and the plot (%(default)s)",
    )


def run(arguments: argparse.Namespace) -> None:
    """Train three models, print their accuracy on the test strings, and save the last one."""
    from rich.console import Console
    from rich.table import Table

    from crfx.datasets import load_digit_strings
    from crfx.metrics import token_accuracy

    _check_folder(arguments.output)
    digits = load_digit_strings(n_strings=arguments.strings, seed=arguments.seed)
    console = Console()
    console.print(f"{digits.description}.\n", highlight=False)
    models = {name: _train(digits, settings) for name, settings in _MODELS.items()}
    readings: dict[str, Reading] = {
        name: model.predict(digits.X_test) for name, model in models.items()
    }
    table = Table(title="Reading handwritten digit strings")
    table.add_column("a digit is read from")
    table.add_column("digits right", justify="right")
    for name, reading in readings.items():
        table.add_row(name, f"{token_accuracy(digits.y_test, reading):.1%}")
    console.print(table)
    _print_example(console, digits, readings)
    _save(console, models, arguments.output)


def _check_folder(folder: Path) -> None:
    """Raise NotADirectoryError if a folder cannot be made, before training."""
    for place in (folder, *folder.parents):
        if place.exists() and not place.is_dir():
            raise NotADirectoryError(f"--output: {place} is a file, not a folder")


def _train(digits: DigitStrings, settings: dict[str, Any]) -> GBCRF:
    """Fit one of the models, with the test strings as evaluation set."""
    from crfx.estimators.gbcrf import GBCRF

    model = GBCRF(
        n_estimators=60,
        max_depth=4,
        colsample_bynode=0.1,
        edge_l2=0.1,
        eval_metric="token_accuracy",
        random_state=0,
        verbose=int(sys.stderr.isatty()),
        **settings,
    )
    # A tiny training set may lack a digit: strings with it cannot be evaluated.
    known = {digit for string in digits.y_train for digit in string.tolist()}
    watched = [
        (X, y)
        for X, y in zip(digits.X_test, digits.y_test, strict=True)
        if known >= set(y.tolist())
    ]
    eval_set = ([X for X, _ in watched], [y for _, y in watched]) if watched else None
    return model.fit(digits.X_train, digits.y_train, eval_set=eval_set)


def _save(console: Console, models: dict[str, GBCRF], folder: Path) -> None:
    """Save the last model and the learning curves of all models."""
    folder.mkdir(parents=True, exist_ok=True)
    model = folder / "digits.crfx"
    list(models.values())[-1].save(model)
    console.print(f"\nThe last model is in {model}: crfx.load reads it.", highlight=False)
    from crfx.report.plots.drawing import counted, line_chart

    curves = {
        name: counted([100 * (1 - value) for value in fitted.history_["eval_metric"]])
        for name, fitted in models.items()
        if "eval_metric" in fitted.history_
    }
    picture = folder / "learning-curve.png"
    try:
        line_chart(picture, curves, x_label="round", y_label="digits wrong (%)")
    except ImportError as missing:
        console.print(f"No picture: {missing}", highlight=False)
    else:
        console.print(f"How they learned is in {picture}.", highlight=False)


def _print_example(console: Console, digits: DigitStrings, readings: dict[str, Reading]) -> None:
    """Print a test string with all predictions, if possible one that structure corrects."""
    first, *_, last = readings.values()
    helped = (
        string
        for string, truth in enumerate(digits.y_test)
        if (first[string] != truth).any() and (last[string] == truth).all()
    )
    string = next(helped, 0)
    truth = digits.y_test[string]
    console.print(f"\nTest string {string}, wrong digits in brackets:", highlight=False)
    for name, reading in [("as written", digits.y_test), *readings.items()]:
        line = "".join(
            f" {digit} " if digit == written else f"[{digit}]"
            for digit, written in zip(reading[string], truth, strict=True)
        )
        console.print(f"  {name:<29} {line}", highlight=False, markup=False)
