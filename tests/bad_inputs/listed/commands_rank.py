"""`crfx`, `crfx demo` and `crfx rank` with words and files that make no sense."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

from listed.case import Case, Each, each, values_of
from listed.commands import Files, command, with_words
from listed.subjects import fitted

GOOD = "".join(
    f"{relevance} qid:{query} 1:{query + relevance}.5 2:{place}\n"
    for query in range(1, 4)
    for place, relevance in enumerate((2, 0, 1, 0))
)
PACKED = gzip.compress(GOOD.encode(), mtime=0)


def _ranker(path: Path) -> None:
    from crfx import RankingCRF
    from crfx.io import letor

    good = path.with_name("good-for-model.txt")
    good.write_text(GOOD)
    queries = letor.read(good)
    good.unlink()
    crf = RankingCRF(sweeps=1, random_state=0)
    crf.fit(queries.X, queries.relevance, group=queries.group).save(path)


def _labeller(path: Path) -> None:
    fitted("LinearCRF").save(path)


TRAIN: Files = {"good.txt": GOOD}
MODEL: Files = {"good.txt": GOOD, "m.crfx": _ranker}
WIDE: Files = {"wide.txt": "1 qid:1 9:1\n"}


def _demo(tried: str, argv: str | Each, message: str, files: Files | None = None) -> Case:
    return command("crfx demo", tried, with_words("demo", argv), message, files)


def _train(tried: str, argv: str | Each, message: str, files: Files | None = None) -> Case:
    files = {**TRAIN, **(files or {})}
    return command("crfx rank train", tried, with_words("rank train -q", argv), message, files)


def _with(tried: str, options: str | Each, message: str, files: Files | None = None) -> Case:
    """Return a case that runs the command with these options on a valid file."""
    return _train(tried, with_words("good.txt --model m.crfx", options), message, files)


def _line(tried: str, line: str, message: str) -> Case:
    """A file with one bad line, its second."""
    return _train(tried, "bad.txt --model m.crfx", message, {"bad.txt": f"1 qid:1 1:1\n{line}\n"})


def _ask(
    tried: str, argv: str | Each, message: str, files: Files | None = None, **more: Any
) -> Case:
    area = f"crfx rank {values_of(argv)[0].split()[0]}"
    files = {**MODEL, **(files or {})}
    return command(area, tried, with_words("rank", argv), message, files, **more)


CASES = [
    command("crfx", "a command that there is not", "trian", "invalid choice: 'trian'"),
    _demo("another number of strings",
          each(*(f"--strings {value}" for value in (0, 1, -5, "x", 2.5))), "--strings"),
    _demo("strings of nothing", "--strings", "--strings: expected one argument"),
    _demo("another seed", each("--seed -1", "--seed x"), "--seed"),
    _demo("a word too many", "now", "now"),
    _demo("output to a file", each("--strings 4 --output there", "--strings 4 --output there/in"),
          "there is a file, not a folder", {"there": "text"}),
    command("crfx rank", "no action", "rank", "required: ACTION"),
    command("crfx rank", "an action that there is not", "rank sort", "invalid choice: 'sort'"),
    _train("no file", "--model m.crfx", "required: FILE"),
    _train("no model", "good.txt", "required: --model"),
    _train("a file that is not there", "no.txt --model m.crfx", "no.txt"),
    _train("a folder", "folder --model m.crfx", "folder", {"folder": None}),
    _train("an empty file", "empty.txt --model m.crfx", "empty.txt has no documents",
           {"empty.txt": ""}),
    _train("a file of CoNLL", "a.conll --model m.crfx", "a.conll, line 1: relevance is 'EU'",
           {"a.conll": "EU NNP B-ORG\n\n"}),
    _line("no query", "1 1:1", "bad.txt, line 2: there is no query"),
    _line("feature 0", "1 qid:1 0:1", "bad.txt, line 2: '0:1' is no feature"),
    _line("a feature beyond all", "1 qid:1 9999999:1", "bad.txt, line 2: feature 9999999"),
    _line("equal relevance", "1 qid:1 1:2", "no query has documents of two"),
    _train("a query in two files", "good.txt again.txt --model m.crfx", "query 1 is in two",
           {"again.txt": GOOD}),
    _train("a damaged gz", "bad.gz --model m.crfx", "bad.gz cannot be decompressed",
           {"bad.gz": PACKED[:20]}),
    _train("a model in no folder", "good.txt --model no/m.crfx", "there is no folder no"),
    _train("a model that is a folder", "good.txt --model there", "there is a folder",
           {"there": None}),
    _train("a model in the file", "good.txt --model good.txt", "good.txt is read, and would be"),
    _train("a model on a full disk", "good.txt --model /dev/full", "/dev/full"),
    _with("patience without validation", "--patience 3", "--patience needs --validation"),
    _with("another patience", each("--validation good.txt --patience 0", "--patience x"),
          "patience|early_stopping_rounds is 0"),
    _with("validation that is not there", "--validation no.txt", "no.txt"),
    _with("validation with more features", "--validation wide.txt",
          "wide.txt has a feature 9: there may be 2", WIDE),
    _with("a scorer that there is not", "--scorer net", "--scorer"),
    _with("an objective that there is not", "--objective map", "--objective"),
    _with("another temperature", each(*(f"--temperature {value}" for value in ("0", "nan", "hot"))),
          "temperature"),
    _with("a temperature for the likelihood", "--objective likelihood --temperature 1",
          "temperature is 1.0"),
    _with("another number of threads", each("--jobs 0", f"--jobs {10**12}"), "n_jobs is|--jobs"),
    _with("a seed below 0", "--seed -1", "random_state is -1|--seed"),
    _with("--set without a name or a value", each("--set sweeps", "--set =3"),
          "is not NAME=VALUE"),
    _with("--set of another argument", each("--set speed=3", "--set seed=3"),
          "RankingCRF has no argument '(speed|seed)'"),
    _with("--set of another value",
          each(*(f"--set sweeps={value}" for value in ("-1", "x", "[1]"))), "sweeps is "),
    _with("--set of the other scorer", "--set max_depth=3",
          "max_depth is 3, but scorer is 'linear'"),
    _with("--set of an option", each("--set n_jobs=3", "--set scorer=trees"),
          "there is an option of its own"),
    _with("--set verbose", "--set verbose=3", "--set verbose"),
    _ask("a model that is not there", "predict no.crfx good.txt", "no.crfx"),
    _ask("a model that is text", "predict good.txt good.txt", "good.txt is not a model file"),
    _ask("a model that labels", "predict l.crfx good.txt", "holds a LinearCRF: rank needs",
         {"l.crfx": _labeller}),
    _ask("documents that are not there", "predict m.crfx no.txt", "no.txt"),
    _ask("documents with more features", "predict m.crfx wide.txt", "there may be 2", WIDE),
    _ask("output in no folder", "predict m.crfx good.txt -o no/s.txt", "there is no folder no"),
    _ask("output to a folder", "predict m.crfx good.txt -o there", "there is a folder",
         {"there": None}),
    _ask("output to the model", "predict m.crfx good.txt -o m.crfx", "m.crfx is read, and would"),
    _ask("output on a full disk", "predict m.crfx good.txt -o /dev/full", "/dev/full"),
    _ask("standard output on a full disk", "predict m.crfx good.txt", "[Nn]o space left",
         shell="> /dev/full"),
    _ask("neither model nor scores, or both",
         each("eval good.txt", "eval m.crfx good.txt --scores good.txt"),
         "name a model, or pass --scores: one of the two"),
    _ask("scores that are not there", "eval good.txt --scores no.txt", "no.txt"),
    _ask("scores of text", "eval good.txt --scores s.txt", "s.txt, line 2: 'x' is not a score",
         {"s.txt": "1\nx\n"}),
    _ask("too few scores", "eval good.txt --scores s.txt", "s.txt has 1 scores for 12",
         {"s.txt": "1\n"}),
    _ask("scores of NaN", "eval good.txt --scores s.txt", "nan|NaN", {"s.txt": "nan\n" * 12}),
    _ask("a damaged gz of scores",
         each("eval good.txt --scores s.gz", "eval good.txt --scores t.gz"),
         "[st].gz cannot be decompressed", {"s.gz": PACKED[:20], "t.gz": "1.0\n"}),
    _ask("nothing relevant", "eval m.crfx none.txt", "no query has a relevant document",
         {"none.txt": "0 qid:1 1:1\n0 qid:1 1:2\n"}),
    _ask("other cuts", each("eval m.crfx good.txt --cuts 0", "eval m.crfx good.txt --cuts a,b"),
         "--cuts"),
    _ask("a definition that there is not", "eval m.crfx good.txt --definition new", "--definition"),
]  # fmt: skip
