"""Rare names left out, and names that are hashed: what a model then knows, keeps and refuses."""

import pickle

import numpy as np
import pytest

import crfx
from crfx import GBCRF, LinearCRF, TreeCRF
from crfx.features import HashedVocabulary, Template, Vocabulary

SENTENCES = [["the", "cat", "sat"], ["the", "dog"], [], ["a", "cat"]] * 3
X = [[{"w": word, "end": word[-1]} for word in words] for words in SENTENCES]
Y = [["D" if word in ("the", "a") else "V" if word == "sat" else "N" for word in words]
     for words in SENTENCES]  # fmt: skip
RARE = [*X, [{"w": "once"}, {"w": "twice"}, {"w": "twice"}]]
Y_RARE = [*Y, ["N", "N", "V"]]


def test_rare_names_are_left_out_unless_the_model_knows_them():
    crf = LinearCRF(min_count=2).fit(RARE, Y_RARE)
    names = set(crf.feature_names_in_)
    assert "w:once" not in names
    assert {"w:twice", "w:the"} <= names
    assert crf.n_features_in_ == len(names)
    kept = [[{k: v for k, v in at.items() if v != "once"} for at in each] for each in RARE]
    same = LinearCRF().fit(kept, Y_RARE)
    assert same.history_["objective"] == crf.history_["objective"]
    assert [p.tolist() for p in same.predict(RARE)] == [p.tolist() for p in crf.predict(RARE)]
    new = [[{"w": "new"}, {"w": "newer"}, {"w": "newer"}]]
    first, more = LinearCRF().fit(RARE, Y_RARE), LinearCRF(min_count=2, max_iter=2)
    more.fit(new, [["N", "V", "V"]], init_model=first)
    assert more.feature_names_in_.tolist() == [*first.feature_names_in_, "w:newer"]


def test_hashed_names_are_numbers_below_the_size():
    vocabulary = HashedVocabulary(50)
    matrix, lengths = vocabulary.encode(X)
    plain, _ = Vocabulary().encode(X, learn=True)
    assert lengths == list(map(len, X))
    assert matrix.shape == (plain.shape[0], 50)
    assert matrix.indices.max() < 50
    assert np.array_equal(matrix.indptr, plain.indptr)
    again, _ = pickle.loads(pickle.dumps(vocabulary)).encode(X)
    assert np.array_equal(again.indices, matrix.indices)
    assert vocabulary.count_unknown([[{"never": "seen"}]]) == 0
    # Counts are bytes where names are read, and do not overflow.
    matrix, _ = Vocabulary().encode([[["a"] * 200]], learn=True)
    assert matrix.toarray().tolist() == [[200.0]]
    matrix, _ = Template("word[0]", ["word"]).encode([["a"] * 200], Vocabulary(), learn=True)
    assert (matrix.T @ matrix).toarray().tolist() == [[200.0]]


def fnv(name):
    """FNV-1a of 64 bits and its upper part, in plain Python."""
    state = 0xCBF29CE484222325
    for byte in name.encode():
        state = (state ^ byte) * 0x100000001B3 % 2**64
    return state ^ (state >> 29)


def test_the_hash_does_not_change():
    """Model files rely on it."""
    for position in ({"w": "thé"}, ["w:thé"]):
        matrix, _ = HashedVocabulary(1000).encode([[position]])
        assert matrix.indices.tolist() == [fnv("w:thé") % 1000]


def test_with_room_for_all_hashing_changes_nothing():
    plain, hashed = LinearCRF().fit(X, Y), LinearCRF(n_hashed=2**20).fit(X, Y)
    np.testing.assert_allclose(hashed.history_["objective"], plain.history_["objective"], rtol=1e-6)
    assert [p.tolist() for p in hashed.predict(X)] == Y
    crf = LinearCRF(n_hashed=1).fit(X, Y)  # all names share a column
    assert crf.n_features_in_ == 1
    assert np.isfinite(crf.history_["objective"]).all()


def test_hashed_models_are_saved_and_trained_further(tmp_path):
    crf = LinearCRF(trainer="sgd", n_hashed=512, sweeps=3, random_state=0).fit(X, Y)
    crf.save(tmp_path / "model.crfx")
    loaded = crfx.load(tmp_path / "model.crfx")
    for a, b in zip(crf.predict_marginals(X), loaded.predict_marginals(X), strict=True):
        np.testing.assert_array_equal(a, b)
    loaded.partial_fit([[{"w": "bird"}]], [["N"]])
    assert loaded.n_features_in_ == 512
    with pytest.raises(AttributeError, match="hashed"):
        loaded.feature_names_in_  # noqa: B018


def test_templates_are_hashed_and_lose_rare_names():
    template = Template("word[-1..1]", ["word"])
    crf = LinearCRF(n_hashed=2**16).fit(template(SENTENCES), Y)
    assert [p.tolist() for p in crf.predict(template(SENTENCES))] == Y
    rare = LinearCRF(min_count=4).fit(template(SENTENCES), Y)
    assert "word[0]=dog" not in rare.feature_names_in_
    assert "word[0]=the" in rare.feature_names_in_


def test_arguments_must_fit_the_model_that_training_starts_from():
    named = LinearCRF().fit(X, Y)
    with pytest.raises(ValueError, match=r"n_hashed is 16, but .* has None"):
        LinearCRF(n_hashed=16).fit(X, Y, init_model=named)
    hashed = LinearCRF("perceptron", n_hashed=8, random_state=0).partial_fit(X, Y)
    with pytest.raises(ValueError, match=r"n_hashed is 16, but .* has 8"):
        hashed.set_params(n_hashed=16).partial_fit(X, Y)
    base = LinearCRF(edges=None, max_iter=2).fit(RARE, Y_RARE)
    with pytest.raises(ValueError, match="min_count is 2, but the model underneath"):
        LinearCRF(min_count=2, edges="linear").fit(RARE, Y_RARE, init_model=base)


@pytest.mark.parametrize("kind", [GBCRF, TreeCRF])
def test_trees_leave_out_rare_names(kind, tmp_path):
    X = [[["a", "b"], ["a", "c"]], [["a", "b"], ["d"]]]
    y = [["P", "Q"], ["P", "Q"]]
    crf = kind(2, min_count=2).fit(X, y)
    assert crf.feature_names_in_.tolist() == ["a", "b"]
    crf.save(tmp_path / "m.crfx")
    again = kind(1, min_count=2).fit(X, y, init_model=tmp_path / "m.crfx")
    assert again.n_rounds_ == 3
    assert again.feature_names_in_.tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="min_count is 0"):
        kind(2, min_count=0).fit(X, y)
    with pytest.raises(ValueError, match="min_count is 2, but X holds numbers"):
        kind(2, min_count=2).fit([[[1.0]], [[2.0]]], [["P"], ["Q"]])
