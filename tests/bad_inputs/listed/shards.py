"""Shards that must be refused before anything is learned from them."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.linear_model import Ridge

from crfx import GBCRF, HiddenUnitCRF, LinearCRF, RankingCRF, Shards, TreeCRF, write_shards
from listed.case import Case, Each, each, values_of
from listed.subjects import FLAT, LENGTHS, STACKED, WORDS, Y, fitted

GOOD: dict[str, Any] = {
    "X": STACKED[:7].astype(np.float32),
    "y": np.array(FLAT[:7]),
    "lengths": np.array(LENGTHS[:2]),
}
CSR = sparse.csr_matrix(GOOD["X"])
SPARSE = {
    "X_data": CSR.data,
    "X_indices": CSR.indices,
    "X_indptr": CSR.indptr,
    "X_shape": np.array(CSR.shape),
}
FRAME = pd.DataFrame(
    {"instance": [0, 0, 1], "label": ["A", "B", "A"], "height": [1.0, 2.0, 3.0], "width": 0.5}
)


MORE = FRAME.assign(instance=7)
"""A second table, of another instance."""


def _write(path: str, **members: Any) -> None:
    np.savez(path, **{name: content for name, content in members.items() if content is not None})


def _second(tried: str, message: str, **changes: Any) -> Case:
    """A good shard, then one with other members; None takes one away."""

    def attempt(subject: Any, folder: Path) -> Any:
        _write("a.npz", **GOOD)
        _write("b.npz", **(GOOD | changes))
        return Shards("*.npz")

    return Case("shards, npz", tried, attempt, rf"^b\.npz: {message}")


def _spoilt(tried: str, message: str, *changes: Callable[[bytes], bytes]) -> Case:
    def attempt(subject: Any, folder: Path, change: Callable[[bytes], bytes]) -> Any:
        _write("a.npz", **GOOD)
        Path("b.npz").write_bytes(change(Path("a.npz").read_bytes()))
        return Shards(".")

    return Case("shards, npz", tried, attempt, rf"^b\.npz: {message}", values=each(*changes))


def _frames(
    tried: str, message: str, *frames: pd.DataFrame, only: bool = False, **names: Any
) -> Case:
    """A good table, unless these are the ``only`` ones, and more; fitted."""

    def attempt(subject: Any, folder: Path) -> Any:
        for number, frame in enumerate(frames if only else (FRAME, *frames)):
            frame.to_parquet(f"{number}.parquet")
        shards = Shards(".", **names)
        return LinearCRF(n_jobs=1).fit(shards.X, shards.y)

    return Case("shards, Parquet", tried, attempt, message)


def _cut_table(subject: Any, folder: Path) -> Any:
    FRAME.to_parquet("0.parquet")
    raw = Path("0.parquet").read_bytes()
    Path("1.parquet").write_bytes(raw[: len(raw) // 2])
    return Shards(".")


def _mixed(subject: Any, folder: Path) -> Any:
    _write("a.npz", **GOOD)
    FRAME.to_parquet("b.parquet")
    return Shards(".")


def _asked(
    tried: str, message: str, attempt: Callable[..., Any], values: Each | None = None
) -> Case:
    """With a good shard a.npz, and what it holds again as b.npz."""

    def run(subject: Any, folder: Path, *value: Any) -> Any:
        _write("a.npz", **GOOD)
        _write("b.npz", **GOOD)
        return attempt(*value)

    return Case("shards", tried, run, message, values=values)


def _written(tried: str, message: str, **changes: Any) -> Case:
    def attempt(subject: Any, folder: Path) -> Any:
        arguments = {"X": STACKED, "y": FLAT, "lengths": list(LENGTHS), "positions": 5} | changes
        return write_shards(folder / "s", **arguments)

    return Case("write_shards", tried, attempt, message)


def _labelled(tried: str, message: str, y: Any) -> Case:
    def attempt(subject: Any, folder: Path, y: Any) -> Any:
        return write_shards(folder / "s", STACKED, y, lengths=list(LENGTHS), positions=5)

    return Case("write_shards", tried, attempt, message, values=values_of(y))


def _zip(raw: bytes, change: Callable[[str, bytes], tuple[str, bytes]]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(raw)) as old, zipfile.ZipFile(buffer, "w") as new:
        for name in old.namelist():
            new.writestr(*change(name, old.read(name)))
    return buffer.getvalue()


def _fit(crf: Any, **changes: Any) -> Any:
    """Fit on two shards, of which the first has other members."""
    _write("a.npz", **(GOOD | changes))
    shards = Shards(["a.npz", "b.npz"])
    return crf.fit(shards.X, shards.y)


def _fit_pair(crf: Any, name: str, good: list[Any], bad: list[Any]) -> Callable[[], Any]:
    """Of two shards with such a member, of which the second has a bad one."""

    def attempt() -> Any:
        for path, content in (("a.npz", good), ("b.npz", bad)):
            _write(path, **(GOOD | {name: np.array(content)}))
        shards = Shards(["a.npz", "b.npz"])
        return crf.fit(shards.X, shards.y)

    return attempt


def _text() -> object:
    Path("a.txt").write_text("a text", encoding="utf-8")
    return Shards(["a.txt"])


def _twice() -> Any:
    os.link("a.npz", "c.npz")
    return Shards(["a.npz", "b.npz", "c.npz"])


def _gone() -> Any:
    shards = Shards(".")
    Path("b.npz").unlink()
    return shards.load()


def _changed() -> Any:
    shards = Shards(".")
    _write("b.npz", X=GOOD["X"][:3], y=GOOD["y"][:3], lengths=np.array([3]))
    return LinearCRF(n_jobs=1).fit(shards.X, shards.y)


def _beside(name: str) -> Any:
    return LinearCRF().fit(Shards("a.npz").X, Shards("a.npz").y, **{name: [0]})


def _weighed() -> Shards:
    _write("w.npz", **GOOD, sample_weight=np.ones(2))
    return Shards("w.npz")


def _weighed_eval_set() -> Any:
    shards, weighed = Shards("a.npz"), _weighed()
    return LinearCRF().fit(shards.X, shards.y, eval_set=(weighed.X, weighed.y))


def _weighed_again() -> Any:
    shards = _weighed()
    return LinearCRF().fit(shards.X, shards.y, sample_weight=[1.0, 2.0])


def _predicted() -> Any:
    _write("narrow.npz", **(GOOD | {"X": GOOD["X"][:, :2]}))
    return fitted("LinearCRF").predict(Shards("narrow.npz").X)


def _forest() -> Any:
    _write("forest.npz", **GOOD, parents=np.array([-1, 9, 0, -1, 0, 0, 0]))
    shards = Shards("forest.npz")
    return LinearCRF().fit(shards.X, shards.y)


def _unlabelled() -> Any:
    _write("plain.npz", **(GOOD | {"y": None}))
    return Shards("plain.npz").y


INF = GOOD["X"].copy()
INF[4, 1] = np.inf
PICKLED = np.array(["A", None], dtype=object)
WORDY = LinearCRF(max_iter=1).fit([[["a"], ["b"]]], [["A", "B"]])
IN_MEMORY = {
    "TreeCRF": (TreeCRF(), "TreeCRF grows trees .* in memory"),
    "base_learner": (GBCRF(base_learner=Ridge()), "base_learner needs all features in memory"),
    "linear edges": (GBCRF(edges="linear"), 'edges="linear" needs all'),
    "feature_induction": (LinearCRF(feature_induction=1), "feature_induction needs all"),
    "contrastive": (HiddenUnitCRF(2, pretrain="contrastive"), "pretrain=.* in memory"),
}

CASES = [
    _asked("a file that is not there", r"^c\.npz: there is no such file", lambda: Shards("c.npz")),
    _asked("a pattern without files", "no file is called", lambda: Shards("nothing/*.npz")),
    _asked("a folder without shards", "the folder has no",
           lambda: Shards(os.fspath(Path.cwd().parent))),
    _asked("an empty list", "the list of shards is empty", lambda: Shards([])),
    _asked("no list of files", r"shards are (3|\[3\])", Shards, each(3, [3])),
    _asked("a file of another kind", r"a\.txt: shards are files \.npz or", _text),
    _asked("a file twice", r"a\.npz is the same file as a\.npz",
           lambda: Shards(["a.npz", "a.npz"])),
    _asked("a file by two names", r"c\.npz is the same file as a\.npz", _twice),
    _asked("none of them", "2 shards, and none of them", lambda: Shards(".")[2:]),
    _asked("a file that has gone since", r"^b\.npz: there is no such file", _gone),
    _asked("a file that has changed since", r"^b\.npz: y has changed since", _changed),
    _asked("not their features", "X is <Shards.*: pass",
           lambda: LinearCRF().fit(Shards("."), FLAT)),
    _asked("labels as X", "X is .*: pass", lambda: LinearCRF().fit(Shards(".").y, FLAT)),
    _asked("not their labels", "y is .*: pass",
           lambda: LinearCRF().fit(Shards(".").X, Shards("."))),
    _asked("structure beside them", "(lengths|parents) is given beside shards", _beside,
           each("lengths", "parents")),
    _asked("an eval_set with weights", "eval_set: its shards have sample_weight",
           _weighed_eval_set),
    _asked("other weights", "sample_weight is given beside", _weighed_again),
    _asked("other columns in prediction", "X has 2 features, but crfx is", _predicted),
    _asked("words were trained on", "on dicts or texts", lambda: WORDY.predict(Shards(".").X)),
    _asked("an infinite feature", r"^a\.npz: instance 1, position 1: ",
           lambda: _fit(LinearCRF(), X=INF)),
    _asked("parents out of reach", r"^forest\.npz: parents: row 1 has 9", _forest),
    _asked("parents in a circle", r"^b\.npz: instance 3, position \d: the node is its own ancestor",
           _fit_pair(LinearCRF(), "parents", [-1, 0, 1, -1, 0, 1, 2], [-1, 0, 1, -1, 2, 1, 0])),
    _asked("a weight below 0", r"^b\.npz: instance 1 of this file: its weight -1.0 is not",
           _fit_pair(LinearCRF(), "sample_weight", [1.0, 1.0], [1.0, -1.0])),
    _asked("an edge type below 0", r"^b\.npz: instance 3, position 2: edge type -3 is negative",
           _fit_pair(LinearCRF(), "edge_types", [0] * 7, [0, 0, 0, 0, 0, -3, 0])),
    _asked("relevance below 0", r"^b\.npz: query 3, document 2: relevance is -1",
           _fit_pair(RankingCRF(), "y", [0, 1, 0, 0, 1, 0, 0], [0, 1, 0, 0, 1, -1, 0])),
    _asked("no labels to learn from", r"^plain\.npz: the shards have no labels", _unlabelled),
    *(_asked(tried, message, _fit, each(crf)) for tried, (crf, message) in IN_MEMORY.items()),
    _asked("explain", "explain takes one instance in memory",
           lambda: fitted("LinearCRF").explain(Shards(".").X)),
    _second("other columns", "it has 2 features, and a.npz has 3", X=GOOD["X"][:, :2]),
    _second("lengths that do not add up", "lengths add up to 5, and X has 7",
            lengths=np.array([5])),
    _second("a negative length", "lengths: instance 1 has -1 rows", lengths=np.array([8, -1])),
    _second("no lengths", "there are no lengths", lengths=None),
    _second("lengths of fractions", "lengths has shape", lengths=np.array([3.0, 4.0])),
    _second("too few labels", r"y has shape \(3,\): beside X it must be \(7,\)", y=GOOD["y"][:3]),
    _second("no labels", "it has no y, and a.npz has", y=None),
    _second("labels of another kind", "its labels are whole numbers, and text in", y=np.arange(7)),
    _second("labels of bytes", "y holds .S1", y=GOOD["y"].astype("S")),
    _second("objects", "y: an array holds", y=PICKLED),
    _second("neither X nor CSR", "there must be X, or X_data", X=None),
    _second("X and CSR", "there must be X, or X_data", **SPARSE),
    _second("a CSR matrix beside a dense one", "X is sparse, and dense in a.npz", X=None, **SPARSE),
    _second("a part of a CSR matrix", "there is no X_shape", X=None,
            **(SPARSE | {"X_shape": None})),
    _second("one axis", r"X has shape \(7,\)", X=GOOD["X"][:, 0]),
    _second("X of text", "X has shape", X=GOOD["X"].astype(str)),
    _second("unknown of other rows", "unknown has shape", unknown=np.ones(2, bool)),
    _second("unknown that are numbers", "unknown holds int64", unknown=np.ones(7, int)),
    _second("parents in one alone", "it has parents, and a.npz has no", parents=np.zeros(7, int)),
    _second("fractions as edge types", "edge_types holds float64", edge_types=np.zeros(7)),
    _second("a weight per row", "sample_weight has shape", sample_weight=np.ones(7)),
    _second("something else", "it holds 'Z.npy': there may be", Z=np.ones(2)),
    _spoilt("no archive", "no archive of arrays", lambda raw: raw[: len(raw) // 2],
            lambda raw: b"", lambda raw: b"rows and rows"),
    _spoilt("a header that claims more", "X: an array's header does not agree",
            lambda raw: _zip(raw, lambda name, old: (name, old.replace(b"(7, 3)", b"(9, 3)")))),
    _spoilt("a member that NumPy did not write", "it holds 'X': there may be",
            lambda raw: _zip(raw, lambda name, old: (name.replace("X.npy", "X"), old))),
    Case("shards, Parquet", "half of a file", _cut_table, r"^1\.parquet: "),
    Case("shards, Parquet", "a table beside arrays", _mixed, r"^b\.parquet: it is Parquet, and a"),
    _frames("no rows at all", "every instance of X is empty", FRAME[:0], only=True),
    _frames("no instances", "0.parquet: there is no column 'sentence'", instance="sentence"),
    _frames("an instance in two files", "1.parquet: it begins with the instance 1 that",
            FRAME.assign(instance=1)),
    _frames("another name", "1.parquet: feature 0 is 'depth'",
            MORE.rename(columns={"height": "depth"})),
    _frames("fewer columns", "1.parquet: it has 1 features", MORE.drop(columns="width")),
    _frames("rows of no instance", "1.parquet: column 'instance' has rows",
            FRAME.assign(instance=[7.0, None, 8.0])),
    _frames("a text as feature",
            r"^1\.parquet: column 'width' holds '\w*string': a feature is numbers",
            MORE.assign(width="a")),
    _frames("dates as feature", r"^0\.parquet: column 'width' holds 'timestamp",
            FRAME.assign(width=pd.Timestamp(0)), only=True),
    _frames("a feature that is a category in one alone",
            r"^1\.parquet: column 'width' holds categories, and numbers in 0\.parquet",
            MORE.assign(width=pd.Categorical(["a", "b", "a"]))),
    _frames("truth values among numbers",
            r"^1\.parquet: column 'width' holds truth values, and numbers in 0\.parquet",
            MORE.assign(width=True)),
    _frames("categories that were numbers",
            r"^1\.parquet: column 'width' had categories that are not text, .* made int64: write",
            MORE.assign(width=pd.Categorical([10, 20, 10]))),
    _frames("numbers as labels", "1.parquet: its labels are whole", MORE.assign(label=1)),
    _frames("weights within an instance", "column 'height' has 2.0 in row 1", weight="height"),
    _frames("two columns of one name", "are called 'label'", instance="label"),
    _labelled("labels of two kinds", "y has labels of (int, str|tuple)",
              each([1, *FLAT[1:]], [(1, 2)] * len(FLAT))),
    _labelled("labels that are too large",
              "y has the label 1180591620717411303424, too large for an array",
              [2**70] * len(FLAT)),
    _labelled("a label that ends with zero",
              r"y has the label 'A\\x00', which an array does not give back",
              ["A\0"] * len(FLAT)),
    _written("dicts", "X holds dicts or texts, which have no columns", X=WORDS, y=Y, lengths=None),
    _written("no positions", "positions is 0: pass a whole", positions=0),
    _written("another format", "format is 'csv': choose", format="csv"),
    _written("sparse Parquet", "X is sparse, which", X=CSR, y=FLAT[:7], lengths=[3, 4],
             format="parquet"),
    _written("frames as npz", "X is a data frame, and npz", X=pd.DataFrame(STACKED)),
    _written("categories that are numbers",
             r"^X: column 'c' has categories that are not text \(integer\)",
             X=pd.DataFrame({"c": pd.Categorical([10, 20] * (len(STACKED) // 2))}),
             format="parquet"),
    _written("no category at all", r"^X: column 'c' has categories that are not text",
             X=pd.DataFrame({"c": pd.Categorical([None] * len(STACKED))}), format="parquet"),
    _written("a column of a special name", "X has a column 'label'",
             X=pd.DataFrame(STACKED, columns=["a", "b", "label"]), format="parquet"),
    _written("an empty instance in Parquet", "instance 4 is empty", lengths=[*LENGTHS, 0],
             format="parquet"),
]  # fmt: skip
