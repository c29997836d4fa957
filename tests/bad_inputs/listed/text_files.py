"""Files of text and of arrays that are not as they should be: each is told with its line."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from listed.case import Case
from listed.text_commands import ARRAYS, CONLLU, GOOD, PACKED, npz, train


def _text(tried: str, content: str | bytes, message: str, options: str = "") -> Case:
    """A file that is not as it should be."""
    return train(
        tried, f"--train bad.conll {options}", message, {"bad.conll": content}, "text files"
    )


def _arrays(tried: str, content: Any, message: str) -> Case:
    raw = content if isinstance(content, bytes) else npz(**content)
    return train(tried, "--train bad.npz", message, {"bad.npz": raw}, "text files")


def _changed(**changes: Any) -> dict[str, Any]:
    return {name: value for name, value in (GOOD | changes).items() if value is not None}


CASES = [
    _text("an empty file", "", "bad.conll"),
    _text("blank lines alone", "\n\n\n", "bad.conll"),
    _text("-DOCSTART- alone", "-DOCSTART- -X- O\n\n", "bad.conll"),
    _text("one column", "a\nb\n\n", "bad.conll:1"),
    _text("fewer columns in line 2", "a NN O\nb O\n\n", "bad.conll:2: it has 2 columns"),
    _text("more columns in line 4", "a O\n\nb O\nc d O\n\n", "bad.conll:4: it has 3 columns"),
    _text("an empty column", "a\t\tO\n\n", "bad.conll:1: column 2 is empty"),
    _text("not UTF-8", b"Fran\xe7ois O\n\n", "bad.conll:1: byte 5 is 0xe7, which is not UTF-8"),
    _text("UTF-16", "a O\n\n".encode("utf-16"), "bad.conll:1: byte 1 is 0xff"),
    _text("a zero byte", b"a\x00 O\n\n", "bad.conll:1: there is a zero byte"),
    _text("a damaged gz", PACKED[:30], "bad.conll:.*cannot be decompressed"),
    _text("a gz with a wrong sum", PACKED[:-8] + bytes(4) + PACKED[-4:], "cannot be decompressed"),
    _text("a picture", b"\x89PNG\r\n\x1a\n\x00", "bad.conll:1"),
    _text("a program", b"\x7fELF\x02\x01\x01\x00", "bad.conll:1"),
    _text("a line of 17 MB", b"a" * (17 << 20), "bad.conll:1: the line is longer"),
    _text("conllu of nine fields", CONLLU.replace("\t_\n", "\n"), "bad.conll:1: it has 9 fields",
          "--format conllu"),
    _text("conllu with a word left out", CONLLU.replace("2\tbark", "3\tbark"),
          "bad.conll:2: ID is '3'", "--format conllu"),
    _text("conllu without labels", re.sub("NOUN|VERB", "_", CONLLU), "bad.conll has no labels",
          "--format conllu"),
    _text("conllu with an empty field", CONLLU.replace("dog\t", "\t"), "bad.conll:1: LEMMA is",
          "--format conllu"),
    _text("conllu with a head beyond", CONLLU.replace("\t0\troot", "\t9\troot"),
          "bad.conll:2: HEAD is '9'", "--format conllu --trees"),
    _text("conllu with a head of text", CONLLU.replace("\t0\troot", "\tx\troot"),
          "bad.conll:2: HEAD is 'x'", "--format conllu --trees"),
    _text("conllu with heads in a circle", CONLLU.replace("\t0\troot", "\t1\troot"),
          "bad.conll:[12]: its heads lead in a circle", "--format conllu --trees"),
    _text("crfsuite without a label", "\tw=a\n\n", "bad.conll has no labels",
          "--format crfsuite"),
    _text("crfsuite with a value of text", "A\tw:x\n\n", "bad.conll:1", "--format crfsuite"),
    _text("crfsuite with a value of NaN", "A\tw:nan\n\n", "bad.conll:1", "--format crfsuite"),
    _text("crfsuite with a value beyond float32", "A\tw:1e300\n\n", "bad.conll:1",
          "--format crfsuite"),
    _text("crfsuite with two colons", "A\tw:1:2\n\n", "bad.conll:1", "--format crfsuite"),
    _text("crfsuite with a declaration", "@weight:2\tw=a\n\n", "bad.conll:1: .* is a declaration",
          "--format crfsuite"),
    _text("crfsuite with a colon in its label", "A:B\tw=a\n\n", "bad.conll:1: the value of 'A'",
          "--format crfsuite"),
    _text("crfsuite without attributes", "A\nB\n\n", "bad.conll|no features", "--format crfsuite"),
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
