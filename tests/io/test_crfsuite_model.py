"""CRFsuite's model file: read as CRFsuite reads it; what is broken is refused."""

import struct
from pathlib import Path

import numpy as np
import pytest

from crfx.io.crfsuite_model import read

SAVED = Path(__file__).parents[1] / "saved_models" / "crfsuite.model"
NOT_A_MODEL = "is not a model of CRFsuite"
SHOWN_DIGITS = 5e-7
"""CRFsuite shows weights with six digits."""
HEADER = "magic size type version n_features n_labels n_attributes features labels attributes"
PLACES = {name: 4 * k for k, name in enumerate((HEADER + " label_refs attribute_refs").split())}
MUTATIONS = 1000


@pytest.fixture
def whole():
    return bytearray(SAVED.read_bytes())


def number(raw, at):
    return struct.unpack_from("<I", raw, at)[0]


def refusal(tmp_path, raw):
    path = tmp_path / "model"
    path.write_bytes(raw)
    with pytest.raises(ValueError, match=NOT_A_MODEL) as caught:
        read(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_read_of_a_saved_file():
    model = read(SAVED)
    assert model.labels == ["I-ü", "Z", "O", "B-ü"]
    assert "sign:+" in model.attributes
    assert len(model.attributes) == len(set(model.attributes))
    for sources, labels, weights in (model.states, model.transitions):
        assert len(sources) == len(labels) == len(weights) > 0


def tagged(n_sentences=60):
    """Sentences of feature dicts, texts among them, and labels that hang together."""
    random = np.random.default_rng(0)
    X, y = [], []
    for length in random.integers(1, 12, n_sentences):
        codes = np.cumsum(random.integers(2, size=length)) % 4
        sentence = []
        for code in codes:
            word = f"w{(random.integers(40) + 7 * code) % 40}"
            if random.random() < 0.5:
                sentence.append({"word": word, "wert": float(random.normal()), "süß": code > 2})
            else:
                sentence.append({"word": word, "more": ["a", f"b{code}"], "deep": {"x": 0.5}})
        X.append(sentence)
        y.append([["O", "B-ü", "I-ü", "Z"][code] for code in codes])
    return X, y


def test_weights_agree_with_crfsuite_info(tmp_path):
    library = pytest.importorskip("pycrfsuite", reason="CRFsuite as witness: crfx[bench]")
    path = str(tmp_path / "model")
    trainer = library.Trainer("lbfgs", {"c1": 0.1, "c2": 0.01}, verbose=False)
    for xs, ys in zip(*tagged(), strict=True):
        trainer.append(library.ItemSequence(xs), ys)
    trainer.train(path)
    tagger = library.Tagger()
    tagger.open(path)
    shown, model = tagger.info(), read(path)
    assert {name: str(k) for k, name in enumerate(model.labels)} == shown.labels
    assert {name: str(k) for k, name in enumerate(model.attributes)} == shown.attributes
    for names, triples, expected in (
        (model.attributes, model.states, shown.state_features),
        (model.labels, model.transitions, shown.transitions),
    ):
        weights = {
            (names[a], model.labels[b]): w
            for a, b, w in zip(*(part.tolist() for part in triples), strict=True)
        }
        assert weights.keys() == expected.keys()
        for pair, weight in weights.items():
            assert weight == pytest.approx(expected[pair], abs=SHOWN_DIGITS, rel=SHOWN_DIGITS)


def test_read_rejects_files_cut_off_anywhere(tmp_path, whole):
    """The header has the old size or the new one."""
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "model")
    refusal(tmp_path, b"lCRF" * 100)
    for length in range(0, len(whole), 31):
        cut = whole[:length]
        for size in (len(whole), length):
            if length >= 8:
                struct.pack_into("<I", cut, 4, size)
            refusal(tmp_path, cut)


def set_at(offset, value, form="<I"):
    return lambda raw, at: struct.pack_into(form, raw, at + offset, value)


def record_of(raw, at):
    """Return the offset of the label Z in a database of names."""
    return raw.index(b"Z\0", at) - 8


def test_read_rejects_inconsistent_chunks(tmp_path, whole):
    first = len("FEAT") + 8
    fields = [
        ("magic", 0, "does not begin with lCRF"),
        ("size", 10, "but says 10"),
        ("type", 0, "version 100: FOMC, 100 is read"),
        ("version", 101, "version 101: FOMC, 100 is read"),
        ("n_labels", 3, "it has 3 labels, but names of 4"),
        ("n_labels", 2**32 - 1, "it has 4294967295 labels"),
        ("n_attributes", 2**32 - 1, "it has 4294967295 attributes"),
        ("features", 2**32 - 1, "list of weights is cut off"),
        ("features", 0, "no weights where it says"),
        ("labels", 2**32 - 1, "labels is cut off"),
        ("labels", 48, "no labels where it says"),
        ("label_refs", 48, "no LFRF part"),
        ("attribute_refs", 2**32 - 1, "AFRF part is cut off"),
    ]
    for place, value, message in fields:
        changed = bytearray(whole)
        struct.pack_into("<I", changed, PLACES[place], value)
        assert message in refusal(tmp_path, changed), (place, message)
    cases = [
        ("features", set_at(8, 2**32 - 1), "weights are cut off"),
        ("features", set_at(first, 7), "of unknown type"),
        ("features", set_at(first, 1), "references are not those of its weights"),
        ("features", set_at(first + 4, 10**6), "attribute or label that is not there"),
        ("features", set_at(first + 4, 1), "belong to others"),
        ("features", set_at(first + 8, 4), "for a label that is not there"),
        ("features", set_at(first + 12, float("inf"), "<d"), "not all finite"),
        ("labels", set_at(4, 2**32 - 1), "cut off"),
        ("labels", set_at(12, 0), "no labels where it says"),
        ("labels", set_at(20, 2**32 - 1), "labels are cut off"),
        ("labels", lambda raw, at: set_at(0, 2**32 - 1)(raw, at + number(raw, at + 20)), "no name"),
        ("labels", lambda raw, at: set_at(0, 3)(raw, record_of(raw, at)), "is broken"),
        ("labels", lambda raw, at: set_at(4, 0)(raw, record_of(raw, at)), "is broken"),
        ("labels", lambda raw, at: set_at(4, 2**32 - 1)(raw, record_of(raw, at)), "is broken"),
        ("labels", lambda raw, at: set_at(8, 0, "B")(raw, record_of(raw, at)), "is broken"),
        ("labels", lambda raw, at: set_at(8, 0xFF, "B")(raw, record_of(raw, at)), "is no UTF-8"),
        ("labels", lambda raw, at: set_at(8, ord("O"), "B")(raw, record_of(raw, at)), "twice"),
        ("attribute_refs", set_at(8, 0), "no AFRF part"),
        ("attribute_refs", set_at(12, 2**32 - 1), "AFRF references are cut off"),
        ("label_refs", set_at(12, 4), "more than its weights"),
    ]
    for place, change, message in cases:
        changed = bytearray(whole)
        change(changed, number(changed, PLACES[place]))
        assert message in refusal(tmp_path, changed), (place, message)


def test_read_rejects_corrupt_lists(tmp_path, whole):
    """Attributes that share one long list would grow beyond the file."""
    at = number(whole, PLACES["attribute_refs"])
    count = number(whole, at + 8)
    longest = max(
        (number(whole, number(whole, at + 12 + 4 * k)), number(whole, at + 12 + 4 * k))
        for k in range(count)
    )[1]
    for k in range(count):
        struct.pack_into("<I", whole, at + 12 + 4 * k, longest)
    assert "AFRF references" in refusal(tmp_path, whole)


def test_damaged_files_load_or_raise(tmp_path, whole):
    random, outcomes, path = np.random.default_rng(0), set(), tmp_path / "model"
    for _ in range(MUTATIONS):
        changed = bytearray(whole)
        for _ in range(random.integers(1, 4)):
            place = random.integers(len(whole) if random.random() < 0.7 else 48)
            changed[place] = random.choice([0, 1, 4, 127, 128, 255])
        path.write_bytes(changed)
        try:
            read(path)
            outcomes.add("read")
        except ValueError:
            outcomes.add("rejected")
    assert outcomes == {"read", "rejected"}
