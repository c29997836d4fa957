"""Many threads predict with one fitted estimator at the same time: the bits of one thread."""

import functools
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import chain

import numpy as np
import pytest
from scipy import sparse
from threadpoolctl import threadpool_info

from crfx import GBCRF, HiddenUnitCRF, LinearCRF, RankingCRF, TreeCRF
from crfx.estimators.registry import load
from crfx.potentials import tree_format

N_THREADS, TURNS = 8, 3
N_INSTANCES, N_FEATURES = 24, 6


def sequences(seed=0):
    """Labels that follow the first features and the label before, in noise."""
    random = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(N_INSTANCES):
        x = random.normal(size=(random.integers(1, 40), N_FEATURES)).astype(np.float32)
        X.append(x)
        y.append((x[:, :3] + random.gumbel(size=(len(x), 3))).argmax(axis=1).tolist())
    return X, y


def spans(y):
    """Return the labels as BIO tags; a span begins where none can be continued."""
    result = []
    for labels in y:
        tags = ["O", "B-X", "I-X"]
        result.append([tags[label] for label in labels])
        for place, tag in enumerate(result[-1]):
            if tag == "I-X" and (place == 0 or result[-1][place - 1] == "O"):
                result[-1][place] = "B-X"
    return result


def words(X):
    return [[[f"{f}={v > 0}" for f, v in enumerate(row)] for row in x] for x in X]


def csr(X):
    return [sparse.csr_matrix(np.where(np.abs(x) > 0.5, x, 0)) for x in X]


def same(X):
    return X


MODELS = {
    "GBCRF": (same, lambda: GBCRF(n_estimators=8)),
    "GBCRF, sparse": (csr, lambda: GBCRF(n_estimators=8)),
    "GBCRF, words": (words, lambda: GBCRF(n_estimators=8)),
    "GBCRF, tree edges": (same, lambda: GBCRF(n_estimators=4, edges="trees")),
    "GBCRF, linear edges": (same, lambda: GBCRF(n_estimators=4, edges="linear")),
    "TreeCRF": (same, lambda: TreeCRF(n_estimators=5, window=1)),
    "TreeCRF, sparse": (csr, lambda: TreeCRF(n_estimators=5)),
    "LinearCRF": (same, lambda: LinearCRF(max_iter=10)),
    "LinearCRF, words": (words, lambda: LinearCRF(max_iter=10)),
    "LinearCRF, linear edges": (same, lambda: LinearCRF(max_iter=10, edges="linear")),
    "HiddenUnitCRF": (same, lambda: HiddenUnitCRF(n_hidden=4, max_iter=5)),
    "HiddenUnitCRF, perceptron": (
        same,
        lambda: HiddenUnitCRF(n_hidden=4, trainer="perceptron", sweeps=2, random_state=0),
    ),
    "HiddenUnitCRF, votes": (
        same,
        lambda: HiddenUnitCRF(
            n_hidden=4, trainer="perceptron", sweeps=3, herding=True, random_state=0
        ),
    ),
    "GBCRF, BIO": (same, lambda: GBCRF(n_estimators=4, constraints="bio")),
    "LinearCRF, BIO, order 2": (
        same,
        lambda: LinearCRF(max_iter=10, order=2, constraints="bio", decode="marginal"),
    ),
}


def task(kind, seed=0):
    """Instances and labels that the model takes."""
    X, y = sequences(seed)
    return MODELS[kind][0](X), spans(y) if "BIO" in kind else y


@functools.cache
def model_file(kind, folder):
    """Saved, so that every test has one that has not predicted yet."""
    path = folder / f"{kind}.crfx"
    MODELS[kind][1]().fit(*task(kind)).save(path)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


def answers(crf, X, y):
    """Return every prediction for one instance as bytes."""
    results = [crf.predict([X])[0], crf.predict_marginals([X])[0]]
    if hasattr(crf, "n_rounds_"):
        results += [crf.predict([X], n_rounds=2)[0], crf.predict_marginals([X], n_rounds=1)[0]]
    if getattr(crf, "votes_", None) is None:
        results += [crf.sample([X], 3, random_state=1)[0], crf.log_likelihood([X], [y])]
        for labels, p in crf.predict_kbest([X], 3)[0]:
            results += [labels, np.float64(p)]
        if crf.model_.has_edges:
            results.append(crf.predict_edge_marginals([X])[0])
        results += sure_answers(crf, X)
    if isinstance(crf, GBCRF) and not isinstance(X, list):
        results.append(crf.predict_contributions([X])[0])
    return b"".join(np.asarray(part).tobytes() for part in results)


def sure_answers(crf, X):
    """Return confidences, labels that are sure enough, and predictions under allowed labels."""
    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
    allowed = [[None if row % 3 else crf.classes_[[0, -1]].tolist() for row in range(n_rows)]]
    results = []
    for more in ({}, {"allowed": allowed}):
        results += crf.predict_confidence([X], **more)[0]
        doubtful = crf.predict([X], min_probability=0.5, **more)[0]
        results.append(np.array([str(label) for label in doubtful]))  # objects: bytes tell places
        results += [crf.predict([X], **more)[0], crf.predict_marginals([X], **more)[0]]
        results.append(crf.sample([X], 2, random_state=1, **more)[0])
        if crf.constraints is not None:
            for least in (None, 0.1):
                results.append(str(crf.predict_spans([X], min_probability=least, **more)[0]))
    return results


def at_once(work, n_tasks):
    """Yield (number, what ``work`` gives), by threads that begin together and take turns."""
    gate = threading.Barrier(N_THREADS)

    def run(thread):
        gate.wait()
        numbers = [(k * (thread + 1) + thread) % n_tasks for k in range(n_tasks)] * TURNS
        return [(number, work(number)) for number in numbers]

    with ThreadPoolExecutor(N_THREADS) as pool:
        return list(chain.from_iterable(pool.map(run, range(N_THREADS))))


@pytest.mark.parametrize(("kind", "n_jobs"), [(kind, 1 + k % 2) for k, kind in enumerate(MODELS)])
def test_predict_gives_the_same_bits_in_many_threads(kind, n_jobs, folder):
    """Other bits would be found here with n_jobs=2, too: what is expected is told by one thread."""
    X, y = (part[:8] for part in task(kind, seed=1))
    alone = load(model_file(kind, folder)).set_params(n_jobs=1)
    expected = [answers(alone, *pair) for pair in zip(X, y, strict=True)]
    crf = load(model_file(kind, folder)).set_params(n_jobs=n_jobs)
    for number, result in at_once(lambda k: answers(crf, X[k], y[k]), len(X)):
        assert result == expected[number]
    assert len(set(expected)) == len(expected)


@pytest.mark.parametrize("kind", ["GBCRF", "TreeCRF"])
def test_predict_in_many_threads_right_after_fit(kind):
    """Its rounds are joined by whoever predicts first, while others wait."""
    convert, make = MODELS[kind]
    X, y = sequences()
    for _ in range(3):
        crf = make().fit(convert(X), y)
        results = at_once(lambda k, crf=crf: crf.predict_marginals([X[k]])[0].tobytes(), 4)
        for number, bits in results:
            assert bits == crf.predict_marginals([X[number]])[0].tobytes()


def test_predict_joins_rounds_in_one_thread(monkeypatch):
    """The first thread joins the rounds; a second one would see them half joined."""
    X, y = sequences()
    crf = GBCRF(n_estimators=4).fit(X, y)
    joined, calls = tree_format.join, []

    def slowly(*arguments):
        calls.append(1)
        time.sleep(0.05)
        return joined(*arguments)

    monkeypatch.setattr(tree_format, "join", slowly)
    at_once(lambda k: crf.predict([X[k]]), 2)
    assert len(calls) == 1


@pytest.mark.parametrize("scorer", ["linear", "trees"])
def test_rankers_give_the_same_bits_in_many_threads(scorer, make_queries, tmp_path):
    X, relevance, group = make_queries()
    trees = {"n_estimators": 10} if scorer == "trees" else {"sweeps": 3}
    path = tmp_path / "ranker.crfx"
    RankingCRF(scorer=scorer, random_state=0, **trees).fit(X, relevance, group=group).save(path)
    parts = np.split(X, np.cumsum(group)[:-1])[:8]
    alone, crf = load(path), load(path)
    expected = [alone.predict(part).tobytes() for part in parts]
    for number, scores in at_once(lambda k: crf.predict(parts[k]).tobytes(), 8):
        assert scores == expected[number]


def blas_threads():
    return {pool["filepath"]: pool["num_threads"] for pool in threadpool_info()}


def test_blas_keeps_its_threads():
    """Each product asks for one thread of BLAS, and the last to end gives the others back."""
    X, y = sequences()
    crf = LinearCRF(max_iter=3).fit(X, y)
    before = blas_threads()
    for _ in range(10):
        at_once(lambda k: crf.predict([X[k]]), len(X))
        assert blas_threads() == before
