"""The argument ``device`` where it cannot be used: an error, before data are read."""

import subprocess
import sys
import zipfile

import numpy as np
import pytest
import xgboost
from sklearn.tree import DecisionTreeRegressor

from crfx import GBCRF, RankingCRF, load, write_shards
from crfx.distributed.collective import together
from crfx.testing import make_task

X, Y = make_task(n_instances=20)
REMEDY = r'to train on the CPU: set_params\(device="cpu"\), or --device cpu$'


class Unread:
    """Data that must not be touched."""

    def __getattr__(self, name):
        raise AssertionError(f"it was read: {name}")


def without_gpu(code, *arguments):
    """Return what a program prints in a process without a visible GPU."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={"CUDA_VISIBLE_DEVICES": "-1", "PYTHONPATH": ":".join(filter(None, sys.path))},
    )
    assert not done.returncode, done.stderr
    return done.stdout.splitlines()


def test_device_cuda_without_cuda_build_raises_first(monkeypatch):
    monkeypatch.setattr(xgboost, "build_info", lambda: {"USE_CUDA": False})
    message = rf'device is \'cuda\'.*build_info\(\)\["USE_CUDA"\] is False.*xgboost-cpu.*{REMEDY}'
    for crf in (GBCRF(device="cuda"), RankingCRF("trees", device="cuda")):
        with pytest.raises(ValueError, match=message):
            crf.fit(Unread(), Unread())


def test_device_error_keeps_message_of_xgboost(monkeypatch):
    def booster(settings, cache):
        assert settings["fail_on_invalid_gpu_id"]  # else XGBoost takes another GPU and warns
        raise xgboost.core.XGBoostError(
            "[10:00:00] /xgboost/src/context.cc:57: Check failed: device.ordinal < n_visible: "
            "Only 2 GPUs are visible, ordinal 7 is invalid.\nStack trace:\n  [bt] (0)"
        )

    monkeypatch.setattr(xgboost, "build_info", lambda: {"USE_CUDA": True})
    monkeypatch.setattr(xgboost, "Booster", booster)
    message = f"device is 'cuda:7', .*Only 2 GPUs are visible, ordinal 7 is invalid.*{REMEDY}"
    with pytest.raises(ValueError, match=message):
        GBCRF(device="cuda:7").fit(Unread(), Unread())


def test_fit_rejects_devices_before_data_are_read(not_refused):
    names = ("gpu", "cuda:", "cuda:-1", "cuda:x", "CUDA", " cuda", 0, None)
    other = r"device is .*: choose 'cpu', 'cuda', or 'cuda:N'"
    beside = "it is an argument of scorer='trees'"
    cases = {f"GBCRF, {name!r}": (GBCRF(device=name), other) for name in names} | {
        f"RankingCRF, {name!r}": (RankingCRF("trees", device=name), other) for name in names[:-1]
    }
    cases |= {
        "base_learner": (
            GBCRF(device="cuda", base_learner=DecisionTreeRegressor()),
            "a base_learner takes the place of XGBoost's trees",
        ),
        "tree_params": (
            RankingCRF("trees", tree_params={"device": "cuda:1"}),
            "tree_params holds device: pass device='cuda:1' to RankingCRF instead",
        ),
        "linear, cuda": (
            RankingCRF("linear", device="cuda"),
            f"device is 'cuda', but scorer is 'linear': {beside}",
        ),
        "linear, cpu": (RankingCRF("linear", device="cpu"), beside),
    }
    assert not_refused(lambda crf: crf.fit(Unread(), Unread()), cases) == {}


def test_fit_on_a_gpu_rejects_shards(tmp_path, make_queries):
    shards = write_shards(tmp_path / "shards", X, Y)
    with pytest.raises(ValueError, match=r"device='cuda' needs all features in memory, and these"):
        GBCRF(device="cuda").fit(shards.X, shards.y)
    X_queries, relevance, group = make_queries()
    queries = write_shards(tmp_path / "queries", X_queries, relevance, lengths=group)
    with pytest.raises(ValueError, match=r"device='cuda:1' needs all features in memory"):
        RankingCRF("trees", device="cuda:1").fit(queries.X, queries.y)


def test_fit_on_a_gpu_rejects_several_workers():
    def work(workers):
        GBCRF(device="cuda").fit(X[workers.rank :: 2], Y[workers.rank :: 2])

    with pytest.raises(ValueError, match="but 2 workers train together: trees grow on one GPU"):
        together(2, work)


def test_fit_on_the_cpu_does_not_look_for_a_gpu(monkeypatch):
    monkeypatch.setattr("crfx.estimators.support.check_cuda", Unread())
    crf = GBCRF(2, device="cpu", n_jobs=1, random_state=0).fit(X, Y)
    usual = GBCRF(2, n_jobs=1, random_state=0).fit(X, Y)
    assert crf.history_["objective"] == usual.history_["objective"]


LOADED = """
import sys
import numpy as np
from crfx import load
from crfx.testing import make_task

crf = load(sys.argv[1])
assert "xgboost" not in sys.modules
X, y = make_task(n_instances=20)
np.save(sys.argv[2], np.concatenate(crf.predict_marginals(X)))
assert "xgboost" not in sys.modules
try:
    crf.fit(X, y, init_model=sys.argv[1])
except ValueError as error:
    print(error)
print(crf.set_params(device="cpu").fit(X, y, init_model=sys.argv[1]).n_rounds_)
"""


def test_gpu_model_loads_without_gpu(tmp_path):
    """Here the trees are the CPU's, which the file does not know; test_cuda.py has a GPU's."""
    crf = GBCRF(3, n_jobs=1, random_state=0).fit(X, Y).set_params(device="cuda:1")
    crf.save(tmp_path / "m.crfx")
    assert load(tmp_path / "m.crfx").device == "cuda:1"
    message, n_rounds = without_gpu(LOADED, tmp_path / "m.crfx", tmp_path / "p.npy")
    expected = np.concatenate(crf.predict_marginals(X))
    np.testing.assert_array_equal(np.load(tmp_path / "p.npy"), expected)
    assert message.startswith("device is 'cuda:1', but ")
    assert message.endswith('set_params(device="cpu"), or --device cpu')
    if xgboost.build_info()["USE_CUDA"]:
        assert "XGBoost finds no CUDA device: check that nvidia-smi lists a GPU" in message
    assert n_rounds == "6"


@pytest.mark.parametrize(
    ("written", "read", "kept"),
    [("cpu", "cpu", {}), ("cuda", "cuda", {"gamma": 0.5}), ("gpu:1", "cuda:1", {})],
)
def test_load_reads_early_files_with_device_in_tree_params(changed, tmp_path, written, read, kept):
    def early(values):
        assert values["arguments"].pop("device") == "cpu"
        values["arguments"]["tree_params"] = {"device": written, **kept}

    path = tmp_path / "m.crfx"
    GBCRF(1, n_jobs=1, random_state=0).fit(X, Y).save(path)
    changed(path, early)
    crf = load(path)
    assert (crf.device, crf.tree_params) == (read, kept or None)
    assert crf.predict(X[:1])[0].shape == (len(X[0]),)
    crf.save(path)
    assert load(path).get_params() == crf.get_params()


def test_load_reads_early_rankings_with_device_in_tree_params(changed, tmp_path, make_queries):
    def early(values):
        assert values["arguments"].pop("device") is None
        values["arguments"]["tree_params"] = {"device": "cuda:0"}

    X_queries, relevance, group = make_queries()
    path = tmp_path / "m.crfx"
    crf = RankingCRF("trees", n_estimators=1, random_state=0).fit(X_queries, relevance, group=group)
    crf.save(path)
    changed(path, early)
    again = load(path)
    assert (again.device, again.tree_params) == ("cuda:0", None)
    np.testing.assert_array_equal(again.predict(X_queries), crf.predict(X_queries))


def test_load_rejects_other_devices(changed, tmp_path):
    path = tmp_path / "m.crfx"
    GBCRF(1, n_jobs=1).fit(X, Y).save(path)
    changed(path, lambda values: values["arguments"].update(device="tpu"))
    with pytest.raises(ValueError, match="is not a model file of crfx: device is 'tpu'"):
        load(path)


def test_save_writes_same_members_for_any_device(tmp_path):
    crf = GBCRF(2, n_jobs=1).fit(X, Y)
    names = []
    for device in ("cpu", "cuda"):
        crf.set_params(device=device).save(tmp_path / "m.crfx")
        with zipfile.ZipFile(tmp_path / "m.crfx") as archive:
            names.append(archive.namelist())
    assert names[0] == names[1]
