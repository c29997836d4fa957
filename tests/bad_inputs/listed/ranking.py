"""RankingCRF: documents, relevance and groups that it must refuse."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas
from scipy import sparse
from sklearn.exceptions import NotFittedError

from crfx import LinearCRF, RankingCRF, write_shards
from listed.case import Case, Each, arguments_of, each
from listed.subjects import (
    DOCUMENTS,
    GROUP,
    RANKERS,
    RELEVANCE,
    only_fitted,
    only_unfitted,
    unfitted_and_fitted,
)

AREA = "RankingCRF"
NAN, INF = np.nan, np.inf


def changed(values: Any, place: int, value: Any) -> list[Any]:
    """Good values but for one."""
    changed = list(values)
    changed[place] = value
    return changed


def _fit(tried: str, message: str, **arguments: Any) -> Case:
    def attempt(crf: Any, folder: Path, arguments: dict[str, Any]) -> Any:
        known = {"X": DOCUMENTS, "relevance": RELEVANCE, "group": GROUP, **arguments}
        return crf.fit(known.pop("X"), known.pop("relevance"), **known)

    subjects, values = unfitted_and_fitted(RANKERS), arguments_of(arguments)
    return Case(AREA, tried, attempt, message, subjects=subjects, values=values)


def _ask(
    tried: str, ask: Callable[..., Any], message: str, error: Any = ValueError,
    subjects: Any = None, values: Each | None = None,
) -> Case:  # fmt: skip
    def attempt(crf: Any, folder: Path, *value: Any) -> Any:
        return ask(crf, *value)

    return Case(AREA, tried, attempt, message, error, subjects or only_fitted(RANKERS), values)


def _shards(
    tried: str, message: str, *, scorer: str = "trees", y: Any = RELEVANCE, has: Any = None,
    **arguments: Any,
) -> Case:  # fmt: skip
    """Fit on shards that have more than features and relevance, with more arguments."""

    def attempt(crf: Any, folder: Path) -> Any:
        shards = write_shards("queries", DOCUMENTS, y, lengths=GROUP, **(has or {}))
        return crf.fit(shards.X, shards.y, **arguments)

    names = [name for name in RANKERS if ("trees" in name) == (scorer == "trees")]
    return Case(AREA, tried, attempt, message, subjects=unfitted_and_fitted(names))


BEYOND = DOCUMENTS.copy()
BEYOND[7, 2] = INF
QUERIES = [DOCUMENTS[:6], DOCUMENTS[6:]]
WATCHED = (DOCUMENTS, RELEVANCE, GROUP)
CASES = [
    _fit("X of no axis", "X", X=each(None, "abc")),
    _fit("X of other axes", "X has shape", X=each(DOCUMENTS[:, 0], DOCUMENTS[None])),
    _fit("X a list of queries beside group", "group is given, but X is a list of queries",
         X=QUERIES),
    _fit("one list of relevance for a list of queries", "relevance has 12 lists, but X has 2",
         X=QUERIES, group=None),
    _fit("relevance of another length than the query", r"query 1: relevance has shape \(5,\)",
         X=QUERIES, relevance=[RELEVANCE[:6], RELEVANCE[7:]], group=None),
    _fit("queries of unequal width", "instance 1: X has 2 features",
         X=[QUERIES[0], QUERIES[1][:, :2]], relevance=[RELEVANCE[:6], RELEVANCE[6:]], group=None),
    _fit("X of dicts", "X", X=[{"a": 1.0}] * 12),
    _fit("X of no numbers", "X has dtype",
         X=each(np.full((12, 2), "a"), DOCUMENTS.astype(object),
                sparse.csr_matrix(DOCUMENTS.astype(complex)))),
    _fit("X with infinity", "document 7: feature 2 is infinite|query 1, document 1", X=BEYOND),
    _fit("X without features", "X has no features", X=DOCUMENTS[:, :0]),
    _fit("X without documents", "X|group", X=DOCUMENTS[:0], relevance=[], group=[]),
    _fit("X ragged", "X has rows of unequal lengths", X=[[1.0, 2.0], [1.0]]),
    _fit("X masked", "masked array", X=np.ma.masked_greater(DOCUMENTS, 0.0)),
    _fit("X a frame of text", "column 'a'", X=pandas.DataFrame({"a": ["x"] * 12})),
    _fit("no relevance", "relevance", relevance=None),
    _fit("relevance of no numbers", "relevance is not a list of numbers",
         relevance=each(["good"] * 12, [1j] * 12, [[1], [1, 2]])),
    _fit("relevance of another shape", "relevance has shape",
         relevance=each(1.0, [1, 2], np.ones((12, 1)))),
    _fit("relevance out of range", "query 1, document 1: relevance is .*must be finite",
         relevance=each(*(changed(RELEVANCE, 7, value) for value in (-1, NAN, INF, None)))),
    _fit("equal relevance", "no query has documents of two relevance levels", relevance=[1] * 12),
    _fit("gains beyond float64", "use gain='linear'", relevance=changed(RELEVANCE, 0, 2000)),
    _fit("no group", "group is missing", group=None),
    _fit("group that does not add up", "group adds up to (0|11) documents, but X has 12",
         group=each([], [6, 5])),
    _fit("a query of no document", r"group\[[01]\] is (0|-1): a query has 1",
         group=each([6, 0, 6], [13, -1], [0] * 6 + [1] * 6)),
    _fit("group of no whole numbers", "group must list whole numbers",
         group=each([6.0, 6.0], ["6", "6"], 12, [GROUP], [True] * 12, [[6], [3, 3]], [2**63, 12])),
    _fit("weights of text", "sample_weight is not a list of numbers", sample_weight=["a", "b"]),
    _fit("another number of weights", "sample_weight has shape",
         sample_weight=each([1.0], [1.0] * 12)),
    _fit("weights out of range", "query 1: its weight (-1.0|nan)",
         sample_weight=each([1.0, -1.0], [1.0, NAN])),
    _fit("weights of 0", "and a weight above 0", sample_weight=[0.0, 0.0]),
    _fit("eval_set without group", "eval_set: group is missing", eval_set=WATCHED[:2]),
    _fit("eval_set of text", r"eval_set is not \(X, relevance, group\)", eval_set="abc"),
    _fit("eval_set with other keys", "its keys are X, relevance", eval_set={"X": DOCUMENTS}),
    _fit("eval_set with other features", "eval_set: X has 2 features",
         eval_set=(DOCUMENTS[:, :2], RELEVANCE, GROUP)),
    _fit("eval_set whose group is wrong", "eval_set: group adds up to 5",
         eval_set=(DOCUMENTS, RELEVANCE, [5])),
    _fit("other callbacks", "callbacks (is one function|is 3|holds 3)",
         callbacks=each(print, 3, [3])),
    _fit("init_model of another kind", "init_model is a (LinearCRF|int)",
         init_model=each(LinearCRF(), 3)),
    _fit("init_model with other features", "X has 3 features, but crfx is expecting 2",
         init_model=RankingCRF(sweeps=1).fit(DOCUMENTS[:, :2], RELEVANCE, group=GROUP)),
    _shards("linear scores of shards", "learns from features in memory", scorer="linear"),
    _shards("group beside shards", "X is shards, which have their own sizes", group=GROUP),
    _shards("weights beside shards", "sample_weight is given beside shards",
            has={"sample_weight": [1.0, 1.0]}, sample_weight=[1.0, 1.0]),
    _shards("shards with edge types", "the shards have edge_types", has={"edge_types": [0] * 12}),
    _shards("shards of labels", "relevance is not a list of numbers", y=["good"] * 12),
    _ask("before fit", lambda crf, call: call(crf), "is not fitted: call fit first", NotFittedError,
         only_unfitted(RANKERS),
         each(lambda crf: crf.predict(DOCUMENTS), lambda crf: crf.rank(DOCUMENTS, GROUP),
              lambda crf: crf.score(*WATCHED), lambda crf: crf.save("m.crfx"))),
    _ask("predict of other width", lambda crf, X: crf.predict(X),
         "X has 2 features, but crfx is expecting 3",
         values=each(DOCUMENTS[:, :2], [DOCUMENTS[:, :2]])),
    _ask("predict of None", lambda crf: crf.predict(None), "X"),
    _ask("predict of infinity", lambda crf: crf.predict(BEYOND), "feature 2 is infinite"),
    _ask("rank of too few documents", lambda crf: crf.rank(DOCUMENTS, [5]),
         "group adds up to 5 documents"),
    _ask("rank without group", lambda crf: crf.rank(DOCUMENTS, None), "group is missing"),
    _ask("score of other length", lambda crf: crf.score(DOCUMENTS, [1.0], GROUP),
         "relevance has shape"),
    _ask("score of NaN", lambda crf: crf.score(DOCUMENTS, [NAN] * 12, GROUP), "relevance is nan"),
    Case(AREA, "more levels than a subset holds",
         lambda crf, folder: RankingCRF().fit(np.ones((8, 1)), np.arange(8.0), group=[8]),
         "query 0: it has 8 relevance levels"),
    Case(AREA, "a metric that gives text",
         lambda crf, folder: RankingCRF(eval_metric=lambda *args: "good").fit(
             DOCUMENTS, RELEVANCE, group=GROUP, eval_set=WATCHED),
         "eval_metric gave 'good'"),
    Case(AREA, "10**12 subsets",
         lambda crf, folder: RankingCRF(n_subsets=10**12).fit(DOCUMENTS, RELEVANCE, group=GROUP),
         "n_subsets is 1000000000000"),
    Case(AREA, "init_model of the path of nothing",
         lambda crf, folder: RankingCRF().fit(
             DOCUMENTS, RELEVANCE, group=GROUP, init_model="nothing.crfx"),
         "nothing.crfx", OSError),
]  # fmt: skip
