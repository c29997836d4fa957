"""Trees that grow on a GPU: nearly those of the CPU, in the same files.  Skipped without a GPU."""

import json
import runpy
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from crfx import GBCRF, load, write_shards
from crfx.distributed.collective import together
from crfx.estimators.session import resumed
from crfx.potentials import tree_format, ubjson
from crfx.potentials.xgboost_learner import XGBoostLearner, check_cuda
from crfx.testing import make_task

SAVED = runpy.run_path(str(Path(__file__).parents[1] / "saved_models" / "kinds.py"))
ON_TREES = {
    name: kind
    for name, kind in SAVED["KINDS"].items()
    if name.startswith(("gbcrf", "ranking-trees"))
}
ROUNDED = ("gbcrf-linear",)
"""Its edges are added up in training, and multiplied out where it is resumed."""
SETTINGS = {"n_estimators": 10, "max_depth": 4, "random_state": 0, "n_jobs": 1}
MARGIN = 2e-3
"""Of mean probabilities: XGBoost sums gradients on a GPU in fixed point, so that splits of nearly
the same gain may differ."""
OBJECTIVE = 5e-2
"""Of objectives of small data, relatively."""

X, Y = make_task(n_instances=300)
X_TEST, Y_TEST = make_task(1, n_instances=200)


@pytest.fixture(scope="module", autouse=True)
def gpu():
    """Skip, saying why, where XGBoost has no GPU."""
    try:
        check_cuda("cuda")
    except ValueError as error:
        pytest.skip(f"no CUDA device: {error}")


def flat(marginals):
    return np.concatenate(marginals)


def contents(crf, folder):
    """All that a model is: what its file holds, but for the times."""
    crf.save(folder / "m.crfx")
    with zipfile.ZipFile(folder / "m.crfx") as file:
        members = {name: file.read(name) for name in file.namelist()}
    values = json.loads(members.pop("model.json"))
    values["history"].pop("seconds")
    return values, members


def splits(crf):
    """(feature, threshold) of every node of the first round."""
    raw = tree_format.first_rounds(crf.model_.node.raw, 1)
    trees = ubjson.decode(raw)["learner"]["gradient_booster"]["model"]["trees"]
    return [
        (int(feature), float(threshold))
        for tree in trees
        for left, feature, threshold in zip(
            tree["left_children"], tree["split_indices"], tree["split_conditions"], strict=True
        )
        if left >= 0
    ]


def test_gpu_trees_agree_with_cpu_trees():
    cpu, cuda = (GBCRF(device=device, **SETTINGS).fit(X, Y) for device in ("cpu", "cuda"))
    assert abs(cpu.score(X_TEST, Y_TEST) - cuda.score(X_TEST, Y_TEST)) < 0.01
    np.testing.assert_allclose(
        cuda.history_["objective"], cpu.history_["objective"], rtol=1e-3, atol=0
    )
    gap = np.abs(flat(cpu.predict_marginals(X_TEST)) - flat(cuda.predict_marginals(X_TEST)))
    assert gap.mean() < MARGIN
    ours, theirs = splits(cpu), splits(cuda)
    assert len(set(ours) & set(theirs)) > 0.9 * len(set(ours))
    # They did grow elsewhere: sums in fixed point have other last bits.
    assert cpu.model_.node.raw != cuda.model_.node.raw


def test_gpu_gradients_grow_same_trees_as_host_gradients():
    import xgboost

    random = np.random.default_rng(0)
    X, gradient = random.normal(size=(2, 5000, 3)).astype(np.float32)
    curvature = np.abs(gradient) + np.float32(0.5)
    learner = XGBoostLearner(device="cuda")
    matrix = learner.training_matrix(X)
    grown = learner.grow(matrix, gradient, curvature, 0).raw()
    booster = xgboost.Booster(learner._booster_params(3, 0), [matrix])
    booster.boost(matrix, 0, grad=gradient, hess=curvature)
    assert grown == bytes(booster.save_raw("ubj"))
    assert grown != learner.grow(matrix, -gradient, curvature, 0).raw()


def test_device_cuda_equals_cuda_0(tmp_path):
    models = [GBCRF(device=device, **SETTINGS).fit(X, Y) for device in ("cuda", "cuda:0")]
    (values, members), (other_values, other_members) = (contents(crf, tmp_path) for crf in models)
    assert members == other_members
    assert values["history"] == other_values["history"]


def test_device_rejects_missing_ordinal():
    with pytest.raises(ValueError, match=r"device is 'cuda:99'.*99 is invalid.*--device cpu"):
        GBCRF(device="cuda:99").fit(X, Y)


@pytest.mark.parametrize("name", ON_TREES)
def test_gpu_training_writes_same_members(name, tmp_path):
    kind = ON_TREES[name]
    cpu, cuda = kind.fitted(), kind.fitted(device="cuda")
    (values, members), (other_values, other_members) = (
        contents(crf, tmp_path) for crf in (cpu, cuda)
    )
    assert set(members) == set(other_members)
    assert set(values) == set(other_values)
    np.testing.assert_allclose(
        cuda.history_["objective"], cpu.history_["objective"], rtol=OBJECTIVE, atol=OBJECTIVE
    )
    again, (X_own, _, more) = load(tmp_path / "m.crfx"), kind.data(1)
    more = {} if kind.ranks else more
    assert again.device == "cuda"
    for one, other in zip(again.predict(X_own, **more), cuda.predict(X_own, **more), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", [name for name in ON_TREES if name not in ROUNDED])
def test_gpu_training_resumes_to_the_same_model(name, tmp_path):
    kind = ON_TREES[name]
    X_own, y, more = kind.data(0)
    made = kind.make(device="cuda", **kind.longer)
    arguments = {"X": X_own, "relevance" if kind.ranks else "y": y, **more}
    if kind.base is not None:
        arguments["init_model"] = kind.base().fit(X_own, y, **more)
    whole = resumed(made, arguments, None, lambda progress: None)
    expected = contents(whole, tmp_path)

    def cut(progress):
        progress.save(tmp_path / "checkpoint.crfx")
        if progress.n_rounds == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        resumed(kind.make(device="cuda", **kind.longer), arguments, None, cut)
    kept = load(tmp_path / "checkpoint.crfx")
    finished = resumed(
        kind.make(device="cuda", **kind.longer), arguments, kept, lambda progress: None
    )
    assert contents(finished, tmp_path) == expected


def test_sampling_and_early_stopping_work_and_repeat(tmp_path):
    settings = {
        **SETTINGS,
        "n_estimators": 40,
        "subsample": 0.7,
        "colsample_bynode": 0.5,
        "early_stopping_rounds": 3,
        "device": "cuda",
    }
    one, other = (GBCRF(**settings).fit(X, Y, eval_set=(X_TEST, Y_TEST)) for _ in range(2))
    assert contents(one, tmp_path) == contents(other, tmp_path)
    assert 0 < one.n_rounds_ < 40
    losses = one.history_["eval_metric"]
    mean = one.log_likelihood(X_TEST, Y_TEST).sum() / len(flat(Y_TEST))
    np.testing.assert_allclose(min(losses), -mean, rtol=1e-4)


def test_warm_start_on_another_device():
    for first, then in (("cpu", "cuda"), ("cuda", "cpu")):
        start = GBCRF(device=first, **SETTINGS).fit(X, Y)
        crf = GBCRF(device=then, **SETTINGS).fit(X, Y, init_model=start)
        assert crf.n_rounds_ == 20
        assert crf.history_["objective"][:10] == start.history_["objective"]
        assert crf.history_["objective"][-1] < start.history_["objective"][-1]


def test_gpu_training_takes_eval_set_in_shards(tmp_path):
    shards = write_shards(tmp_path / "shards", X_TEST, Y_TEST, positions=100)
    assert len(shards) > 1
    crf = GBCRF(device="cuda", **SETTINGS)
    on_disk = crf.fit(X, Y, eval_set=(shards.X, shards.y)).history_["eval_metric"]
    in_memory = crf.fit(X, Y, eval_set=(X_TEST, Y_TEST)).history_["eval_metric"]
    np.testing.assert_allclose(on_disk, in_memory, rtol=1e-6)


def test_one_worker_of_a_cluster_trains():
    def work(workers):
        return GBCRF(device="cuda", **SETTINGS).fit(X, Y).history_["objective"]

    assert together(1, work)[0] == GBCRF(device="cuda", **SETTINGS).fit(X, Y).history_["objective"]


ELSEWHERE = """
import sys
import numpy as np
from crfx import load
from crfx.testing import make_task

crf = load(sys.argv[1])
X, y = make_task(1, n_instances=200)
np.save(sys.argv[2], np.concatenate(crf.predict_marginals(X)))
assert "xgboost" not in sys.modules
try:
    crf.fit(X, y, init_model=sys.argv[1])
except ValueError as error:
    print(error)
print(crf.set_params(device="cpu").fit(X, y, init_model=sys.argv[1]).n_rounds_)
"""


def test_a_model_loads_and_predicts_without_a_gpu(tmp_path):
    crf = GBCRF(device="cuda", **SETTINGS).fit(X, Y)
    crf.save(tmp_path / "m.crfx")
    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE, tmp_path / "m.crfx", tmp_path / "p.npy"],
        capture_output=True,
        text=True,
        check=False,
        env={"CUDA_VISIBLE_DEVICES": "-1", "PYTHONPATH": ":".join(filter(None, sys.path))},
    )
    assert not done.returncode, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("device is 'cuda', but XGBoost finds no CUDA device")
    assert lines[1:] == ["20"]
    np.testing.assert_array_equal(np.load(tmp_path / "p.npy"), flat(crf.predict_marginals(X_TEST)))


def test_the_command_trains_on_the_gpu(tmp_path):
    lines = [
        "".join(f"{row[0] > 1}\t{label}\n" for row, label in zip(x, labels, strict=True))
        for x, labels in zip(X, Y, strict=True)
    ]
    (tmp_path / "train.conll").write_text("\n".join(lines), encoding="utf-8")
    command = [sys.executable, "-m", "crfx", "train", "--model", "gbcrf", "--device", "cuda:0"]
    command += ["--train", tmp_path / "train.conll", "-o", tmp_path / "m.crfx", "-q"]
    done = subprocess.run(
        [*command, "--set", "n_estimators=3"], capture_output=True, text=True, check=False
    )
    assert not done.returncode, done.stderr
    assert load(tmp_path / "m.crfx").device == "cuda:0"
