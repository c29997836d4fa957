"""Trees grown of features that stay on disk are those that grow in memory."""

import shutil
import tempfile
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from crfx import GBCRF, Shards, write_shards
from crfx.distributed.collective import together
from crfx.testing import make_task

SETTINGS = {"max_bin": 16, "max_depth": 3, "n_jobs": 1, "random_state": 0}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """Return the folder of temporary files."""
    folder = tmp_path / "cache"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def task(kind="dense", seed=0):
    """The arguments of fit, in memory: more values than bins."""
    X, y = make_task(seed, n_instances=50)
    lengths, labels = [len(x) for x in X], [label for tags in y for label in tags]
    X = np.concatenate(X)
    if kind == "sparse":
        X = sparse.csr_matrix(X * (X > 0.5))
    elif kind == "frame":
        pandas = pytest.importorskip("pandas")
        pytest.importorskip("pyarrow")
        X = pandas.DataFrame(X, columns=list("abcd"))
        X["kind"] = pandas.Categorical(np.where(X["a"] > 1, "high", "low"))
    return {"X": X, "y": labels, "lengths": lengths}


def on_disk(data, folder, kind="dense"):
    """The same, in shards."""
    format = "parquet" if kind == "frame" else "npz"
    shards = write_shards(folder, **data, positions=40, format=format)
    assert len(shards) > 3
    return {"X": shards.X, "y": shards.y}


@pytest.fixture
def shards(tmp_path):
    return on_disk(task(), tmp_path / "shards")


def trees_of(crf):
    return [function.raw for function in crf.model_.growing]


@pytest.mark.parametrize(
    ("kind", "edges"), [("dense", "table"), ("sparse", "trees"), ("frame", "table")]
)
def test_trees_from_shards_equal_memory(kind, edges, tmp_path, cache):
    data = task(kind)
    shards = on_disk(data, tmp_path / "shards", kind)
    crf = GBCRF(4, edges=edges, subsample=0.8, **SETTINGS)
    from_disk = GBCRF(**crf.get_params()).fit(**shards)
    in_memory = crf.fit(**data)
    assert from_disk.history_["objective"] == in_memory.history_["objective"]
    assert trees_of(from_disk) == trees_of(in_memory)
    expected = in_memory.predict(data["X"], lengths=data["lengths"])
    assert (from_disk.predict(shards["X"]) == expected).all()
    assert not list(cache.iterdir())


def test_warm_start_and_eval_set_from_shards(shards, tmp_path):
    watched = task(seed=1)
    other = on_disk(watched, tmp_path / "watched")
    first = GBCRF(2, **SETTINGS).fit(**shards, eval_set=other)
    further = GBCRF(2, **SETTINGS).fit(**shards, eval_set=other, init_model=first)
    in_memory = GBCRF(4, **SETTINGS).fit(**task(), eval_set=watched)
    assert trees_of(further) == trees_of(in_memory)
    assert first.history_["eval_metric"] == in_memory.history_["eval_metric"][:2]


def test_zero_weight_instances_leave_no_bins(shards, tmp_path):
    data = task()
    weights = np.arange(50) % 3 > 0
    weighed = write_shards(tmp_path / "w", **data, sample_weight=weights, positions=40)
    from_disk = GBCRF(3, **SETTINGS).fit(weighed.X, weighed.y)
    in_memory = GBCRF(3, **SETTINGS).fit(**data, sample_weight=weights)
    assert trees_of(from_disk) == trees_of(in_memory)


@pytest.mark.parametrize("borders", [(0, 2, 99), (0, 1, 3, 99)])
def test_workers_train_on_own_shards(shards, borders):
    settings = SETTINGS | {"edges": None}
    files = shards["X"].shards

    def work(workers):
        share = files[borders[workers.rank] : borders[workers.rank + 1]]
        return trees_of(GBCRF(3, **settings).fit(share.X, share.y))

    expected = trees_of(GBCRF(3, **settings).fit(**task()))
    assert together(len(borders) - 1, work) == [expected] * (len(borders) - 1)


def test_bins_file_is_removed_after_training(shards, cache):
    seen = []

    def look(progress):
        seen.extend(path.name for path in cache.glob("*/*"))
        raise InterruptedError

    with pytest.raises(InterruptedError):
        GBCRF(4, **SETTINGS).fit(**shards, callbacks=[look])
    assert len(seen) == 1
    assert not list(cache.iterdir())


def test_bins_raise_before_disk_is_full(shards, cache, monkeypatch):
    """XGBoost would end the process."""
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=100))
    with pytest.raises(OSError, match=r"0 MiB are left.*TMPDIR.*crfx-"):
        GBCRF(4, **SETTINGS).fit(**shards)
    assert not list(cache.iterdir())


def test_unreadable_shard_is_named(shards, cache, tmp_path):
    paths = shards["X"].shards.paths
    again = Shards(paths)
    paths[2].write_bytes(paths[2].read_bytes()[:-100])
    with pytest.raises(ValueError, match=paths[2].name):
        GBCRF(4, **SETTINGS).fit(again.X, again.y)
    assert not list(cache.iterdir())
