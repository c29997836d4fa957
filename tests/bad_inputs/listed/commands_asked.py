"""`crfx tag`, `eval`, `inspect` and `convert` with files and words that make no sense."""

from __future__ import annotations

from typing import Any

import numpy as np

from listed.case import Case, Each, each
from listed.commands import Files, command, with_words
from listed.text_commands import (
    ARRAYS,
    CONLL,
    CRFSUITE,
    FILE,
    MODEL,
    PACKED,
    npz,
    of_numbers,
    ranker,
)


def _ask(
    name: str, tried: str, argv: str | Each, message: str, files: Files | None = None, **more: Any
) -> Case:
    words, files = with_words(name, argv), {**MODEL, **(files or {})}
    return command(f"crfx {name}", tried, words, message, files, **more)


def _both(tried: str, argv: str, message: str, files: Files | None = None, **more: Any) -> Case:
    """Return cases for `tag` and for `eval`, which both read a model and a file."""
    words, files = each(f"tag {argv}", f"eval {argv}"), {**MODEL, **(files or {})}
    return command("crfx tag and eval", tried, words, message, files, **more)


def _convert(tried: str, argv: str | Each, message: str, files: Files | None = None) -> Case:
    words, files = with_words("convert", argv), {**FILE, **(files or {})}
    return command("crfx convert", tried, words, message, files)


BAD_LINE = CONLL.replace("German JJ B-MISC", "German")
_ASKED = [
    _both("no words", "", "required"),
    _both("no file", "m.crfx", "required: FILE"),
    _both("a model that is not there", "no.crfx a.conll", "no.crfx"),
    _both("a model that is text", "a.conll a.conll", "a.conll is not a model file"),
    _both("a model that is a folder", "there a.conll", "there", {"there": None}),
    _both("a model that ranks", "r.crfx a.conll", "holds a RankingCRF", {"r.crfx": ranker}),
    _both("a model of numbers for text", "l.crfx a.conll", "trained on arrays",
          {"l.crfx": of_numbers}),
    _both("arrays for a model of text", "m.crfx a.npz", "npz|arrays|numbers", {"a.npz": ARRAYS}),
    _both("arrays of another width", "l.crfx a.npz", "X has 2 features",
          {"l.crfx": of_numbers, "a.npz": ARRAYS}),
    _both("a file that is not there", "m.crfx no.conll", "no.conll"),
    _both("a file that is a folder", "m.crfx there", "there is a folder", {"there": None}),
    _both("a file with more columns", "m.crfx b.conll", "b.conll:1: it has 5 columns",
          {"b.conll": "a b c d e\n\n"}),
    _both("a file with fewer columns in line 2", "m.crfx b.conll", "b.conll:2: it has 1 column",
          {"b.conll": "a NN O\nb\n\n"}),
    _both("a file that is not UTF-8", "m.crfx b.conll", "b.conll:1: byte 1 is 0xff",
          {"b.conll": b"\xff NN O\n\n"}),
    _both("a damaged gz", "m.crfx b.gz", "b.gz:.*cannot be decompressed", {"b.gz": PACKED[:30]}),
    _both("0 threads", "m.crfx a.conll --jobs 0", "--jobs: 0 is not"),
    _both("standard input that is closed", "m.crfx -", "stdin|standard input", shell="<&-"),
    _ask("tag", "output in no folder", "m.crfx a.conll -o no/o.conll", "there is no folder no"),
    _ask("tag", "output to a folder", "m.crfx a.conll -o there", "there is a folder",
         {"there": None}),
    _ask("tag", "output to a file that is read",
         each("m.crfx a.conll -o m.crfx", "m.crfx a.conll -o a.conll"),
         "(m.crfx|a.conll) is read, and would be"),
    _ask("tag", "output on a full disk", "m.crfx a.conll -o /dev/full", "/dev/full"),
    _ask("tag", "standard output on a full disk", "m.crfx a.conll", "[Nn]o space left",
         shell="> /dev/full"),
    _ask("tag", "a bad line after good ones, into a file", "m.crfx b.conll -o o.conll -q",
         "b.conll:4: it has 1 column", {"b.conll": BAD_LINE}),
    _ask("tag", "another probability",
         each(*(f"m.crfx a.conll --min-probability {value}" for value in ("2", "x", "nan"))),
         "--min-probability"),
    _ask("tag", "a way to write that there is not", "m.crfx a.conll --write xml", "--write"),
    _ask("eval", "a file without labels", "m.crfx b.conll", "b.conll:1: .*there are no labels",
         {"b.conll": "EU NNP\n\n"}),
    _ask("eval", "an empty file", "m.crfx b.conll", "b.conll", {"b.conll": ""}),
    _ask("eval", "arrays without labels", "l.crfx a.npz", "a.npz has no array y",
         {"l.crfx": of_numbers, "a.npz": npz(X=np.zeros((2, 3)), lengths=np.array([2]))}),
    _ask("inspect", "no model", "", "required: M.crfx"),
    _ask("inspect", "a model that is not there", "no.crfx", "no.crfx"),
    _ask("inspect", "a model that is cut", "c.crfx", "c.crfx is not a model file",
         {"c.crfx": b"PK\x03\x04cut"}),
    _ask("inspect", "a folder", "there", "there", {"there": None}),
    _ask("inspect", "another number of entries", each("m.crfx --top -1", "m.crfx --top x"),
         "--top"),
    _ask("inspect", "two models", "m.crfx m.crfx", "m.crfx"),
    _ask("inspect", "to explain no sequence",
         each("m.crfx --explain a.conll", "m.crfx --explain a.conll:-1"), "is not FILE:NUMBER"),
    _ask("inspect", "to explain number 0",
         each("m.crfx --explain a.conll:0", "m.crfx --explain a.conll:1:0"), "count from 1"),
    _ask("inspect", "to explain a sequence that is not there", "m.crfx --explain a.conll:99",
         "a.conll has . sequences: there is no number 99"),
    _ask("inspect", "to explain a position that is not there", "m.crfx --explain a.conll:1:99",
         "a.conll:1 has . positions: there is no number 99"),
    _ask("inspect", "to explain a file that is not there", "m.crfx --explain no.conll:1",
         "no.conll"),
    _ask("inspect", "to explain text to a model of numbers", "l.crfx --explain a.conll:1",
         "trained on arrays", {"l.crfx": of_numbers}),
    _ask("inspect", "to explain arrays to a model of text", "m.crfx --explain a.npz:1",
         "X holds numbers", {"a.npz": ARRAYS}),
    _ask("inspect", "to explain text to a model that ranks", "r.crfx --explain a.conll:1",
         "a.conll, line 1", {"r.crfx": ranker}),
]  # fmt: skip
_CONVERT = [
    _convert("no words", "", "required"),
    _convert("no output", "a.conll", "required: -o"),
    _convert("a file that is not there", "no.conll -o b.crfsuite", "no.conll"),
    _convert("a folder", each("there.conll -o b.crfsuite", "a.conll -o there.conll"),
             "there.conll is a folder", {"there.conll": None}),
    _convert("an empty file", "e.conll -o b.crfsuite", "e.conll", {"e.conll": ""}),
    _convert("output of no ending", "a.conll -o b.xyz", "pass --to"),
    _convert("output in no folder", "a.conll -o no/b.crfsuite", "there is no folder no"),
    _convert("output to the file", "a.conll -o a.conll", "a.conll is read, and would be lost"),
    _convert("output to the template", "a.conll --template t -o t --to npz",
             "t is read, and would be lost", {"t": "word[0]"}),
    _convert("output on a full disk", "a.conll -o /dev/full --to conll", "/dev/full"),
    _convert("to a format that there is not", "a.conll -o b --to xml", "--to"),
    _convert("from a format that there is not", "a.conll -o b.npz --from xml", "--from"),
    _convert("crfsuite to conll", "c.crfsuite -o b.conll", "features, not columns",
             {"c.crfsuite": CRFSUITE}),
    _convert("a template where there is nothing to turn",
             each("a.conll -o b.conll --template t.txt", "c.crfsuite -o b.npz --template t.txt"),
             "--template turns columns", {"t.txt": "word[0]", "c.crfsuite": CRFSUITE}),
    _convert("a template that is not there", "a.conll -o b.crfsuite --template no.txt", "no.txt"),
    _convert("a template with a mistake", "a.conll -o b.crfsuite --template t.txt",
             "template, line 1", {"t.txt": "wrod[0]"}),
    _convert("text to a model", "a.conll -o m.crfx", "a.conll is not a model of CRFsuite"),
    _convert("a template for a model", "a.conll -o m.crfx --template a.conll",
             "a.conll|--template"),
    _convert("another hash",
             each(*(f"a.conll -o b.npz --hashed {value}" for value in ("x", 0, 2**40))),
             "--hashed"),
    _convert("a hash for crfsuite", "a.conll -o b.crfsuite --hashed 8", "--hashed"),
    _convert("a bad line after good ones",
             each(*(f"b.conll -o {name}" for name in ("o.crfsuite", "o.npz", "o.conll"))),
             "b.conll:4: it has 1 column", {"b.conll": BAD_LINE}),
    _convert("a label that CRFsuite cannot have", "b.conll -o b.crfsuite",
             "the label '@' cannot be written", {"b.conll": "a @\n"}),
    _convert("comments of nothing", "a.conll -o b.crfsuite --comments=", "comments"),
    _convert("comments of crfsuite", "c.crfsuite -o b.npz --comments #",
             "comments can be chosen in conll only", {"c.crfsuite": CRFSUITE}),
    _convert("a damaged gz", "b.gz -o b.crfsuite", "b.gz:.*cannot be decompressed",
             {"b.gz": PACKED[:30]}),
]  # fmt: skip
CASES = [*_ASKED, *_CONVERT]
