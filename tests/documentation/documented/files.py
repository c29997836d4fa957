"""Files that commands on pages and help pages read: labelled text, numbers, rankings, models."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np

from documented import ROOT

SENTENCES = "Ada NNP B-PER\nvisited VBD O\nRome NNP B-LOC\n\nBo NNP B-PER\nleft VBD O\n\n"
TREEBANK = (
    "1\tAda\tada\tPROPN\tNNP\t_\t2\tnsubj\t_\t_\n2\tleft\tleave\tVERB\tVBD\t_\t0\troot\t_\t_\n\n"
)


def write_files(folder: Path) -> None:
    """Put them into a folder."""
    for name in ("train.conll", "dev.conll", "test.conll", "eng.train"):
        (folder / name).write_text(SENTENCES * 5)
    (folder / "en-ud-dev.conllu").write_text(TREEBANK * 5)
    (folder / "template.txt").write_text("word[-1..1]\nsuffix(word[0], 1..3)\npos[0]\n")
    ranking = "".join(f"{k % 3} qid:{k // 6} 1:{k % 3 / 2} 2:{k % 7 / 6}\n" for k in range(60))
    for place in (folder, folder / "Fold1"):
        place.mkdir(exist_ok=True)
        for name in ("train.txt", "vali.txt", "test.txt"):
            (place / name).write_text(ranking)
    X = np.random.default_rng(0).normal(size=(60, 3))
    np.savez(folder / "train.npz", X=X, y=(X[:, 0] > 0).astype(int), lengths=[6] * 10)
    model = ROOT / "tests" / "saved_models" / "crfsuite.model"
    shutil.copy(model, folder / "model.crfsuite")
