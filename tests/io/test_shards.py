"""Shards give back what was written, from files that are looked at before they are read."""

import pickle
import sys

import numpy as np
import pandas
import pytest
from scipy import sparse

import crfx
from crfx.io import arrays, npz, parquet
from crfx.io.arrays import NpzShard

RANDOM = np.random.default_rng(0)
LENGTHS = [3, 0, 4, 2, 1, 5]
FILLED = [length for length in LENGTHS if length]
X = RANDOM.normal(size=(sum(LENGTHS), 3)).astype(np.float32)
PARENTS = np.concatenate([np.arange(length) - 1 for length in LENGTHS])
LABELS = {
    "text": ["", "é", "B-long label"],
    "whole numbers": [-1, 0, 2**40],
    "fractions": [0.5, -1.5, 3.0],
    "truth values": [True, False],
}


def labels(kind, unknown=()):
    values = LABELS[kind]
    result = [values[row % len(values)] for row in range(len(X))]
    for row in unknown:
        result[row] = None
    return result


@pytest.mark.parametrize("format", ["npz", "parquet"])
@pytest.mark.parametrize("kind", LABELS)
def test_load_returns_labels_as_written(tmp_path, format, kind):
    for number, unknown in enumerate([(), (0, 7), range(7)]):  # none, some, a shard
        y, folder = labels(kind, unknown), tmp_path / str(number)
        shards = crfx.write_shards(folder, X, y, lengths=FILLED, positions=7, format=format)
        loaded = shards.load()["y"]
        assert len(shards) > 2
        assert loaded == y
        assert [type(label) for label in loaded] == [type(label) for label in y]


@pytest.mark.parametrize(
    ("matrix", "positions", "format"),
    [
        (X, 1, "npz"),
        (X.astype(np.float64), 4, "npz"),
        (np.asfortranarray(X), 100, "npz"),
        (X, 4, "parquet"),
    ],
)
def test_load_returns_everything_written(tmp_path, matrix, positions, format):
    lengths = LENGTHS if format == "npz" else FILLED
    structure = {
        "lengths": lengths,
        "parents": PARENTS,
        "edge_types": np.arange(len(X)) % 2,
        "sample_weight": np.arange(len(lengths)) / 2,
    }
    folder, more = tmp_path / "new" / "folder", {"positions": positions, "format": format}
    shards = crfx.write_shards(folder, matrix, labels("text"), **structure, **more)
    loaded = shards.load()
    if format == "npz":
        assert loaded["X"].dtype == matrix.dtype
    else:
        assert list(loaded["X"].columns) == ["f0", "f1", "f2"]
    assert (np.asarray(loaded["X"]) == matrix).all()
    for name, values in structure.items():
        assert loaded[name].tolist() == np.asarray(values).tolist()
    assert list(loaded) == ["X", "y", *structure]
    assert (shards.n_rows, shards.n_instances) == (len(X), len(lengths))
    assert all(rows.shape[0] <= max(positions, 5) for _, rows in shards.matrix().chunks())
    plain = crfx.write_shards(tmp_path, X, lengths=FILLED, format=format)
    assert "y" not in plain.load()


@pytest.mark.parametrize("kind", LABELS)
def test_empty_shards_fit_any_kind(tmp_path, kind):
    """`numpy.savez` stores empty lists as floats."""
    rows, types = slice(0, 3), np.array([0, 1, 0])
    full = {"X": X[rows], "y": labels(kind)[rows], "lengths": [3]}
    np.savez(tmp_path / "1.npz", **full, parents=[-1, 0, 1], edge_types=types, sample_weight=[2])
    nothing = {name: [] for name in ("y", "lengths", "parents", "edge_types", "sample_weight")}
    for number in (0, 2):
        np.savez(tmp_path / f"{number}.npz", X=X[:0], **nothing)
    np.savez(tmp_path / "3.npz", X=X[:0], **nothing, unknown=[])
    data = crfx.Shards(tmp_path).load()
    assert (data["y"], data["lengths"].tolist()) == (labels(kind)[rows], [3])
    assert (data["parents"].tolist(), data["edge_types"].tolist()) == ([-1, 0, 1], [0, 1, 0])
    assert data["parents"].dtype == data["edge_types"].dtype == np.int64


def test_empty_or_unlabelled_shards_fit_any_labels(tmp_path):
    sentences(0, size=1.0).to_parquet(tmp_path / "0.parquet")
    empty = sentences(1, size=1.0)[:0].astype({"label": float})
    empty.to_parquet(tmp_path / "1.parquet")
    assert crfx.Shards(tmp_path / "*.parquet").load()["y"] == ["A"] * 3
    for number, (y, unknown) in enumerate([("AB", [False, True]), ([0, 0], [True, True])]):
        members = {"X": X[:2], "y": list(y), "unknown": np.array(unknown), "lengths": [2]}
        np.savez(tmp_path / f"{number}.npz", **members)
    assert crfx.Shards(tmp_path / "*.npz").labels() == ["A", None, None, None]


def test_categories_of_all_shards_are_numbered_alike(tmp_path):
    frames = [
        pandas.DataFrame({"instance": number, "label": "A", "colour": list(letters), "size": 1.5})
        for number, letters in enumerate(("ab", "cb", "d"))
    ]
    for number, frame in enumerate(frames):
        frame.astype({"colour": "category"}).to_parquet(tmp_path / f"{number}.parquet")
    shards = crfx.Shards(tmp_path)
    assert list(shards.matrix().no_rows["colour"].cat.categories) == list("abcd")
    codes = [chunk["colour"].cat.codes.tolist() for _, chunk in shards.matrix().chunks()]
    assert codes == [[0, 1], [2, 1], [3]]
    assert shards.load()["X"]["colour"].tolist() == list("abcbd")


def sentences(number, **columns):
    """Three rows of two instances, for one of several Parquet files."""
    return pandas.DataFrame({"instance": [number, number, number + 0.5], "label": "A", **columns})


def test_parquet_index_is_not_a_feature(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    plain = sentences(0, size=[0.5, 1.5, 2.5])
    indices = {
        "left over": plain.set_axis([3, 5, 7]),
        "named": plain.set_axis([3, 5, 7]).rename_axis("place"),
        "of two levels": plain.set_index([[1, 2, 3], [4, 5, 6]]),
        "the instances": plain.set_index("instance"),
        "the labels": plain.set_index("label"),
        "of Dask": plain.rename_axis("__null_dask_index__"),
        "of Dask, without notes": plain.assign(__null_dask_index__=[0, 1, 2]),
        "without notes": plain.assign(__index_level_0__=[3, 5, 7]),
    }
    for name, frame in indices.items():
        frame.to_parquet(tmp_path / f"{name}.parquet")
        data = crfx.Shards(tmp_path / f"{name}.parquet").load()
        assert list(data["X"].columns) == ["size"], name
        assert (data["lengths"].tolist(), data["y"]) == ([2, 1], ["A"] * 3), name
    # Notes that are not those of pandas say nothing.
    table, path = pyarrow.Table.from_pandas(plain, preserve_index=False), tmp_path / "n.parquet"
    for notes in ("{}", "[]", '{"columns": 3, "index_columns": {"size": 1}}', '{"columns": ["a"]}'):
        pyarrow.parquet.write_table(table.replace_schema_metadata({"pandas": notes}), path)
        assert list(crfx.Shards(path).load()["X"].columns) == ["size"]


def test_shards_reject_columns_of_different_kinds(tmp_path):
    """tests/bad_inputs/listed/shards.py covers numbers in the first shard."""
    flags, letters = [True, False, True], pandas.Categorical(["a", "b", "a"])
    for one, other, message in (
        (flags, letters, "holds categories, and truth values in"),
        (letters, [1.0, 2.0, 1.0], "holds numbers, and categories in"),
    ):
        sentences(0, c=one).to_parquet(tmp_path / "0.parquet")
        sentences(1, c=other).to_parquet(tmp_path / "1.parquet")
        with pytest.raises(ValueError, match=rf"1\.parquet: column 'c' {message} .*0\.parquet"):
            crfx.Shards(tmp_path)
    # Missing values in one shard change no kind.
    whole = [sentences(number, flag=True, count=3, letter=letters) for number in range(2)]
    whole[1] = whole[1].astype({"flag": "boolean", "count": "Int64"})
    whole[1].loc[1, ["flag", "count"]] = pandas.NA
    for number, frame in enumerate(whole):
        frame.to_parquet(tmp_path / f"{number}.parquet")
    shards = crfx.Shards(tmp_path)
    loaded = shards.load()["X"]
    is_missing = [*[False] * 4, True, False]
    assert loaded["flag"].isna().tolist() == loaded["count"].isna().tolist() == is_missing
    assert loaded["flag"].dtype == shards.matrix().no_rows["flag"].dtype
    assert loaded.dropna()[["flag", "count"]].eq([True, 3]).all(axis=None)


def test_columns_may_have_other_names(tmp_path):
    frame = pandas.DataFrame({"sentence": ["a", "a", "b"], "tag": ["X", None, "Y"], "label": 1.0})
    frame.to_parquet(tmp_path / "0.parquet")
    named = {"instance": "sentence", "label": "tag"}
    shards = crfx.Shards(tmp_path / "0.parquet", **named, parent="head")
    data = crfx.Shards(tmp_path / "0.parquet", **named, weight="label").load()
    assert shards.lengths.tolist() == [2, 1]
    assert shards.load()["y"] == ["X", None, "Y"]
    assert data["sample_weight"].tolist() == [1.0, 1.0]
    plain = frame.drop(columns="tag")
    plain.to_parquet(tmp_path / "0.parquet")
    with pytest.raises(ValueError, match="no column 'tags', but 'label', which would be a feature"):
        crfx.Shards(tmp_path, instance="sentence", label="tags")
    plain.rename(columns={"label": "size"}).to_parquet(tmp_path / "0.parquet")
    assert crfx.Shards(tmp_path, instance="sentence", label="tags").n_rows == 3  # to be tagged


@pytest.fixture
def shards(tmp_path):
    return crfx.write_shards(tmp_path, X, labels("text"), lengths=LENGTHS, positions=4)


def test_files_are_found_sliced_and_pickled(shards, tmp_path, monkeypatch):
    names = [path.name for path in shards.paths]
    assert names == ["00000.npz", "00001.npz", "00002.npz", "00003.npz"]
    (tmp_path / "notes.txt").write_text("not a shard")
    for source in (tmp_path, f"{tmp_path}/*.npz", f"{tmp_path}/0000?.npz"):
        assert crfx.Shards(source).paths == shards.paths
    backwards = crfx.Shards(shards.paths[::-1])
    assert backwards.lengths.tolist() == [5, 2, 1, 4, 3, 0]
    with pytest.raises(ValueError, match=r"has shards already, 00000\.npz for one"):
        crfx.write_shards(tmp_path, X, lengths=LENGTHS)
    assert len(list(tmp_path.iterdir())) == 5
    some = shards[1:3]
    assert some.paths == shards.paths[1:3]
    assert some.load()["y"] == shards.load()["y"][3:10]
    with pytest.raises(TypeError, match="by a slice"):
        shards[0]
    again = pickle.loads(pickle.dumps(shards))
    assert again.load()["y"] == shards.load()["y"]
    assert repr(again.X) == "<Shards: 4 files, 6 instances, 15 rows, 3 features>.X"
    read = []  # at first only headers and lengths

    def read_array(stream, size):
        read.append(stream.name)
        return np.zeros(0)

    monkeypatch.setattr(npz, "read_array", read_array)
    with pytest.raises(ValueError, match="lengths add up to 0"):
        NpzShard(shards.paths[0])
    assert read == ["lengths.npy"]


@pytest.mark.parametrize(
    ("format", "error"), [("npz", OSError(28, "no space")), ("parquet", KeyboardInterrupt())]
)
def test_write_shards_removes_what_it_wrote_before_an_error(tmp_path, monkeypatch, format, error):
    """A part of a corpus would read as a smaller one."""
    module = {"npz": arrays, "parquet": parquet}[format]
    write = module.write_shard

    def fails(path, *args):
        if path.stem == "00002":
            raise error
        write(path, *args)

    monkeypatch.setattr(module, "write_shard", fails)
    (tmp_path / "notes.txt").write_text("not a shard")
    arguments = {"lengths": FILLED, "format": format}
    with pytest.raises(type(error)):
        crfx.write_shards(tmp_path, X, **arguments, positions=4)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    monkeypatch.undo()
    assert crfx.write_shards(tmp_path, X, **arguments, positions=4).n_rows == len(X)


def test_load_finds_damage_and_gives_sparse_matrices_back(tmp_path):
    wide = np.tile(X, 500)  # more than is looked at with the header
    shards = crfx.write_shards(tmp_path / "dense", wide, lengths=LENGTHS, positions=4)
    raw = bytearray(shards.paths[1].read_bytes())
    raw[len(raw) // 2] ^= 255
    shards.paths[1].write_bytes(raw)
    again = crfx.Shards(shards.paths)
    with pytest.raises(ValueError, match=r"00001\.npz: .*CRC"):
        again.load()
    matrix = sparse.csr_matrix(X * (X > 0))
    loaded = crfx.write_shards(tmp_path, matrix, lengths=LENGTHS, positions=4).load()["X"]
    assert sparse.issparse(loaded)
    assert (loaded != matrix).nnz == 0
    assert loaded.nnz == matrix.nnz


@pytest.mark.parametrize("order", "<>")
def test_labels_reject_text_beyond_unicode(tmp_path, order):
    y = np.array([65, 0x110000], dtype=f"{order}u4").view(f"{order}U1")
    np.savez(tmp_path / "a.npz", X=np.zeros((2, 1)), y=y, lengths=[2])
    with pytest.raises(ValueError, match=r"a\.npz: y: an array holds text of signs"):
        crfx.Shards(tmp_path).labels()


@pytest.mark.parametrize("missing", ["pandas", "pyarrow"])
def test_shards_name_a_missing_library(tmp_path, monkeypatch, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    (tmp_path / "a.parquet").write_bytes(b"")
    with pytest.raises(ImportError, match=r"a\.parquet: .*crfx\[parquet\]"):
        crfx.Shards(tmp_path)
    with pytest.raises(ImportError, match=r"00000\.parquet: .*crfx\[parquet\]"):
        crfx.write_shards(tmp_path / "new", X, lengths=[len(X)], format="parquet")
    assert list((tmp_path / "new").iterdir()) == []
