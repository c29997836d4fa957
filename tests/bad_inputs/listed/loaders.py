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
from crfx.features import Template
from crfx.io import letor
from listed.case import Case
from listed.subjects import fitted

NOT_A_MODEL = "is not a model file of crfx"
Change = Callable[[dict[str, bytes]], dict[str, bytes]]


def _members(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _rewritten(estimator: str, change: Change) -> Callable[[Any, Path], Any]:
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


def _manifest(estimator: str, **changes: Any) -> Callable[[Any, Path], Any]:
    """A manifest with other values; ... takes one away."""

    def change(members: dict[str, bytes]) -> dict[str, bytes]:
        values = json.loads(members["model.json"]) | changes
        kept = {name: value for name, value in values.items() if value is not ...}
        return members | {"model.json": json.dumps(kept).encode()}

    return _rewritten(estimator, change)


def _raw(raw: bytes) -> Callable[[Any, Path], Any]:
    def attempt(subject: Any, folder: Path) -> Any:
        (folder / "m.crfx").write_bytes(raw)
        return load("m.crfx")

    return attempt


def _spoilt(change: Callable[[bytes], bytes]) -> Callable[[Any, Path], Any]:
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


def _with_array(name: str, array: Any) -> Callable[[Any, Path], Any]:
    return _rewritten("LinearCRF", lambda members: members | {name: _array(array)})


def _without(suffix: str, estimator: str = "GBCRF") -> Callable[[Any, Path], Any]:
    def change(members: dict[str, bytes]) -> dict[str, bytes]:
        return {name: raw for name, raw in members.items() if not name.endswith(suffix)}

    return _rewritten(estimator, change)


def _trees(raw: bytes) -> Callable[[Any, Path], Any]:
    def change(members: dict[str, bytes]) -> dict[str, bytes]:
        return {name: raw if name.endswith(".ubj") else own for name, own in members.items()}

    return _rewritten("GBCRF", change)


MODEL: dict[str, tuple[Callable[[Any, Path], Any], str]] = {
    "an empty file": (_raw(b""), NOT_A_MODEL),
    "text": (_raw(b"hello\n"), NOT_A_MODEL),
    "zeros": (_raw(bytes(4096)), NOT_A_MODEL),
    "the start of a zip": (_raw(b"PK\x03\x04"), NOT_A_MODEL),
    "a zip of nothing": (_raw(_zipped()), NOT_A_MODEL),
    "a zip without model.json": (_raw(_zipped(other=b"1")), NOT_A_MODEL),
    "a manifest that is no JSON": (_raw(_zipped(model_json=b"{")), NOT_A_MODEL),
    "a manifest that is a list": (_raw(_zipped(model_json=b"[]")), NOT_A_MODEL),
    "a manifest that is a number": (_raw(_zipped(model_json=b"3")), NOT_A_MODEL),
    "a manifest that is empty": (_raw(_zipped(model_json=b"{}")), NOT_A_MODEL),
    "a manifest that is not UTF-8": (_raw(_zipped(model_json=b"\xff\xfe{}")), NOT_A_MODEL),
    "a manifest nested too deeply": (_raw(_zipped(model_json=b"[" * 100_000)), NOT_A_MODEL),
    "a gzip": (_raw(gzip.compress(b"hello", mtime=0)), NOT_A_MODEL),
    "cut in half": (_spoilt(lambda raw: raw[: len(raw) // 2]), NOT_A_MODEL),
    "without its last byte": (_spoilt(lambda raw: raw[:-1]), NOT_A_MODEL),
    "with its middle turned over": (
        _spoilt(lambda raw: raw[:400] + bytes(255 - b for b in raw[400:700]) + raw[700:]),
        NOT_A_MODEL,
    ),
    "a version that is to come": (_manifest("GBCRF", format_version=99), "upgrade crfx"),
    "a version of 0": (_manifest("GBCRF", format_version=0), NOT_A_MODEL),
    "a version of text": (_manifest("GBCRF", format_version="1"), NOT_A_MODEL),
    "a version of True": (_manifest("GBCRF", format_version=True), NOT_A_MODEL),
    "no version": (_manifest("GBCRF", format_version=...), NOT_A_MODEL),
    "a class that there is not": (_manifest("GBCRF", **{"class": "SVM"}), "holds a SVM"),
    "a class of Python's": (_manifest("GBCRF", **{"class": "os.system"}), "holds a os.system"),
    "a class that is a list": (_manifest("GBCRF", **{"class": []}), NOT_A_MODEL),
    "no class": (_manifest("GBCRF", **{"class": ...}), NOT_A_MODEL),
    "the class of another": (_manifest("GBCRF", **{"class": "LinearCRF"}), NOT_A_MODEL),
    "the class of one that ranks": (_manifest("GBCRF", **{"class": "RankingCRF"}), NOT_A_MODEL),
    "an argument that there is not": (_manifest("GBCRF", arguments={"depth": 3}), NOT_A_MODEL),
    "arguments of None": (_manifest("GBCRF", arguments=None), NOT_A_MODEL),
    "no labels": (_manifest("GBCRF", labels=[]), NOT_A_MODEL),
    "too many labels": (_manifest("GBCRF", labels=["A", "B", "C"]), "labels"),
    "a label twice": (_manifest("GBCRF", labels=["A", "A"]), "a label is there twice"),
    "labels of lists": (_manifest("GBCRF", labels=[["A"], ["B"]]), NOT_A_MODEL),
    "no number of features": (_manifest("GBCRF", n_features=...), NOT_A_MODEL),
    "no features": (_manifest("GBCRF", n_features=0), NOT_A_MODEL),
    "features of text": (_manifest("GBCRF", n_features="many"), NOT_A_MODEL),
    "names of features that are too few": (_manifest("GBCRF", feature_names=["a"]), NOT_A_MODEL),
    "more rounds than there are": (_manifest("GBCRF", n_rounds=7), "rounds"),
    "rounds of text": (_manifest("GBCRF", n_rounds="x"), NOT_A_MODEL),
    "history of None": (_manifest("GBCRF", history=None), NOT_A_MODEL),
    "no model": (_manifest("GBCRF", model=...), NOT_A_MODEL),
    "a model of nothing": (_manifest("GBCRF", model={}), NOT_A_MODEL),
    "no trees": (_without(".ubj"), NOT_A_MODEL),
    "trees of nothing": (_trees(b""), NOT_A_MODEL),
    "trees of rubbish": (_trees(b"rubbish" * 100), NOT_A_MODEL),
    "no tables": (_without(".npy", "LinearCRF"), NOT_A_MODEL),
    "a table of another shape": (_with_array("edge.edge.npy", np.zeros((3, 3))), NOT_A_MODEL),
    "a table of objects": (_with_array("edge.edge.npy", np.array([{}, 1], object)), NOT_A_MODEL),
    "a table of text": (_with_array("edge.edge.npy", np.array([["a", "b"]] * 2)), NOT_A_MODEL),
    "a table of NaN": (_with_array("edge.edge.npy", np.full((2, 2), np.nan)), NOT_A_MODEL),
}


def _letor(raw: bytes, name: str = "f.txt", **own: Any) -> Callable[[Any, Path], Any]:
    def attempt(subject: Any, folder: Path) -> Any:
        (folder / name).write_bytes(raw)
        return letor.read(name, **own)

    return attempt


GOOD = b"1 qid:1 1:0.5 2:1\n0 qid:1 1:0.25\n"
PACKED = gzip.compress(GOOD, mtime=0)
LETOR: dict[str, tuple[Callable[[Any, Path], Any], str]] = {
    "an empty file": (_letor(b""), "f.txt has no documents"),
    "blank lines": (_letor(b"\n\n  \n"), "f.txt has no documents"),
    "comments alone": (_letor(b"# nothing\n"), "f.txt has no documents"),
    "words": (_letor(b"hello world\n"), "f.txt, line 1: relevance is 'hello'"),
    "negative relevance": (_letor(GOOD + b"-1 qid:1 1:1\n"), "f.txt, line 3: relevance is '-1'"),
    "relevance of NaN": (_letor(b"nan qid:1 1:1\n"), "f.txt, line 1: relevance is 'nan'"),
    "infinite relevance": (_letor(b"inf qid:1 1:1\n"), "f.txt, line 1: relevance is 'inf'"),
    "no query": (_letor(b"1 1:0.5\n"), "f.txt, line 1: there is no query"),
    "a query of text": (_letor(b"1 qid:a 1:0.5\n"), "f.txt, line 1: query is 'a'"),
    "a query of nothing": (_letor(b"1 qid: 1:0.5\n"), "f.txt, line 1: query is ''"),
    "a query beyond 64 bits": (_letor(b"1 qid:99999999999999999999 1:1\n"), "f.txt, line 1: query"),
    "feature 0": (_letor(b"1 qid:1 0:1\n"), "f.txt, line 1: '0:1' is no feature"),
    "a feature below 0": (_letor(b"1 qid:1 -1:1\n"), "f.txt, line 1: '-1:1' is no feature"),
    "features that fall": (_letor(b"1 qid:1 2:1 1:1\n"), "feature 1 comes after feature 2"),
    "a feature twice": (_letor(b"1 qid:1 1:1 1:1\n"), "feature 1 comes after feature 1"),
    "a feature of text": (_letor(b"1 qid:1 1:x\n"), "f.txt, line 1: feature 1 is 'x'"),
    "a feature of NaN": (_letor(b"1 qid:1 1:nan\n"), "f.txt, line 1: feature 1 is 'nan'"),
    "a feature beyond float32": (_letor(b"1 qid:1 1:1e300\n"), "f.txt, line 1: feature 1"),
    "a feature without a value": (_letor(b"1 qid:1 1:\n"), "f.txt, line 1: feature 1 is ''"),
    "a feature without a colon": (_letor(b"1 qid:1 7\n"), "f.txt, line 1: '7' is no feature"),
    "feature 10**9": (_letor(b"1 qid:1 1000000000:1\n"), "f.txt, line 1: feature 1000000000"),
    "a query that comes back": (
        _letor(GOOD + b"1 qid:2 1:1\n1 qid:1 1:1\n"),
        "f.txt, line 4: query 1 comes back",
    ),
    "more features than asked for": (_letor(GOOD, n_features=1), "has a feature 2: there may be 1"),
    "bytes that are no text": (_letor(b"\xff\xfe\x00\x01\n"), "f.txt, line 1"),
    "a gz that is none": (_letor(GOOD, "f.txt.gz"), "f.txt.gz cannot be decompressed"),
    "a gz that is cut": (_letor(PACKED[:-9], "f.txt.gz"), "f.txt.gz cannot be decompressed"),
    "a gz with a wrong sum": (
        _letor(PACKED[:-8] + b"\0\0\0\0" + PACKED[-4:], "f.txt.gz"),
        "f.txt.gz cannot be decompressed",
    ),
    "features of None": (_letor(GOOD, n_features=0), "has a feature 2: there may be 0"),
}
TEMPLATES: dict[str, tuple[Any, Any, str]] = {
    "no text": ("", ["word"], "the template has no line"),
    "comments alone": ("# nothing", ["word"], "the template has no line"),
    "a column that there is not": (
        "tag[0]",
        ["word"],
        "template, line 1: there is no column 'tag'",
    ),
    "no offset": ("word", ["word"], "template, line 1: 'word' is not like word"),
    "an empty offset": ("word[]", ["word"], "template, line 1"),
    "an offset of text": ("word[x]", ["word"], "template, line 1: 'x' is not a number"),
    "an offset of 1.5": ("word[1.5]", ["word"], "template, line 1: '1.5' is not a number"),
    "a range that falls": ("word[2..-2]", ["word"], "the range '2..-2' is empty"),
    "a range without an end": ("word[0..]", ["word"], "template, line 1"),
    "a range of 10**12": (f"word[0..{10**12}]", ["word"], "template, line 1"),
    "sizes of 10**12": (f"suffix(word[0], 1..{10**12})", ["word"], "template, line 1"),
    "an offset of 10**30": (f"word[{10**30}]", ["word"], "template, line 1"),
    "a bracket that is open": ("word[0", ["word"], "template, line 1"),
    "a function that there is not": ("upper(word[0])", ["word"], "there is no function 'upper'"),
    "a function in another": ("lower(lower(word[0]))", ["word"], "not nested"),
    "a suffix of no size": ("suffix(word[0])", ["word"], "suffix needs number of letters"),
    "a suffix of 0 letters": ("suffix(word[0], 0)", ["word"], "suffix takes 1 letter or more"),
    "a size for lower": ("lower(word[0], 2)", ["word"], "lower takes no number of letters"),
    "ranges that do not run together": ("word[0..1] & word[0..2]", ["word"], "side by side"),
    "half a pair": ("word[0] &", ["word"], "template, line 1"),
    "a line twice": ("word[0]\nword[0]", ["word"], "is there twice"),
    "CRF++'s language": ("U00:%x[0,0]", ["word"], "template, line 1"),
    "a column twice": ("word[0]", ["word", "word"], "'word' is there twice"),
    "a mistake in line 3": ("word[0]\n\nwrod[1]", ["word"], "template, line 3"),
    "no columns": ("word[0]", [], "template, line 1"),
    "text of None": (None, ["word"], "template"),
    "columns of one text": ("word[0]", "word", "column"),
}
INSTANCES: dict[str, tuple[Any, str]] = {
    "an instance of one text": (["abc"], "instance 0: it is one text"),
    "a position of three columns": (
        [[("a", "b", "c")]],
        "instance 0, position 0: it has 3 columns",
    ),
    "a position without a column": ([[{"word": "a"}]], "instance 0, position 0: it has no column"),
    "a position of numbers": ([[("a", 1)]], "instance 0, position 0: .* is not all text"),
    "a position of None": ([[("a", "b"), None]], "instance 0, position 1"),
    "an instance of None": ([None], "instance 0"),
    "an instance of a number": ([3], "instance 0"),
    "half a character": ([[("a", "b"), ("\ud800", "b")]], "instance 0, position 1"),
}


def _encoded(instances: Any) -> Callable[[Any, Path], Any]:
    from crfx.features import Vocabulary

    template = Template("word[0]\npos[0]", ["word", "pos"])
    return lambda subject, folder: template.encode(instances, Vocabulary(), learn=True)


KEPT = Path(__file__).parents[2] / "saved_models" / "crfsuite.model"
NO_CRFSUITE = "is not a model of CRFsuite"
CRFSUITE: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "an empty file": (lambda raw: b"", NO_CRFSUITE),
    "text": (lambda raw: b"hello\n" * 20, "does not begin with lCRF"),
    "the first bytes alone": (lambda raw: b"lCRF", NO_CRFSUITE),
    "cut in half": (lambda raw: raw[: len(raw) // 2], NO_CRFSUITE),
    "a byte too many": (lambda raw: raw + b"x", NO_CRFSUITE),
    "a version that is to come": (lambda raw: raw[:12] + b"\xff" + raw[13:], NO_CRFSUITE),
    "another type": (lambda raw: raw[:8] + b"SEMI" + raw[12:], NO_CRFSUITE),
    "weights where there are none": (lambda raw: raw[:28] + b"\xff" * 4 + raw[32:], NO_CRFSUITE),
}


def _crfsuite(change: Callable[[bytes], bytes]) -> Callable[[Any, Path], Any]:
    def attempt(subject: Any, folder: Path) -> Any:
        (folder / "m.model").write_bytes(change(KEPT.read_bytes()))
        return from_crfsuite("m.model")

    return attempt


CASES = [
    *(Case("model file", tried, *given) for tried, given in MODEL.items()),
    *(Case("LETOR", tried, *given) for tried, given in LETOR.items()),
    *(
        Case("model of CRFsuite", tried, _crfsuite(change), message)
        for tried, (change, message) in CRFSUITE.items()
    ),
    Case("LETOR", "nothing there", lambda subject, folder: letor.read("no.txt"), "no.txt", OSError),
    Case("LETOR", "a folder", lambda subject, folder: letor.read("."), "", OSError),
    *(
        Case(
            "template",
            tried,
            lambda subject, folder, text=text, columns=columns: Template(text, columns),  # type: ignore[misc]
            message,
        )
        for tried, (text, columns, message) in TEMPLATES.items()
    ),
    *(
        Case("template", tried, _encoded(instances), message)
        for tried, (instances, message) in INSTANCES.items()
    ),
]
