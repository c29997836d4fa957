"""Bad text files, one list: each gives one line that names the file, the line and the mistake."""

import gzip

import pytest

from crfx.io import formats
from crfx.io.conll import Conll
from crfx.io.conllu import Conllu
from crfx.io.crfsuite import Crfsuite
from crfx.io.lines import open_lines

TWO = Conll(("word", "pos"))
U = Conllu()
TREE = Conllu(trees=True)
PACKED = gzip.compress(b"EU NNP B-ORG\n" * 1000, mtime=0)


def u(*lines):
    """Lines of CoNLL-U from ID, form, upos and HEAD."""
    texts = [f"{i}\t{form}\t_\t{upos}\t_\t_\t{head}\tdep\t_\t_" for i, form, upos, head in lines]
    return "\n".join(texts)


ONE = u((1, "a", "X", 0))


BAD = [
    # What every text file can be.
    (TWO, "a b X\nä ö Y".encode("latin-1"), "f:2: byte 1 is 0xe4, which is not UTF-8: convert"),
    (TWO, b"a b X\n\xed\xa0\x80 b X", "f:2: byte 1 is 0xed, which is not UTF-8"),
    (TWO, PACKED[:40], "f:1: from here on it cannot be decompressed: Compressed file ended"),
    (TWO, PACKED[:-8] + b"12345678", "f:1001: from here on it cannot be decompressed: CRC check"),
    (TWO, PACKED[:10] + b"\xff" * 40, "f:1: from here on it cannot be decompressed: Error -3"),
    (TWO, PACKED + b"more", "f:1001: from here on it cannot be decompressed: Not a gzipped file"),
    (TWO, b"\x1f\x8bhello world", "f:1: from here on it cannot be decompressed: Unknown compress"),
    (TWO, gzip.compress(bytes(1 << 25), mtime=0), "f:1: the line is longer than 16777216 bytes"),
    # Columns.
    (TWO, "a b X\n\n-DOCSTART-\n\nc", "f:5: it has 1 column, line 1 has 3: all lines must have"),
    (TWO, "a\tb\tX\nc d Y", "f:2: it has 1 column, line 1 has 3: .* parted by tabs"),
    (TWO, "a b X\nc  Y", "f:2: it has 2 columns, line 1 has 3: .* parted by blanks"),
    (TWO, "a\tb\tX\nc\td\t", "f:2: column 3 is empty: write a sign there"),
    (TWO, "\tb\tX", "f:1: column 1 is empty"),
    (
        TWO,
        "a b",
        r"f:1: it has 2 .*should have 3 columns \(word, pos and a label\): there are no",
    ),
    (TWO, "\n\n# x\nc d Y", "f:3: it has 2 columns, and should have 3"),
    (Conll(("word",), comments="%"), "% x\na X\n# b c d", "f:3: it has 4 columns, line 2 has 2"),
    # CRFsuite.
    (Crfsuite(), "O\ta\n\tb", "f:2: there is no label before the first tab"),
    (Crfsuite(), "O\ta:b:c", "f:1: 'a:b:c' has more than one colon: in a name, write"),
    (Crfsuite(), "O\t:1", "f:1: ':1' has no name before the colon"),
    (Crfsuite(), "O\n\nO\ta:1,5", "f:3: the value of 'a' is '1,5': it must be a number"),
    (Crfsuite(), "O\ta:inf", "f:1: the value of 'a' is 'inf'"),
    (Crfsuite(), "O\ta:1e39", "f:1: the value of 'a' is '1e39'"),
    (Crfsuite(), "O\turl=http://x", "f:1: the value of 'url=http' is '//x'"),
    (Crfsuite(), "B:1\ta", "f:1: the label 'B:1' has a colon: write it as"),
    # CoNLL-U.
    (U, u((1, "a", "X", 0)) + "\t_", "f:1: it has 11 fields by tabs, and should have 10"),
    (U, u((1, "a", "X", 0), (1, "b", "X", 1)), "f:2: ID is '1': the next word is 2"),
    (U, u(("", "a", "X", 0)), "f:1: ID is ''"),
    (U, u(("9" * 5000, "a", "X", 0)), "f:1: ID is '9999"),
    (U, u(("1-", "a", "X", 0)), "f:1: ID is '1-'"),
    (U, u(("٣", "a", "X", 0)), "f:1: ID is '٣'"),
    (U, u((1, "", "X", 0)), "f:1: FORM is empty: write '_'"),
    (U, "# x\n" + u((1, "a", "_", 0)), "f:2: there is no upos: it is '_'"),
    (Conllu("xpos"), u((1, "a", "X", 0)), "f:1: there is no xpos: it is '_'"),
    (TREE, u((1, "a", "X", "_")), "f:1: HEAD is '_': it must be 0, or the number of another word"),
    (TREE, u((1, "a", "X", 1)), "f:1: HEAD is '1'"),
    (TREE, u((1, "a", "X", -1)), "f:1: HEAD is '-1'"),
    (TREE, u((1, "a", "X", "9" * 5000)), "f:1: HEAD is '9999"),
    (TREE, u((1, "a", "X", 0), (2, "b", "X", 3), (3, "c", "X", 2)), "f:2: its heads lead in a c"),
]


@pytest.mark.parametrize(("format", "content", "message"), BAD)
def test_read_names_file_line_and_mistake(tmp_path, monkeypatch, format, content, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f").write_bytes(content if isinstance(content, bytes) else content.encode())
    with open_lines("f") as lines, pytest.raises(ValueError, match=f"^{message}") as error:
        list(format.read(lines))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("\n\n-DOCSTART- O\n", {}, "f: there is no line with a token"),
        ("EU\nrejects", {}, "f:1: 'EU' has one column: it needs a label too"),
        ("EU NNP O", {"columns": ["word"]}, r"f:1: it has 3 .* and 1 are named \(word\): name 2"),
        ("EU NNP O", {"label": "upos"}, "f:1: label is 'upos': in conll it is a number"),
        ("EU NNP O", {"label": "-4"}, "f:1: the label is column -4: there are 3, from 0 to 2"),
        ("EU NNP O", {"comments": ""}, "f:1: comments must begin with some sign"),
        (ONE, {"label": "form"}, "label is 'form': it must be one of upos, xpos"),
        (ONE, {"columns": ["upos"]}, "upos is the label: it cannot be a column too"),
        (ONE, {"columns": ["x"]}, "column 'x': there are form, lemma"),
        (ONE, {"columns": []}, "there are no columns: name some of form"),
        (ONE, {"columns": ["form", "form"]}, "columns are form, form: one is there twice"),
        (ONE, {"comments": "#"}, "comments can be chosen in conll only"),
        ("O\ta=1\tb=2", {"columns": ["a"]}, "crfsuite has no columns to name"),
        ("O\ta=1\tb=2", {"label": "1"}, "crfsuite has no columns to name"),
    ],
)
def test_guess_rejects_options_that_do_not_fit(tmp_path, monkeypatch, content, options, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f").write_text(content)
    with open_lines("f") as lines, pytest.raises(ValueError, match=f"^{message}"):
        formats.format_of(lines.peek_block(), "f", **options)


def test_open_lines_rejects_missing_files_and_folders(tmp_path, monkeypatch):
    """Other mistakes are in tests/bad_inputs/listed/text_files.py."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"^there is no file none$"):
        open_lines("none")
    with pytest.raises(IsADirectoryError, match=r"^\. is a folder: name a file in it$"):
        open_lines(".")
