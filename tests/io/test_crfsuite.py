"""CRFsuite's text: escapes, values, labels; what is written is read back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crfx.features import Vocabulary
from crfx.io.crfsuite import Crfsuite, escaped, line_of
from crfx.io.sentences import Line

TEXT = "B-NP\tw[0]=An\t__BOS__\nI-NP\tscale:0.5\tw\\:\\\\\n\nO"


def read(text, **options):
    lines = [Line(number, part) for number, part in enumerate(text.split("\n"), 1)]
    return list(Crfsuite().read(lines, **options))


def test_read_and_written():
    first, second = read(TEXT)
    assert first.tokens == [["w[0]=An", "__BOS__"], {"scale": 0.5, "w:\\": 1.0}]
    assert first.labels == ["B-NP", "I-NP"]
    assert second.tokens == [[]]
    assert second.labels == ["O"]
    parts = [Crfsuite().written(s, s.labels) for s in (first, second)]
    assert "\n\n".join("\n".join(part) for part in parts) == TEXT
    vocabulary = Vocabulary()  # reads tokens of both kinds
    X, _ = vocabulary.encode([first.tokens], learn=True)
    assert vocabulary.names() == ["w[0]=An", "__BOS__", "scale", "w:\\"]
    assert X.toarray().tolist() == [[1, 1, 0, 0], [0, 0, 0.5, 1]]


def test_read_takes_apart_names_and_values():
    cases = [
        ("a", ["a"]),
        ("a:1", {"a": 1.0}),
        ("a:", ["a"]),  # as in CRFsuite
        ("a:-2e3", {"a": -2000.0}),
        ("a\\:1", ["a:1"]),
        ("a\\\\:2", {"a\\": 2.0}),
        ("a\\\\\\:2", ["a\\:2"]),
        ("a\\b\\", ["a\\b\\"]),  # a backslash before another sign is itself
        ("a:1\ta:2", {"a": 3.0}),
        ("a\ta:2", {"a": 3.0}),
        ("\t\ta\t\tb\t", ["a", "b"]),
        ("#b", ["#b"]),
        ("a b", ["a b"]),
    ]
    for field, expected in cases:
        (sentence,) = read(f"O\t{field}")
        assert sentence.tokens == [expected]


def test_read_takes_a_leading_tab_as_missing_label():
    (sentence,) = read("\ta\tb\nX\tc", labelled=False)
    assert sentence.labels == [None, "X"]
    (sentence,) = read("\ta\tb\n\tc", labelled=False)
    assert sentence.labels is None
    assert Crfsuite().written(sentence, ["M", "N:"]) == ["M\ta\tb", "N\\:\tc"]


names = st.text(
    st.characters(blacklist_categories=["Cs"], blacklist_characters="\t\n\r\0"), min_size=1
).filter(str.strip)


@given(names.filter(lambda name: name[0] != "@"), st.dictionaries(names, st.floats(-1e30, 1e30)))
def test_read_returns_what_was_written(label, features):
    (sentence,) = read(line_of(label, features))
    assert sentence.labels == [label]
    (token,) = sentence.tokens
    assert (token if isinstance(token, dict) else dict.fromkeys(token, 1.0)) == features


def test_written_names_are_checked():
    for name in ("", "a\tb", "a\nb"):
        with pytest.raises(ValueError, match="cannot be written"):
            escaped(name)
    with pytest.raises(ValueError, match="'@a' cannot be written: to CRFsuite @ is a declaration"):
        line_of("@a", [])
