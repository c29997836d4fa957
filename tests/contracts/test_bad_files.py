"""Files of every kind of estimator, damaged in every part: refused, or the same as before.

Checksums are right, as one who means harm would write them.
"""

import copy
import io
import json
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

from crfx import LinearCRF, load
from crfx.potentials import ubjson
from tests.saved_models.kinds import KINDS

SAVED = Path(__file__).parents[1] / "saved_models"
ODD = (None, "x", -1, 0, 1, 10**30, 1e300, 0.5, True, [], {}, [1], {"a": 1}, "linear", 2**40)
CHANGES = 40
"""Of the manifest of each kind, drawn from all of them."""
FLIPS = 60
REFUSED = r"bad\.crfx is not a model file of crfx: [^\n]+$"
MOST_SECONDS = 5.0
"""To refuse a file of some kilobytes, on a busy machine."""


def members(name):
    with zipfile.ZipFile(SAVED / f"{name}-1.crfx") as archive:
        return {member: archive.read(member) for member in archive.namelist()}


def write(path, parts):
    with zipfile.ZipFile(path, "w") as archive:
        for member, raw in parts.items():
            archive.writestr(member, raw)


def answer(name, crf):
    X, _, more = KINDS[name].data(1)
    return crf.predict(X) if KINDS[name].ranks else crf.predict_marginals(X, **more)


def outcome(name, path):
    """Return whether a file is answered or refused, in one line."""
    try:
        answer(name, load(path))
    except ValueError as error:
        assert "\n" not in str(error)  # noqa: PT017
        return "refused"
    return "answered"


def places(value, path=()):
    """Return the places of values in a manifest; the first two entries of a list stand for all."""
    if path:
        yield path
    if isinstance(value, dict | list):
        keys = value if isinstance(value, dict) else range(min(len(value), 2))
        for key in keys:
            yield from places(value[key], (*path, key))


def changed(values, path, odd):
    values = copy.deepcopy(values)
    at = values
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = odd
    return values


@pytest.mark.parametrize("name", KINDS)
def test_odd_values_in_manifests(name, tmp_path):
    """An odd value anywhere: refused in one line, or the model answers, or says why it cannot."""
    parts, random, bad = members(name), np.random.default_rng(0), tmp_path / "bad.crfx"
    values = json.loads(parts["model.json"])
    known = list(places(values))
    outcomes = set()
    for _ in range(CHANGES):
        path, odd = known[random.integers(len(known))], ODD[random.integers(len(ODD))]
        write(bad, parts | {"model.json": json.dumps(changed(values, path, odd))})
        start = time.perf_counter()
        outcomes.add(outcome(name, bad))
        assert time.perf_counter() - start < MOST_SECONDS, (path, odd)
    assert outcomes == {"answered", "refused"}


def first(value):
    def change(array):
        array = array.copy()
        array.reshape(-1)[:1] = value
        return array

    return change


SHAPES = {
    "an axis more": lambda a: a[None],
    "empty": lambda a: a[:0] if len(a) else np.zeros(1, a.dtype),
    "no axis": lambda a: np.zeros((), a.dtype),
    "float16": lambda a: a.astype(np.float16),
    "complex": lambda a: a.astype(complex),
    "text": lambda a: a.astype(str),
    "big-endian int8": lambda a: np.zeros(a.shape, "i1"),
}
NUMBERS = {"nan": first(np.nan), "inf": first(np.inf), "-inf": first(-np.inf)}
UNREAD = ("node.thresholds", "last_values")
"""Thresholds of leaves are not looked at; of the last values of L-BFGS there may be any number."""


@pytest.mark.parametrize("name", KINDS)
def test_arrays_of_another_shape_or_type_or_not_finite_raise(name, tmp_path):
    parts, bad = members(name), tmp_path / "bad.crfx"
    for member in [member for member in parts if member.endswith(".npy")]:
        array = np.load(io.BytesIO(parts[member]))
        damage = SHAPES | (NUMBERS if array.dtype.kind == "f" else {})
        for what, change in damage.items():
            if array.size == 0 and what != "an axis more":
                continue
            if any(unread in member for unread in UNREAD) and what in (*NUMBERS, "empty"):
                continue
            if member.endswith("outputs.npy") and what == "empty":
                continue  # where there are all pairs, they need not be listed
            buffer = io.BytesIO()
            with np.errstate(over="ignore", invalid="ignore"):
                np.save(buffer, change(array))
            write(bad, parts | {member: buffer.getvalue()})
            print(member, what)  # shown where it fails
            with pytest.raises(ValueError, match=REFUSED):
                load(bad)


def flipped(raw, random, values):
    """Return bytes with one to three of them changed."""
    raw = bytearray(raw)
    for _ in range(random.integers(1, 4)):
        raw[random.integers(len(raw))] = random.choice(values)
    return bytes(raw)


@pytest.mark.parametrize("name", KINDS)
def test_bytes_changed_in_files_and_trees(name, tmp_path):
    """Bytes change in the file or in XGBoost's trees; what loads predicts without a crash."""
    whole, random = (SAVED / f"{name}-1.crfx").read_bytes(), np.random.default_rng(0)
    parts, bad = members(name), tmp_path / "bad.crfx"
    blobs = [member for member in parts if member.endswith(".ubj")]
    for _ in range(FLIPS):
        bad.write_bytes(flipped(whole, random, range(256)))
        outcome(name, bad)
        if blobs:
            member = blobs[random.integers(len(blobs))]
            raw = flipped(parts[member], random, [0, 1, 127, 128, 255, ord("L")])
            write(bad, parts | {member: raw})
            outcome(name, bad)


@pytest.mark.parametrize("name", ["linear-independent", "ranking-linear"])
def test_files_cut_off_anywhere_raise(name, tmp_path):
    """The smallest files; `tests/io/test_model_file.py` has the zip itself."""
    whole, bad = (SAVED / f"{name}-1.crfx").read_bytes(), tmp_path / "bad.crfx"
    for length in range(len(whole)):
        bad.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=REFUSED):
            load(bad)


@pytest.mark.parametrize(
    ("name", "depth"), [("gbcrf-on-linear", 101), ("ranking-trees-on-linear", 900)]
)
def test_base_models_nested_too_deeply_raise(name, tmp_path, depth):
    """A base of a base of a base: a file of some kilobytes must not exhaust the stack."""
    parts, bad = members(name), tmp_path / "bad.crfx"
    values = json.loads(parts["model.json"])
    entries = {key: entry for key, entry in values["model"].items() if key != "base"}
    parts = {key: raw for key, raw in parts.items() if not key.startswith("base.")}
    if "functions" in entries:
        entries |= {"functions": "trees", "n_rounds": 0, "edges": None, "tables": {}}
    inner = None
    for _ in range(depth):
        inner = entries if inner is None else entries | {"base": inner}
    values["model"]["base"] = inner
    write(bad, parts | {"model.json": json.dumps(values)})
    with pytest.raises(ValueError, match=r"too many models stand below one another|recursion"):
        load(bad)


def bushy(tree, n_splits, sets):
    """The tree with so many splits, each of which asks column 1 for one of the sets in turn."""
    size = 2 * n_splits + 1
    inner, node = np.arange(size) < n_splits, np.arange(size)
    categories = [sets[k % len(sets)] for k in range(n_splits)]
    sizes = np.array([len(chosen) for chosen in categories])
    values = {
        "left_children": np.where(inner, 2 * node + 1, -1),
        "right_children": np.where(inner, 2 * node + 2, -1),
        "parents": np.where(node, (node - 1) // 2, 2**31 - 1),
        "split_indices": np.where(inner, 1, 0),
        "split_type": inner,
        "categories_nodes": node[:n_splits],
        "categories_segments": np.cumsum(sizes) - sizes,
        "categories_sizes": sizes,
        "categories": np.concatenate(categories),
    }
    for name in ("base_weights", "loss_changes", "split_conditions", "sum_hessian", "default_left"):
        values[name] = np.zeros(size)
    members = {name: np.asarray(new).astype(tree[name].dtype) for name, new in values.items()}
    return tree | members | {"tree_param": tree["tree_param"] | {"num_nodes": str(size)}}


def with_splits(tmp_path, n_splits, sets, change=None):
    parts = members("gbcrf-categories")
    model = ubjson.decode(parts["node.ubj"])
    trees = model["learner"]["gradient_booster"]["model"]["trees"]
    trees[0] = bushy(trees[0], n_splits, sets)
    if change is not None:
        change(trees[0])
    write(tmp_path / "bad.crfx", parts | {"node.ubj": ubjson.encode(model)})
    return tmp_path / "bad.crfx"


def test_splits_by_known_categories(tmp_path):
    """The companion of the next two: what they start from is loaded, and answers."""
    crf = load(with_splits(tmp_path, 400, [[0], [1, 3], [0, 1, 2]]))
    assert np.isfinite(np.concatenate(answer("gbcrf-categories", crf))).all()


def test_splits_by_unknown_categories_raise(tmp_path):
    """Each would take two megabytes at the first prediction, for a few bytes of the file."""
    with pytest.raises(ValueError, match=r"category 16777215 of feature 1, which has 4$"):
        load(with_splits(tmp_path, 400, [[2**24 - 1]]))
    with pytest.raises(ValueError, match=r"category 4 of feature 1, which has 4$"):
        load(with_splits(tmp_path, 400, [[0], [1, 4]]))


def test_splits_that_share_their_categories_raise(tmp_path):
    """Copied for every split, they would take splits times categories."""

    def share(tree):
        tree["categories_segments"] *= 0
        tree["categories_sizes"] = tree["categories_sizes"] * 0 + len(tree["categories"])

    with pytest.raises(ValueError, match="overlap, or some belong to no node"):
        load(with_splits(tmp_path, 8000, [[0]], share))


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([1, "1", "x"], "mix text and numbers"),
        (["1", "1", "x"], "there twice"),
        ([1, 1.0, 2], "there twice"),
        ([0, False, 2], "there twice"),
        (["b", "a", "c"], "not in order"),
        (["a", "b"], "not as many as its scores"),
        (["a", "b", None], "no text and no numbers"),
        (["a", "b", ["c"]], "no text and no numbers"),
        ("abc", "where a list belongs"),
        ({"a": 1}, "where a list belongs"),
    ],
)
def test_labels_of_no_training_raise(tmp_path, labels, message):
    parts, bad = members("linear-independent"), tmp_path / "bad.crfx"
    values = json.loads(parts["model.json"]) | {"labels": labels}
    write(bad, parts | {"model.json": json.dumps(values)})
    with pytest.raises(ValueError, match=message):
        load(bad)


@pytest.mark.parametrize(
    "labels",
    [
        ["a", "b", "c"],
        ["", " ", "\n"],
        ["a", "a\0", "a\0\0"],
        ["ä", "日本", "\U0001f600"],
        ["\ud800", "\ud801", "\udfff"],
        [1, 2, 3],
        [-(2**63), -1, 2**63],
        [2**70, 2**80, 2**90],
        [0.1, 0.5, 2.0],
        [-1, 0.5, 2],
        [False, 0.5, True],
        [False, True, 2],
    ],
    ids=repr,
)
def test_load_returns_labels_as_written(tmp_path, labels):
    """Through fit, file and prediction: the same values of the same types."""
    X = [np.eye(3, dtype=np.float32)]
    crf = LinearCRF(l2=0.01).fit(X, [sorted(labels)])
    crf.save(tmp_path / "model.crfx")
    loaded = load(tmp_path / "model.crfx")
    for model in (crf, loaded):
        predicted = model.predict(X)[0].tolist()
        assert predicted == sorted(labels)
        assert [type(label) for label in predicted] == [type(label) for label in sorted(labels)]


def test_labels_that_no_file_can_hold_raise(tmp_path):
    for labels in ([(1, 2), (3, 4)], [b"a", b"b"]):
        crf = LinearCRF(max_iter=1).fit([np.eye(2, dtype=np.float32)], [labels])
        with pytest.raises(ValueError, match="a model can be saved if its labels are"):
            crf.save(tmp_path / "model.crfx")
        assert not (tmp_path / "model.crfx").exists()
