"""Training and predicting on a cluster of real processes."""

import errno
import os
import signal
import time

import numpy as np
import pytest

import crfx
from crfx import GBCRF
from crfx.distributed import cluster
from crfx.testing import make_task

pytestmark = [
    pytest.mark.xdist_group("cluster"),  # one cluster for all
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # of workers that were killed
]

SAME_OBJECTIVE = 1e-3
SAME_LABELS = 0.999
ROUNDS = 12


@pytest.fixture(scope="module")
def task():
    return make_task(n_instances=90)


@pytest.fixture(scope="module")
def alone(task):
    return GBCRF(ROUNDS, n_jobs=1, random_state=0).fit(*task)


def agreement(one, other):
    """The share of positions with equal labels."""
    return np.mean(np.concatenate(one) == np.concatenate(other))


def kill_once(pid, after, marker):
    """A callback that kills a process after so many rounds, unless it was done before.

    Made in here, so that its code travels to workers that have no tests.
    """

    def callback(progress):
        if progress.n_rounds == after and not marker.exists():
            marker.touch()
            os.kill(pid, signal.SIGKILL)
            time.sleep(0.5)

    return callback


def process_of(client, number):
    """The process of the worker that has this share of the instances."""
    return client.run(os.getpid)[sorted(client.nthreads())[number]]


def test_lists_are_shared_out(client, task, alone):
    X, y = task
    with cluster(client) as place:
        crf = GBCRF(ROUNDS, random_state=0).fit(X, y)
        labels, marginals = crf.predict(X), crf.predict_marginals(X)
    assert crf.n_jobs is None
    np.testing.assert_allclose(
        crf.history_["objective"], alone.history_["objective"], rtol=SAME_OBJECTIVE
    )
    assert agreement(labels, alone.predict(X)) >= SAME_LABELS
    assert [own.shape for own in marginals] == [(len(own), 3) for own in X]
    n_labels = len(crf.classes_)
    told = np.diff(place.last_run.bytes_by_round)
    assert len(told) == ROUNDS - 1
    assert told.max() <= 16 * n_labels**2 + 1000
    assert place.last_run.n_losses == 0


def test_rows_are_cut_between_instances(client, task, alone):
    X, y = task
    given = {"lengths": [len(own) for own in X]}
    with cluster(client):
        crf = GBCRF(ROUNDS, random_state=0, early_stopping_rounds=3)
        crf.fit(np.concatenate(X), np.concatenate(y), **given, eval_set=task)
        labels = crf.predict(np.concatenate(X), **given)
    assert agreement([labels], alone.predict(X)) >= SAME_LABELS
    assert len(crf.history_["eval_metric"]) == ROUNDS


@pytest.mark.parametrize("number", [0, 2])
def test_a_worker_that_is_killed_and_comes_back_changes_nothing(client, task, tmp_path, number):
    with cluster(client, every=1, seconds=0):
        undisturbed = GBCRF(ROUNDS, random_state=0).fit(*task)
        callback = kill_once(process_of(client, number), 5, tmp_path / "killed")
        crf = GBCRF(ROUNDS, random_state=0).fit(*task, callbacks=[callback])
    assert (tmp_path / "killed").exists()
    assert crf.model_.node.raw == undisturbed.model_.node.raw
    assert (crf.transitions_ == undisturbed.transitions_).all()
    assert crf.history_["objective"] == undisturbed.history_["objective"]


def test_training_goes_on_with_those_that_are_left(client, task, alone, tmp_path):
    X, y = task
    some = sorted(client.nthreads())[:2]  # who comes back has another address
    with cluster(client, workers=some, every=1, seconds=0, wait=0.0):
        callback = kill_once(process_of(client, 1), 5, tmp_path / "killed")
        crf = GBCRF(ROUNDS, random_state=0).fit(X, y, callbacks=[callback])
    client.wait_for_workers(3)
    assert (tmp_path / "killed").exists()
    assert len(crf.history_["objective"]) == ROUNDS
    assert crf.history_["objective"][-1] == pytest.approx(
        alone.history_["objective"][-1], rel=SAME_OBJECTIVE
    )
    assert agreement(crf.predict(X), alone.predict(X)) >= SAME_LABELS


def test_an_error_of_one_worker_is_told_and_ends_all(client, task):
    X, y = [own.copy() for own in task[0]], task[1]
    X[80][2, 1] = np.inf
    with cluster(client), pytest.raises(ValueError, match="position 2: feature 1 is infinite"):
        GBCRF(2).fit(X, y)
    with cluster(client):
        GBCRF(2).fit(*task)  # they are ready for the next


def test_a_full_disk_leaves_the_old_checkpoint(client, task, tmp_path, monkeypatch):
    from crfx.distributed import checkpoints

    written, whole_file = [], checkpoints.whole_file

    def full_after_three(path):
        if len(written) == 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        written.append(path)
        return whole_file(path)

    monkeypatch.setattr(checkpoints, "whole_file", full_after_three)
    path = tmp_path / "run.crfx"
    with (
        cluster(client, checkpoint=path, seconds=0),
        pytest.raises(OSError, match=r"No space left on device.*run\.crfx"),
    ):
        GBCRF(ROUNDS, random_state=0).fit(*task)
    monkeypatch.undo()
    with cluster(client, checkpoint=path, resume=True, seconds=0):
        crf = GBCRF(ROUNDS, random_state=0).fit(*task)
        undisturbed = GBCRF(ROUNDS, random_state=0).fit(*task)
    assert crf.model_.node.raw == undisturbed.model_.node.raw
    assert not path.exists()


def test_shards_go_to_workers_whole(client, task, alone, tmp_path):
    X, y = task
    shards = crfx.write_shards(tmp_path, X, y, positions=40)
    assert len(shards) > 3
    with cluster(client):
        crf = GBCRF(ROUNDS, random_state=0).fit(shards.X, shards.y, eval_set=(shards.X, shards.y))
        labels = crf.predict(shards.X)
    assert agreement([labels], alone.predict(X)) >= SAME_LABELS
    assert len(crf.history_["eval_metric"]) == ROUNDS


def test_a_shard_that_is_bad_by_now_is_named(client, task, tmp_path):
    shards = crfx.write_shards(tmp_path, *task, positions=40)
    shards.paths[-1].write_bytes(b"")
    with cluster(client), pytest.raises(ValueError, match=shards.paths[-1].name):
        GBCRF(2).fit(shards.X, shards.y)


def test_bags_of_dask(client, task, alone):
    X, y = task
    bag = pytest.importorskip("dask.bag")
    bags = [bag.from_sequence(values, npartitions=4) for values in (X, y)]
    with cluster(client):
        crf = GBCRF(ROUNDS, random_state=0).fit(*bags, sample_weight=np.ones(len(X)))
        labels = crf.predict(bags[0])
        assert labels.npartitions == 4
        assert agreement(labels.compute(), alone.predict(X)) >= SAME_LABELS
        with pytest.raises(ValueError, match="y has 2 partitions, but X has 4"):
            GBCRF(2).fit(bags[0], bags[1].repartition(npartitions=2))


def test_rows_of_dask(client, task, alone):
    X, y = task
    array, frame = pytest.importorskip("dask.array"), pytest.importorskip("dask.dataframe")
    lengths = np.array([len(own) for own in X])
    ends = np.cumsum(lengths)
    rows = (int(ends[29]), int(ends[59] - ends[29]), int(ends[-1] - ends[59]))
    held = array.from_array(np.concatenate(X), chunks=(rows, 2))
    labels = array.from_array(np.concatenate(y), chunks=(rows,))
    with cluster(client):
        crf = GBCRF(ROUNDS, random_state=0).fit(held, labels, lengths=lengths)
        assert agreement(alone.predict(X), [crf.predict(np.concatenate(X), lengths=lengths)]) == 1
        columns = frame.from_dask_array(held.rechunk({1: -1}), columns=list("abcd"))
        crf = GBCRF(ROUNDS, random_state=0).fit(columns, labels, lengths=lengths)
        assert crf.feature_names_in_.tolist() == list("abcd")
        with pytest.raises(ValueError, match="partition 0 of X ends within instance 29"):
            GBCRF(2).fit(
                held.rechunk(((rows[0] - 1, rows[1] + 1, rows[2]), 4)), labels, lengths=lengths
            )
