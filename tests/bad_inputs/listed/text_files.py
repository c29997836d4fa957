"""Files of text and of arrays that are not as they should be: each is told with its line."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from listed.case import Case, Each, each, values_of
from listed.text_commands import ARRAYS, CONLLU, GOOD, PACKED, npz, train


def _text(tried: str, content: str | bytes | Each, message: str, options: str = "") -> Case:
    """A file that is not as it should be; each of several has a number in its name."""
    files = {f"bad{k}.conll": text for k, text in enumerate(values_of(content))}
    words = Each(f"--train {name} {options}" for name in files)
    return train(tried, words, message.replace("bad.", r"bad\d\."), files, "text files")


def _conllu(tried: str, content: str | Each, message: str, options: str = "") -> Case:
    return _text(f"conllu {tried}", content, message, f"--format conllu {options}")


def _crfsuite(tried: str, content: str | Each, message: str) -> Case:
    return _text(f"crfsuite {tried}", content, message, "--format crfsuite")


def _arrays(tried: str, content: Any, message: str) -> Case:
    raw = content if isinstance(content, bytes) else npz(**content)
    return train(tried, "--train bad.npz", message, {"bad.npz": raw}, "text files")


def _changed(**changes: Any) -> dict[str, Any]:
    return {name: value for name, value in (GOOD | changes).items() if value is not None}


CASES = [
    _text("no token", each("", "\n\n\n", "-DOCSTART- -X- O\n\n"),
          "bad.conll: there is no line with a token"),
    _text("one column", "a\nb\n\n", "bad.conll:1"),
    _text("another number of columns", each("a NN O\nb O\n\n", "a O\n\nb O\nc d O\n\n"),
          "bad.conll:[24]: it has [23] columns, line 1 has [23]"),
    _text("an empty column", "a\t\tO\n\n", "bad.conll:1: column 2 is empty"),
    _text("not UTF-8", b"Fran\xe7ois O\n\n", "bad.conll:1: byte 5 is 0xe7, which is not UTF-8"),
    _text("UTF-16", "a O\n\n".encode("utf-16"), "bad.conll:1: byte 1 is 0xff"),
    _text("a zero byte", each(b"a\x00 O\n\n", b"\x7fELF\x02\x01\x01\x00"),
          "bad.conll:1: there is a zero byte"),
    _text("a damaged gz", each(PACKED[:30], PACKED[:-8] + bytes(4) + PACKED[-4:]),
          "bad.conll:.*cannot be decompressed"),
    _text("a picture", b"\x89PNG\r\n\x1a\n\x00", "bad.conll:1"),
    _text("a line of 17 MB", b"a" * (17 << 20), "bad.conll:1: the line is longer"),
    _conllu("of nine fields", CONLLU.replace("\t_\n", "\n"), "bad.conll:1: it has 9 fields"),
    _conllu("with a word left out", CONLLU.replace("2\tbark", "3\tbark"),
            "bad.conll:2: ID is '3'"),
    _conllu("without labels", re.sub("NOUN|VERB", "_", CONLLU), "bad.conll has no labels"),
    _conllu("with an empty field", CONLLU.replace("dog\t", "\t"), "bad.conll:1: LEMMA is"),
    _conllu("with another head", each(*(CONLLU.replace("\t0\tr", f"\t{head}\tr") for head in "9x")),
            "bad.conll:2: HEAD is '[9x]'", "--trees"),
    _conllu("with heads in a circle", CONLLU.replace("\t0\tr", "\t1\tr"),
            "bad.conll:[12]: its heads lead in a circle", "--trees"),
    _crfsuite("without a label", "\tw=a\n\n", "bad.conll has no labels"),
    _crfsuite("with another value", each("A\tw:x\n\n", "A\tw:nan\n\n", "A\tw:1e300\n\n"),
              "bad.conll:1: the value of 'w' is"),
    _crfsuite("with two colons", "A\tw:1:2\n\n", "bad.conll:1"),
    _crfsuite("with a declaration", "@weight:2\tw=a\n\n", "bad.conll:1: .* is a declaration"),
    _crfsuite("with a colon in its label", "A:B\tw=a\n\n", "bad.conll:1: the value of 'A'"),
    _crfsuite("without attributes", "A\nB\n\n", "bad.conll|no features"),
    _arrays("npz without X", _changed(X=None), "bad.npz: there must be X"),
    _arrays("npz without lengths", _changed(lengths=None), "bad.npz: there are no lengths"),
    _arrays("npz without labels", _changed(y=None), "bad.npz: there is no y"),
    _arrays("npz whose lengths do not add up", _changed(lengths=np.array([4])),
            "bad.npz: lengths add up to 4"),
    _arrays("npz with a negative length", _changed(lengths=np.array([7, -1])),
            "bad.npz: lengths: instance 1 has -1 rows"),
    _arrays("npz with lengths of floats", _changed(lengths=np.ones(6)), "bad.npz: lengths"),
    _arrays("npz with too few labels", _changed(y=np.array(["A"])), "bad.npz: y has shape"),
    _arrays("npz with X of text", _changed(X=np.full((6, 2), "a")), "bad.npz: X has shape"),
    _arrays("npz with X of one axis", _changed(X=np.zeros(6)), "bad.npz: X has shape"),
    _arrays("npz with X of objects", _changed(X=np.full((6, 2), None)), "bad.npz: .*not numbers"),
    _arrays("npz with infinity", _changed(X=np.full((6, 2), np.inf)), "position 0: .*infinite"),
    _arrays("npz with another array", _changed(z=np.zeros(2)), "bad.npz: .*it holds 'z.npy'"),
    _arrays("npz with parents beyond", _changed(parents=np.full(6, 9)), "bad.npz: parents"),
    _arrays("npz with parents in a circle", _changed(parents=np.array([1, 0, -1, 2, -1, 0])),
            "cycle|circle"),
    _arrays("npz that is cut", ARRAYS[:200], "bad.npz"),
    _arrays("npz that is another zip", npz()[:-4] + b"abcd", "bad.npz"),
]  # fmt: skip
