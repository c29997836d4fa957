"""`crfx demo`: read handwritten digit strings, without and with their structure.

The simplest model the core allows. A logistic regression looks at one image at a time; transition
scores are counted from the training labels. Dividing the classifier's p(digit | image) by
p(digit) leaves, up to a constant, p(image | digit), which the transitions may then multiply
without counting the frequency of a digit twice.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from rich.console import Console

    from crfx.datasets import DigitStrings

    Reading = Sequence[NDArray[np.integer]]

SUMMARY = "read strings of handwritten digits, without and with their structure"
_N_DIGITS = 10
_PSEUDO_COUNT = 0.1  # what was never seen in training stays possible


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument(
        "--strings",
        type=_at_least(2),
        default=400,
        metavar="N",
        help="how many strings, half of them to train and half to test (%(default)s)",
    )
    parser.add_argument(
        "--seed", type=_at_least(0), default=0, metavar="N", help="which strings (%(default)s)"
    )


def _at_least(least: int) -> Callable[[str], int]:
    """A whole number for argparse, which names the option in its errors."""

    def number(text: str) -> int:
        if not text.removeprefix("-").isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text} is not a whole number of {least} or more")
        return int(text)

    return number


def run(arguments: argparse.Namespace) -> None:
    """Train, read the test strings three ways, and print how well each went."""
    from rich.console import Console
    from rich.table import Table

    from crfx.datasets import load_digit_strings
    from crfx.metrics import token_accuracy

    digits = load_digit_strings(n_strings=arguments.strings, seed=arguments.seed)
    readings = _read(digits)

    table = Table(title="Reading handwritten digit strings")
    table.add_column("a digit is read from")
    table.add_column("digits right", justify="right")
    for name, reading in readings.items():
        table.add_row(name, f"{token_accuracy(digits.y_test, reading):.1%}")
    console = Console()
    console.print(f"{digits.description}.\n", highlight=False)
    console.print(table)
    _print_example(console, digits, readings)


def _read(digits: DigitStrings) -> dict[str, Reading]:
    """The test strings as read without structure and with chains of order 1 and 2."""
    import numpy as np

    from crfx.inference import max_product

    log_posterior = _look_at_images(digits)
    node = log_posterior - _log_frequencies(digits.y_train, order=0)
    start = _log_frequencies([string[:1] for string in digits.y_train], order=0)
    ends = np.cumsum([len(string) for string in digits.y_test])
    offsets = np.concatenate([[0], ends])

    readings = {"its image alone": log_posterior.argmax(axis=1)}
    for order, name in ((1, "and the digit before"), (2, "and the two digits before")):
        edge = _log_frequencies(digits.y_train, order)
        best = max_product(node, edge, offsets, start=start, order=order)
        readings[name] = np.asarray(best.labels)
    return {name: np.split(reading, ends[:-1]) for name, reading in readings.items()}


def _look_at_images(digits: DigitStrings) -> NDArray[np.float64]:
    """log p(digit | image) for every position of the test strings."""
    import numpy as np
    from sklearn.linear_model import LogisticRegression

    classifier = LogisticRegression(max_iter=300)
    classifier.fit(np.concatenate(digits.X_train), np.concatenate(digits.y_train))
    pixels = np.concatenate(digits.X_test)
    # A tiny training set may lack a digit, which the classifier then cannot read.
    log_posterior = np.full((len(pixels), _N_DIGITS), -np.inf)
    log_posterior[:, classifier.classes_] = classifier.predict_log_proba(pixels)
    return log_posterior


def _log_frequencies(strings: list[NDArray[np.int64]], order: int) -> NDArray[np.float64]:
    """log p(digit | the `order` digits before it), counted in the strings and smoothed."""
    import numpy as np
    from numpy.lib.stride_tricks import sliding_window_view

    counts = np.full((_N_DIGITS,) * (order + 1), _PSEUDO_COUNT)
    for string in strings:
        np.add.at(counts, tuple(sliding_window_view(string, order + 1).T), 1)
    frequencies: NDArray[np.float64] = counts / counts.sum(axis=-1, keepdims=True)
    return np.log(frequencies)


def _print_example(console: Console, digits: DigitStrings, readings: dict[str, Reading]) -> None:
    """One test string with every reading of it: one that structure puts right, if there is one."""
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
        console.print(f"  {name:<26} {line}", highlight=False, markup=False)
