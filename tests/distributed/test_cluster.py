"""Training and predicting on a cluster of real processes."""

import errno
import os
import signal
import threading
import time

import numpy as np
import pytest

import crfx
from crfx import GBCRF, LinearCRF
from crfx.distributed import cluster, prediction
from crfx.distributed.prediction import predicted
from crfx.distributed.shares import Share
from crfx.testing import make_task

pytestmark = [
    pytest.mark.xdist_group("cluster"),  # one cluster for all
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # of workers that were killed
    pytest.mark.filterwarnings("ignore:a worker was lost"),
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
    """A callback that kills a process after so many rounds, unless it was done before; it notes
    the rounds that it sees, see `rounds_seen`.

    Made in here, so that its code travels to workers that have no tests.
    """

    def callback(progress):
        with marker.with_suffix(".rounds").open("a") as file:
            print(progress.n_rounds, file=file)
        if progress.n_rounds == after and not marker.exists():
            time.sleep(0.5)  # the client has time to fetch what was kept
        if progress.n_rounds == after and not marker.exists():
            marker.touch()
            os.kill(pid, signal.SIGKILL)
            time.sleep(0.5)

    return callback


def noting_rounds(marker):
    """A callback that notes the rounds that it sees, and does nothing else."""
    return kill_once(0, -1, marker)


def rounds_seen(marker):
    """Return the rounds that the callback saw, in all attempts."""
    return [int(line) for line in marker.with_suffix(".rounds").read_text().split()]


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
    assert [p.shape for p in marginals] == [(len(x), 3) for x in X]
    n_labels = len(crf.classes_)
    sent_bytes = np.diff(place.last_run.bytes_by_round)
    assert len(sent_bytes) == ROUNDS - 1
    assert sent_bytes.max() <= 16 * n_labels**2 + 1000
    assert place.last_run.n_losses == 0


def test_rows_are_cut_between_instances(client, task, alone):
    X, y = task
    arguments = {"lengths": [len(x) for x in X]}
    with cluster(client):
        crf = GBCRF(ROUNDS, random_state=0, early_stopping_rounds=3)
        crf.fit(np.concatenate(X), np.concatenate(y), **arguments, eval_set=task)
        labels = crf.predict(np.concatenate(X), **arguments)
    assert agreement([labels], alone.predict(X)) >= SAME_LABELS
    assert len(crf.history_["eval_metric"]) == ROUNDS


@pytest.mark.parametrize("number", [0, 2])
def test_restarted_worker_changes_nothing(client, task, tmp_path, number):
    with cluster(client, every=1, seconds=0):
        undisturbed = GBCRF(ROUNDS, random_state=0).fit(*task)
        callback = kill_once(process_of(client, number), 5, tmp_path / "killed")
        crf = GBCRF(ROUNDS, random_state=0).fit(*task, callbacks=[callback])
    assert (tmp_path / "killed").exists()
    seen = rounds_seen(tmp_path / "killed")
    assert seen[:5] == [1, 2, 3, 4, 5]
    assert 1 < seen[5] <= 6  # not from the beginning
    assert crf.model_.node.raw == undisturbed.model_.node.raw
    assert (crf.transitions_ == undisturbed.transitions_).all()
    assert crf.history_["objective"] == undisturbed.history_["objective"]


def test_training_continues_after_losing_a_worker(client, task, alone, tmp_path):
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


def test_worker_error_ends_training(client, task):
    X, y = [x.copy() for x in task[0]], task[1]
    X[80][2, 1] = np.inf
    message = "instance 80, position 2: feature 1 is infinite"
    with cluster(client), pytest.raises(ValueError, match=message):
        GBCRF(2).fit(X, y)
    with cluster(client):
        crf = GBCRF(2).fit(*task)  # they are ready for the next
        with pytest.raises(ValueError, match=message):
            crf.predict(X)


def test_callback_error_is_raised_unchanged(client, task):
    def slow_database(progress):
        raise TimeoutError("the database of mine")

    class Odd(Exception):
        def __init__(self, one, two):
            super().__init__(one)

    def odd(progress):
        raise Odd("strange", 2)

    with cluster(client):
        with pytest.raises(TimeoutError, match="the database of mine"):
            GBCRF(2).fit(*task, callbacks=[slow_database])
        with pytest.raises(RuntimeError, match="Odd: strange"):
            GBCRF(2).fit(*task, callbacks=[odd])
        GBCRF(2).fit(*task)


def test_one_time_messages_are_listed(client, task):
    with cluster(client):
        crf = GBCRF(2, random_state=0).fit(iter(task[0]), iter(task[1]))
        assert agreement(crf.predict(iter(task[0])), crf.predict(task[0])) == 1


def test_workers_argument_must_name_known_workers(client, task):
    known = sorted(client.nthreads())
    unknown, message = "tcp://nowhere:1", "workers has 'tcp://nowhere:1', but the cluster has"
    with cluster(client, workers=[known[0], unknown]), pytest.raises(ValueError, match=message):
        GBCRF(2).fit(*task)
    for wrong in ([], "tcp://a:1", [1], [known[0], known[0]]):
        with pytest.raises(ValueError, match="workers is "), cluster(client, workers=wrong):
            pass


def test_cluster_rejects_partial_fit(client, task):
    with cluster(client), pytest.raises(ValueError, match="use fit on a cluster"):
        LinearCRF(trainer="sgd").partial_fit(*task)


def test_a_prediction_survives_a_worker(client, task, alone):
    X = task[0] * 200
    with cluster(client):
        expected = alone.predict(X)
        victim = process_of(client, 1)
        killer = threading.Timer(0.05, os.kill, (victim, signal.SIGKILL))
        killer.start()
        labels = alone.predict(X)
        killer.join()
    client.wait_for_workers(3)
    assert agreement(labels, expected) == 1


def test_prediction_skips_lost_worker(client, task, alone, monkeypatch):
    there = client.nthreads()
    answers = iter([{**there, "tcp://127.0.0.1:9": 1}] * 2)  # to the check, and to who then sends
    monkeypatch.setattr(client, "nthreads", lambda: next(answers, there))
    with cluster(client):
        labels = alone.predict(task[0])
    assert next(answers, None) is None
    assert agreement(labels, alone.predict(task[0])) == 1


class Shares:
    """Instances whose shares are given."""

    def __init__(self, *loads):
        self.loads = loads

    def shares(self, count):
        return [Share(load, [[]]) for load in self.loads]


def test_prediction_error_is_not_a_lost_worker(client, alone):
    def unreadable(shard):
        raise OSError("shard 3 cannot be read")

    def slow(shard):
        time.sleep(5)
        return {"X": []}

    begin = time.monotonic()
    with pytest.raises(OSError, match="shard 3 cannot be read"):
        predicted(client, None, 0, alone, "predict", Shares(unreadable, slow), {})
    assert time.monotonic() - begin < 4  # others are not waited for


def test_prediction_results_are_not_recomputed(client, alone, monkeypatch):
    """If one share is lost, only that share is sent again."""
    sent = []

    def submitted(client, there, estimator, method, shares, common):
        sent.append(sorted(shares))
        futures = submit(client, there, estimator, method, shares, common)
        if len(sent) == 1:
            client.gather([future for number, future in futures.items() if number != 1])
            client.cancel(futures[1])
        return futures

    submit = prediction._submitted
    monkeypatch.setattr(prediction, "_submitted", submitted)
    one = make_task(n_instances=1)[0]
    loads = [lambda shard, k=k: {"X": one[:1] * k} for k in (1, 2, 3)]
    predictions = predicted(client, None, 0, alone, "predict", Shares(*loads), {})
    assert len(predictions) == 6
    assert sent == [[0, 1, 2], [1]]


def test_without_workers_nothing_is_predicted(client, task, alone):
    gone = ["tcp://127.0.0.1:9"]
    with pytest.raises(RuntimeError, match="all of workers were lost"):
        predicted(client, gone, 0.1, alone, "predict", Shares(), {})
    distributed = pytest.importorskip("distributed")
    nobody = {"n_workers": 0, "processes": False, "dashboard_address": ":0"}
    with distributed.Client(**nobody) as here, cluster(here, wait=0.1):
        with pytest.raises(RuntimeError, match="the cluster has no workers"):
            alone.predict(task[0])
        here.close()
        with pytest.raises(RuntimeError, match="the client is closed"):
            alone.predict(task[0])


def test_thread_workers_have_separate_estimators(task):
    distributed = pytest.importorskip("distributed")
    crf = LinearCRF(max_iter=6, tol=0.0)
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": False}
    with distributed.Client(**options, dashboard_address=":0") as here, cluster(here):
        crf.fit(*task)
        crf.predict(task[0])
    assert crf.n_iter_ == 6
    assert crf.n_jobs is None


def test_resume_requires_same_data(client, task, tmp_path):
    path = tmp_path / "run.crfx"

    def give_up(progress):
        if progress.n_rounds == 4:
            time.sleep(1)
            raise KeyError("enough")

    X, y = task
    with cluster(client, checkpoint=path, seconds=0), pytest.raises(KeyError):
        GBCRF(ROUNDS, random_state=0).fit(X, y, callbacks=[give_up])
    assert path.exists()
    with cluster(client, checkpoint=path, resume=True):
        with pytest.raises(ValueError, match=r"run\.crfx is of other instances"):
            GBCRF(ROUNDS, random_state=0).fit(X[1:], y[1:])
        with pytest.raises(ValueError, match=r"run\.crfx: max_depth is 3, but the run"):
            GBCRF(ROUNDS, random_state=0, max_depth=3).fit(X, y)
        GBCRF(ROUNDS, random_state=0).fit(X, y)
    assert not list(tmp_path.iterdir())


def test_checkpoint_path_is_checked_first(client, task, tmp_path):
    junk = tmp_path / "junk.crfx"
    junk.write_text("no model")
    for path, message in [
        (tmp_path, "is a folder"),
        (tmp_path / "none" / "run.crfx", "there is no folder"),
        (junk, "junk.crfx is not a model file"),
    ]:
        place = cluster(client, checkpoint=path, resume=True)
        with place, pytest.raises((ValueError, OSError), match=message):
            GBCRF(2).fit(*task)


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
    notes = tmp_path / "notes"
    with cluster(client, checkpoint=path, resume=True, seconds=0):
        crf = GBCRF(ROUNDS, random_state=0).fit(*task, callbacks=[noting_rounds(notes)])
        assert rounds_seen(notes)[0] > 1  # not from the beginning
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


def test_bad_shard_is_named(client, task, tmp_path):
    shards = crfx.write_shards(tmp_path, *task, positions=40)
    shards.paths[-1].write_bytes(b"")
    with cluster(client), pytest.raises(ValueError, match=shards.paths[-1].name):
        GBCRF(2).fit(shards.X, shards.y)
    shards.paths[-1].unlink()
    with cluster(client), pytest.raises(ValueError, match="there is no such file"):
        GBCRF(2).fit(shards.X, shards.y)


def test_labels_are_of_the_same_shards(client, task, tmp_path):
    shards = crfx.write_shards(tmp_path, *task, positions=40)
    with cluster(client):
        crf = GBCRF(2, random_state=0).fit(shards[:3].X, shards[:3].y)
        with pytest.raises(ValueError, match="X and the labels are of different shards"):
            GBCRF(2).fit(shards.X, shards[:3].y)
        with pytest.raises(ValueError, match="pass their labels too"):
            GBCRF(2).fit(shards.X, task[1])
    assert crf.n_rounds_ == 2


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


def test_dask_collections_require_a_cluster(task, alone):
    bag = pytest.importorskip("dask.bag")
    held = [bag.from_sequence(values) for values in task]
    for call in (lambda: GBCRF(2).fit(*held), lambda: alone.predict(held[0])):
        with pytest.raises(ValueError, match=r"is held by Dask: .*cluster\(client\)"):
            call()


def test_rows_of_dask(client, task, alone):
    X, y = task
    array, frame = pytest.importorskip("dask.array"), pytest.importorskip("dask.dataframe")
    lengths = np.array([len(x) for x in X])
    ends = np.cumsum(lengths)
    rows = (int(ends[29]), int(ends[59] - ends[29]), int(ends[-1] - ends[59]))
    held = array.from_array(np.concatenate(X), chunks=(rows, 2))
    labels = array.from_array(np.concatenate(y), chunks=(rows,))
    with cluster(client):
        crf = GBCRF(ROUNDS, random_state=0).fit(held, labels, lengths=lengths)
        assert agreement(alone.predict(X), [crf.predict(np.concatenate(X), lengths=lengths)]) == 1
        labels_of_rows = crf.predict(held, lengths=lengths)
        assert agreement(alone.predict(X), [labels_of_rows.compute()]) == 1
        columns = frame.from_dask_array(held.rechunk({1: -1}), columns=list("abcd"))
        crf = GBCRF(ROUNDS, random_state=0).fit(columns, labels, lengths=lengths)
        assert crf.feature_names_in_.tolist() == list("abcd")
        with pytest.raises(ValueError, match="partition 0 of X ends within instance 29"):
            GBCRF(2).fit(
                held.rechunk(((rows[0] - 1, rows[1] + 1, rows[2]), 4)), labels, lengths=lengths
            )
