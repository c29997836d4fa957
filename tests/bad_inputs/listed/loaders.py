"""Files and texts that the loaders must refuse: model file, LETOR, template."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from crfx import load
from crfx.estimators.crfsuite_models import from_crfsuite
from crfx.features import Template, Vocabulary
from crfx.io import letor
from listed.case import Case, each, values_of
from listed.subjects import fitted

NOT_A_MODEL = "is not a model file of crfx"
Change = Callable[[dict[str, bytes]], dict[str, bytes]]


def _members(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


Attempt = Callable[[Any, Path], Any]
"""Several of them are tried where they are refused alike."""


def _rewritten(estimator: str, change: Change) -> Attempt:
    """Load a good model file whose members were changed."""

    def attempt(subject: Any, folder: Path) -> Any:
        path = folder / "m.crfx"
        fitted(estimator).save(path)
        with_change = change(_members(path))
        with zipfile.ZipFile(path, "w") as archive:
            for name, raw in with_change.items():
                archive.writestr(name, raw)
        return load("m.crfx")

    return attempt


def _manifest(estimator: str = "GBCRF", **changes: Any) -> Attempt:
    """A manifest with other values; ... takes one away."""

    def change(members: dict[str, bytes]) -> dict[str, bytes]:
        values = json.loads(members["model.json"]) | changes
        kept = {name: value for name, value in values.items() if value is not ...}
        return members | {"model.json": json.dumps(kept).encode()}

    return _rewritten(estimator, change)


def _raw(raw: bytes) -> Attempt:
    def attempt(subject: Any, folder: Path) -> Any:
        (folder / "m.crfx").write_bytes(raw)
        return load("m.crfx")

    return attempt


def _spoilt(change: Callable[[bytes], bytes]) -> Attempt:
    """A good model file, other bytes."""

    def attempt(subject: Any, folder: Path) -> Any:
        path = folder / "m.crfx"
        fitted("GBCRF").save(path)
        path.write_bytes(change(path.read_bytes()))
        return load("m.crfx")

    return attempt


def _zipped(**members: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, raw in members.items():
            archive.writestr(name.replace("_json", ".json"), raw)
    return buffer.getvalue()


def _array(array: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=True)
    return buffer.getvalue()


def _with_array(name: str, array: Any) -> Attempt:
    return _rewritten("LinearCRF", lambda members: members | {name: _array(array)})


def _without(suffix: str, estimator: str = "GBCRF") -> Attempt:
    def change(members: dict[str, bytes]) -> dict[str, bytes]:
        return {name: raw for name, raw in members.items() if not name.endswith(suffix)}

    return _rewritten(estimator, change)


def _trees(raw: bytes) -> Attempt:
    def change(members: dict[str, bytes]) -> dict[str, bytes]:
        return {name: raw if name.endswith(".ubj") else old for name, old in members.items()}

    return _rewritten("GBCRF", change)


def _edge(array: Any) -> Attempt:
    return _with_array("edge.edge.npy", array)


MODEL: dict[str, tuple[Any, str]] = {
    "no zip": (
        each(_raw(b""), _raw(b"hello\n"), _raw(bytes(4096)), _raw(b"PK\x03\x04"),
             _spoilt(lambda raw: raw[: len(raw) // 2]), _spoilt(lambda raw: raw[:-1])),
        f"{NOT_A_MODEL}: File is not a zip file"),
    "a zip of something else": (each(_raw(_zipped()), _raw(_zipped(other=b"1"))), NOT_A_MODEL),
    "a manifest that is no JSON": (_raw(_zipped(model_json=b"{")), NOT_A_MODEL),
    "a manifest that is no object": (
        each(_raw(_zipped(model_json=b"[]")), _raw(_zipped(model_json=b"3"))),
        f"{NOT_A_MODEL}: model.json holds no object"),
    "a manifest that is empty": (_raw(_zipped(model_json=b"{}")), NOT_A_MODEL),
    "a manifest that is not UTF-8": (_raw(_zipped(model_json=b"\xff\xfe{}")), NOT_A_MODEL),
    "a manifest nested too deeply": (_raw(_zipped(model_json=b"[" * 100_000)), NOT_A_MODEL),
    "with its middle turned over": (
        _spoilt(lambda raw: raw[:400] + bytes(255 - b for b in raw[400:700]) + raw[700:]),
        NOT_A_MODEL),
    "another version": (
        each(*(_manifest(format_version=value) for value in (99, 0, "1", True))), "upgrade crfx"),
    "a class that there is not": (
        each(_manifest(**{"class": "SVM"}), _manifest(**{"class": "os.system"})),
        "holds a (SVM|os.system)"),
    "a class that is a list": (_manifest(**{"class": []}), NOT_A_MODEL),
    "the class of another": (
        each(_manifest(**{"class": "LinearCRF"}), _manifest(**{"class": "RankingCRF"})),
        NOT_A_MODEL),
    "values that are missing": (
        each(*(_manifest(**{name: ...})
               for name in ("format_version", "class", "n_features", "model"))),
        NOT_A_MODEL),
    "an argument that there is not": (_manifest(arguments={"depth": 3}), NOT_A_MODEL),
    "arguments of None": (_manifest(arguments=None), NOT_A_MODEL),
    "another number of labels": (each(_manifest(labels=[]), _manifest(labels=["A", "B", "C"])),
        "its labels are not as many as its scores"),
    "a label twice": (_manifest(labels=["A", "A"]), "a label is there twice"),
    "labels of lists": (_manifest(labels=[["A"], ["B"]]), NOT_A_MODEL),
    "no features": (_manifest(n_features=0), NOT_A_MODEL),
    "features of text": (_manifest(n_features="many"), NOT_A_MODEL),
    "names of features that are too few": (_manifest(feature_names=["a"]), NOT_A_MODEL),
    "more rounds than there are": (_manifest(n_rounds=7), "rounds"),
    "rounds of text": (_manifest(n_rounds="x"), NOT_A_MODEL),
    "history of None": (_manifest(history=None), NOT_A_MODEL),
    "a model of nothing": (_manifest(model={}), NOT_A_MODEL),
    "no trees": (_without(".ubj"), NOT_A_MODEL),
    "trees of nothing": (_trees(b""), NOT_A_MODEL),
    "trees of rubbish": (_trees(b"rubbish" * 100), NOT_A_MODEL),
    "no tables": (_without(".npy", "LinearCRF"), NOT_A_MODEL),
    "a table of something else": (
        each(_edge(np.zeros((3, 3))), _edge(np.array([["a", "b"]] * 2)),
             _edge(np.full((2, 2), np.nan))),
        f"{NOT_A_MODEL}: the array edge.edge does not fit"),
    "a table of objects": (_edge(np.array([{}, 1], object)), NOT_A_MODEL),
}  # fmt: skip


def _letor(raw: bytes, name: str = "f.txt", **arguments: Any) -> Attempt:
    def attempt(subject: Any, folder: Path) -> Any:
        (folder / name).write_bytes(raw)
        return letor.read(name, **arguments)

    return attempt


GOOD = b"1 qid:1 1:0.5 2:1\n0 qid:1 1:0.25\n"
PACKED = gzip.compress(GOOD, mtime=0)
LETOR: dict[str, tuple[Any, str]] = {
    "no documents": (each(_letor(b""), _letor(b"\n\n  \n"), _letor(b"# nothing\n")),
                     "f.txt has no documents"),
    "another relevance": (
        each(*(_letor(GOOD + bad + b" qid:2 1:1\n") for bad in (b"-1", b"nan", b"inf", b"high"))),
        "f.txt, line 3: relevance is '(-1|nan|inf|high)'"),
    "bytes that are no text": (_letor(b"\xff\xfe\x00\x01\n"), "f.txt, line 1"),
    "no query": (_letor(b"1 1:0.5\n"), "f.txt, line 1: there is no query"),
    "another query": (
        each(*(_letor(b"1 qid:" + value + b" 1:1\n") for value in (b"a", b"", b"9" * 20))),
        "f.txt, line 1: query is '(a||9*)'"),
    "no feature": (each(*(_letor(b"1 qid:1 " + pair + b"\n") for pair in (b"0:1", b"-1:1", b"7"))),
                   "f.txt, line 1: '(0:1|-1:1|7)' is no feature"),
    "features that do not rise": (each(_letor(b"1 qid:1 2:1 1:1\n"), _letor(b"1 qid:1 1:1 1:1\n")),
                                  "feature 1 comes after feature [12]"),
    "another value of a feature": (
        each(*(_letor(b"1 qid:1 1:" + value + b"\n") for value in (b"x", b"nan", b"1e300", b""))),
        "f.txt, line 1: feature 1 is '(x|nan|1e300|)'"),
    "feature 10**9": (_letor(b"1 qid:1 1000000000:1\n"), "f.txt, line 1: feature 1000000000"),
    "a query that comes back": (_letor(GOOD + b"1 qid:2 1:1\n1 qid:1 1:1\n"),
                                "f.txt, line 4: query 1 comes back"),
    "more features than asked for": (each(_letor(GOOD, n_features=1), _letor(GOOD, n_features=0)),
                                     "has a feature 2: there may be [01]"),
    "a damaged gz": (
        each(_letor(GOOD, "f.txt.gz"), _letor(PACKED[:-9], "f.txt.gz"),
             _letor(PACKED[:-8] + b"\0\0\0\0" + PACKED[-4:], "f.txt.gz")),
        "f.txt.gz cannot be decompressed"),
}  # fmt: skip
TEMPLATES: dict[str, tuple[Any, str]] = {
    "no line": (each("", "# nothing"), "the template has no line"),
    "a column that there is not": ("tag[0]", "template, line 1: there is no column 'tag'"),
    "another form": (
        each("word", "word[]", "word[0", "lower(lower(word[0]))", "word[0] &", "U00:%x[0,0]"),
        "template, line 1: .* is not like word"),
    "an offset that is no number": (each("word[x]", "word[1.5]", "word[0..]"),
        "template, line 1: '.*' is not a number"),
    "a range that falls": ("word[2..-2]", "the range '2..-2' is empty"),
    "numbers beyond": (
        each(f"word[0..{10**12}]", f"suffix(word[0], 1..{10**12})", f"word[{10**30}]"),
        "template, line 1: .* is too far"),
    "a function that there is not": ("upper(word[0])", "there is no function 'upper'"),
    "a suffix of no size": ("suffix(word[0])", "suffix needs number of letters"),
    "a suffix of 0 letters": ("suffix(word[0], 0)", "suffix takes 1 letter or more"),
    "a size for lower": ("lower(word[0], 2)", "lower takes no number of letters"),
    "ranges that do not run together": ("word[0..1] & word[0..2]", "side by side"),
    "a line twice": ("word[0]\nword[0]", "is there twice"),
    "a mistake in line 3": ("word[0]\n\nwrod[1]", "template, line 3"),
    "text of None": (None, "template"),
}  # fmt: skip
COLUMNS: dict[str, tuple[Any, str]] = {
    "a column twice": (["word", "word"], "'word' is there twice"),
    "no columns": ([], "template, line 1"),
    "columns of one text": ("word", "column"),
}
INSTANCES: dict[str, tuple[Any, str]] = {
    "an instance of one text": (["abc"], "instance 0: it is one text"),
    "a position of three columns": ([[("a", "b", "c")]],
                                    "instance 0, position 0: it has 3 columns"),
    "a position without a column": ([[{"word": "a"}]], "instance 0, position 0: it has no column"),
    "a position of numbers": ([[("a", 1)]], "instance 0, position 0: .* is not all text"),
    "a position of None": ([[("a", "b"), None]], "instance 0, position 1"),
    "an instance that is no list": (each([None], [3]), "instance 0: .* a list of positions"),
    "half a character": ([[("a", "b"), ("\ud800", "b")]], "instance 0, position 1"),
}  # fmt: skip


def _encode(subject: Any, folder: Path, instances: Any) -> Any:
    template = Template("word[0]\npos[0]", ["word", "pos"])
    return template.encode(instances, Vocabulary(), learn=True)


KEPT = Path(__file__).parents[2] / "saved_models" / "crfsuite.model"
NO_CRFSUITE = "is not a model of CRFsuite"
CRFSUITE: dict[str, tuple[Any, str]] = {
    "no header": (each(lambda raw: b"", lambda raw: b"lCRF"), "its header is cut off"),
    "text": (lambda raw: b"hello\n" * 20, "does not begin with lCRF"),
    "another length": (each(lambda raw: raw[: len(raw) // 2], lambda raw: raw + b"x"),
        f"{NO_CRFSUITE}: it has [0-9]+ bytes, but says"),
    "another version or type": (
        each(lambda raw: raw[:12] + b"\xff" + raw[13:], lambda raw: raw[:8] + b"SEMI" + raw[12:]),
        f"{NO_CRFSUITE}: it is of type"),
    "weights where there are none": (lambda raw: raw[:28] + b"\xff" * 4 + raw[32:], NO_CRFSUITE),
}  # fmt: skip


def _crfsuite(subject: Any, folder: Path, change: Callable[[bytes], bytes]) -> Any:
    (folder / "m.model").write_bytes(change(KEPT.read_bytes()))
    return from_crfsuite("m.model")


def _attempted(subject: Any, folder: Path, attempt: Attempt) -> Any:
    return attempt(subject, folder)


def _cases(area: str, attempt: Callable[..., Any], tries: dict[str, tuple[Any, str]]) -> list[Case]:
    return [
        Case(area, tried, attempt, message, values=values_of(value))
        for tried, (value, message) in tries.items()
    ]


CASES = [
    *_cases("model file", _attempted, MODEL),
    *_cases("LETOR", _attempted, LETOR),
    *_cases("model of CRFsuite", _crfsuite, CRFSUITE),
    Case("LETOR", "nothing there", lambda subject, folder: letor.read("no.txt"), "no.txt", OSError),
    Case("LETOR", "a folder", lambda subject, folder: letor.read("."), "", OSError),
    *_cases("template", lambda subject, folder, text: Template(text, ["word"]), TEMPLATES),
    *_cases("template", lambda subject, folder, columns: Template("word[0]", columns), COLUMNS),
    *_cases("template", _encode, INSTANCES),
]
