"""Columns of text: separators, labels, documents, comments, and lines written back."""

from crfx.io.conll import Conll
from crfx.io.sentences import Line

TEXT = """\
-DOCSTART- -X- O

EU NNP B-ORG
rejects  VBZ\tO


Peter NNP B-PER"""


def lines(text):
    return [Line(number, part) for number, part in enumerate(text.split("\n"), 1)]


def read(text, format=None, **options):
    return list((format or Conll(("word", "pos"))).read(lines(text), **options))


def test_read_and_written():
    first, second = read(TEXT)
    assert first.tokens == [("EU", "NNP"), ("rejects", "VBZ")]
    assert first.labels == ["B-ORG", "O"]
    assert [line.number for line in first.lines] == [1, 2, 3, 4]
    assert first.rows == [2, 3]
    assert first.parents is None
    assert second.tokens == [("Peter", "NNP")]
    assert second.number == 6
    assert second.rows == [1]
    for labelled in (True, False):
        sentences = read(TEXT, labelled=labelled)
        parts = [Conll(("word", "pos")).written(s, s.labels) for s in sentences]
        assert "\n\n".join("\n".join(part) for part in parts) == TEXT
    for nothing in ("", "\n", " \n\t\n"):
        assert read(nothing) == []


def test_read_yields_a_sentence_at_its_end():
    numbers = []

    def watched():
        for line in lines("a X\n\nb Y\n"):
            numbers.append(line.number)
            yield line

    sentences = Conll(("word",)).read(watched())
    assert next(sentences).tokens == [("a",)]
    assert numbers == [1, 2]


def test_read_finds_columns_and_labels():
    """Each case ends with the line that results from writing the label N."""
    cases = [
        ("a b X", -1, ("a", "b"), "X", "a b N"),
        ("a\tb\tX", -1, ("a", "b"), "X", "a\tb\tN"),
        ("a b\tc d\tX", -1, ("a b", "c d"), "X", "a b\tc d\tN"),  # blanks within columns
        ("  a   b  X  ", -1, ("a", "b"), "X", "  a   b  N  "),
        ("X a b", 0, ("a", "b"), "X", "N a b"),
        ("a X b", 1, ("a", "b"), "X", "a N b"),
        ("a X b", -2, ("a", "b"), "X", "a N b"),
        ("a b", -1, ("a", "b"), None, "a b N"),
        ("a\tb", -1, ("a", "b"), None, "a\tb\tN"),
        ("a b  ", -1, ("a", "b"), None, "a b N"),
        ("a b", 0, ("a", "b"), None, "N a b"),
        ("a b", 1, ("a", "b"), None, "a N b"),
        ("a\u00a0b c X", -1, ("a\u00a0b", "c"), "X", "a\u00a0b c N"),
        ("a\u3000b c X", -1, ("a\u3000b", "c"), "X", "a\u3000b c N"),
    ]
    for text, label, tokens, true, written in cases:
        format = Conll(("word", "pos"), label)
        (sentence,) = read(text, format, labelled=False)
        assert sentence.tokens == [tokens]
        assert sentence.labels == (None if true is None else [true])
        assert format.written(sentence, ["N"]) == [written]
    # A tab in the first line: three columns by blanks are two by tabs.
    assert len(read(" a   b \t X  ", labelled=False)[0].tokens[0]) == 2


def test_separators_of_columns_and_of_a_new_label():
    format = Conll(("word", "pos"))
    (sentence,) = read("a b X\nc d\tY", format)
    assert sentence.tokens == [("a", "b"), ("c", "d")]
    assert format.written(sentence, ["M", "N"]) == ["a b M", "c d\tN"]
    for separator, expected in (("\t", "a\tN"), (" ", "a N")):
        format = Conll(("word",), separator=separator)
        (sentence,) = read("a", format, labelled=False)
        assert sentence.labels is None
        assert format.written(sentence, ["N"]) == [expected]


def test_documents_part_sentences():
    first, second, rest = read("a b X\n-DOCSTART- \nc d Y\n\n-DOCSTART- -X- O\n")
    assert first.tokens == [("a", "b")]
    assert second.tokens == [("c", "d")]
    assert [line.text for line in second.lines] == ["-DOCSTART- ", "c d Y"]
    assert rest.tokens == []
    assert Conll(("word", "pos")).written(rest, []) == ["-DOCSTART- -X- O", ""]


def test_comments_require_the_option():
    text = "# one\na b X\n# b X\nc d Y\n"
    format = Conll(("word", "pos"), comments="#")
    (sentence,) = read(text, format)
    assert sentence.tokens == [("a", "b"), ("c", "d")]
    assert format.written(sentence, ["M", "N"]) == ["# one", "a b M", "# b X", "c d N"]
    (sentence,) = read("# b X\nc d Y\n")
    assert sentence.tokens == [("#", "b"), ("c", "d")]
