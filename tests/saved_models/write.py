"""Write the saved models anew: ``python tests/saved_models/write.py [NAME ...]``.

For every kind in kinds.py a model file, and beside it as .npz the features that it was asked about
(another seed than that of training) and what it answered.  Files that are there stay as they are,
unless they are named: tests load them for ever, so a new version of the format gets new names.
crfsuite.model comes from CRFsuite (crfx[bench]), and so do the answers beside it.
"""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent


def asked(kind: Any) -> dict[str, Any]:
    """Return the members of the .npz: X stacked, or words as JSON, and its structure."""
    X, y, more = kind.data(1)
    arrays = {name: np.concatenate(values) for name, values in more.items() if name != "group"}
    if kind.ranks:
        return {"X": X, **more}
    if hasattr(X, "instances"):  # of a template
        arrays["words"] = np.array(json.dumps(X.instances))
    elif hasattr(X[0], "shape") and not hasattr(X[0], "iloc"):
        arrays["X"] = np.concatenate(X)
    else:
        rows = [x.to_dict("records") if hasattr(x, "iloc") else x for x in X]
        arrays["words"] = np.array(json.dumps(rows))
    return {**arrays, "lengths": np.array([len(labels) for labels in y])}


def answered(kind: Any, crf: Any) -> dict[str, Any]:
    """Scores of a ranking; labels and marginals of any other estimator."""
    X, _, more = kind.data(1)
    if kind.ranks:
        return {"scores": crf.predict(X)}
    return {
        "labels": np.concatenate(crf.predict(X, **more)),
        "marginals": np.concatenate(crf.predict_marginals(X, **more)),
    }


def write(name: str, kind: Any) -> None:
    """One model and its answers."""
    crf = kind.fitted()
    crf.save(HERE / f"{name}-1.crfx")
    np.savez_compressed(HERE / f"{name}-1.npz", **asked(kind), **answered(kind, crf))


def write_crfsuite(kind: Any) -> None:
    """A model of CRFsuite, and its answers to positions that are lists of texts."""
    import pycrfsuite

    X, y, _ = kind.data(0)
    trainer = pycrfsuite.Trainer("lbfgs", {"c1": 0.1, "c2": 0.01}, verbose=False)
    names = {"L0": "B-ü", "L1": "I-ü", "L2": "Z"}
    for xs, ys in zip(X, y, strict=True):
        last = "O" if len(ys) > 3 else names[ys[-1]]
        trainer.append(pycrfsuite.ItemSequence(xs), [*(names[label] for label in ys[:-1]), last])
    trainer.train(str(HERE / "crfsuite.model"))
    tagger = pycrfsuite.Tagger()
    tagger.open(str(HERE / "crfsuite.model"))
    positions = [["sign:+", "größe"], ["sign:-"], ["sign:+", "größe", "new"], ["größe"], ["new"]]
    labels = tagger.tag(positions)
    classes = sorted(tagger.labels())
    np.savez_compressed(
        HERE / "crfsuite.npz",
        X=np.array([" ".join(position) for position in positions]),
        labels=np.array(labels),
        classes=np.array(classes),
        marginals=np.array(
            [[tagger.marginal(label, t) for label in classes] for t in range(len(positions))]
        ),
    )


def main(names: list[str]) -> None:
    """Write those that are not there, and those that are named."""
    kinds = runpy.run_path(str(HERE / "kinds.py"))["KINDS"]
    for name, kind in kinds.items():
        if name in names or not (HERE / f"{name}-1.crfx").exists():
            write(name, kind)
    if "crfsuite" in names or not (HERE / "crfsuite.model").exists():
        write_crfsuite(kinds["linear-words"])


if __name__ == "__main__":
    main(sys.argv[1:])
