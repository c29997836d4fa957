"""`crfx report` with files and words that make no sense."""

from __future__ import annotations

import numpy as np

from listed.case import Case, Each, each
from listed.commands import Files, command, with_words
from listed.text_commands import ARRAYS, CONLL, MODEL, npz, of_numbers, ranker


def _report(tried: str, argv: str | Each, message: str, files: Files | None = None) -> Case:
    files = {**MODEL, **(files or {})}
    return command("crfx report", tried, with_words("report", argv), message, files)


CASES = [
    _report("no words", "", "required"),
    _report("no output", "m.crfx a.conll", "required: -o"),
    _report("output in no folder", "m.crfx a.conll -o no/p.html", "there is no folder no"),
    _report("output to a folder", "m.crfx a.conll -o there", "there is a folder", {"there": None}),
    _report("output to standard output", "m.crfx a.conll -o -", "- is no file"),
    _report("output to a file that is read",
            each("m.crfx a.conll -o m.crfx", "m.crfx a.conll -o ./a.conll"),
            "(m.crfx|a.conll) is read, and would be lost"),
    _report("output on a full disk", "m.crfx a.conll -o /dev/full", "/dev/full"),
    _report("a model that is not there", "no.crfx a.conll -o p.html", "no.crfx"),
    _report("a model of numbers for text", "l.crfx a.conll -o p.html", "trained on arrays",
            {"l.crfx": of_numbers}),
    _report("arrays of another width", "l.crfx a.npz -o p.html", "X has 2 features",
            {"l.crfx": of_numbers, "a.npz": ARRAYS}),
    _report("arrays without labels", "l.crfx a.npz -o p.html", "a.npz has no array y",
            {"l.crfx": of_numbers, "a.npz": npz(X=np.zeros((2, 3)), lengths=np.array([2]))}),
    _report("a file that is not there", "m.crfx no.conll -o p.html", "no.conll"),
    _report("an empty file", "m.crfx b.conll -o p.html", "b.conll has no token with a label",
            {"b.conll": ""}),
    _report("a file without labels", "m.crfx b.conll -o p.html", "b.conll:1: .*no labels",
            {"b.conll": "EU NNP\n\n"}),
    _report("a bad line after good ones", "m.crfx b.conll -o p.html", "b.conll:4: it has 1 column",
            {"b.conll": CONLL.replace("German JJ B-MISC", "German")}),
    _report("text for a model that ranks", "r.crfx a.conll -o p.html", "a.conll, line 1",
            {"r.crfx": ranker}),
    _report("standard input for a model that ranks", "r.crfx - -o p.html", "name a file",
            {"r.crfx": ranker}),
    _report("another number of sequences",
            each("m.crfx a.conll -o p.html --worst -1", "m.crfx a.conll -o p.html --worst all"),
            "--worst: (-1|all) is not"),
    _report("0 threads", "m.crfx a.conll -o p.html --jobs 0", "--jobs: 0 is not"),
]  # fmt: skip
