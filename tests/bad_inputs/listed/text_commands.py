"""What cases of the commands about text share: good files, models, and a training of one."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import Any

import numpy as np

from listed.case import Case, Each, values_of
from listed.commands import Files, command
from listed.subjects import fitted

CONLL = "EU NNP B-ORG\nrejects VBZ O\n\nGerman JJ B-MISC\ncall NN O\n\n"
CONLLU = (
    "1\tDogs\tdog\tNOUN\tNNS\t_\t2\tnsubj\t_\t_\n2\tbark\tbark\tVERB\tVBP\t_\t0\troot\t_\t_\n\n"
)
CRFSUITE = "A\tw=a\tn:0.5\nB\tw=b\n\nA\tw=a\n\n"
PACKED = gzip.compress(CONLL.encode(), mtime=0)


def npz(**arrays: Any) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


GOOD = {
    "X": np.arange(12.0).reshape(6, 2),
    "lengths": np.array([4, 2]),
    "y": np.array(list("ABABAB")),
}
ARRAYS = npz(**GOOD)


def model(path: Path) -> None:
    """One that `crfx train` made of the file above."""
    from crfx.cli import main

    text = path.with_name("of-model.conll")
    text.write_text(CONLL)
    words = f"train --model linear --train {text} -o {path} -q --set max_iter=3"
    assert main(words.split()) == 0
    text.unlink()


def of_numbers(path: Path) -> None:
    fitted("LinearCRF").save(path)


def ranker(path: Path) -> None:
    fitted("RankingCRF").save(path)


FILE: Files = {"a.conll": CONLL}
MODEL: Files = {"a.conll": CONLL, "m.crfx": model}


def train(
    tried: str,
    options: str | Each,
    message: str,
    files: Files | None = None,
    area: str = "crfx train",
    **more: Any,
) -> Case:
    """Of a linear model from a.conll, where the options do not say otherwise."""
    argv = Each(_whole(option.split()) for option in values_of(options))
    return command(area, tried, argv, message, {**FILE, **(files or {})}, **more)


def _whole(words: list[str]) -> str:
    for name, usual in (("--model", "linear"), ("--train", "a.conll"), ("-o", "n.crfx")):
        if name not in words:
            words += [name, usual]
    return " ".join(["train", *words, "-q"])
