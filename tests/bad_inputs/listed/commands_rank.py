"""`crfx`, `crfx demo` and `crfx rank` with words and files that make no sense."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

from listed.case import Case
from listed.commands import Files, command
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
    found = letor.read(good)
    good.unlink()
    RankingCRF(sweeps=1, random_state=0).fit(found.X, found.relevance, group=found.group).save(path)


def _labeller(path: Path) -> None:
    fitted("LinearCRF").save(path)


TRAIN = {"good.txt": GOOD}
MODEL: Files = {"good.txt": GOOD, "m.crfx": _ranker}


def _top(tried: str, argv: str, message: str) -> Case:
    return command("crfx", tried, argv, message)


def _demo(tried: str, argv: str, message: str, files: Files | None = None) -> Case:
    return command("crfx demo", tried, f"demo {argv}", message, files)


def _train(tried: str, argv: str, message: str, files: Files | None = None, **more: Any) -> Case:
    words = f"rank train {argv} -q"
    return command("crfx rank train", tried, words, message, files or TRAIN, **more)


def _line(tried: str, line: str, message: str) -> Case:
    """A file with one bad line, its second."""
    return _train(tried, "bad.txt --model m.crfx", message, {"bad.txt": f"1 qid:1 1:1\n{line}\n"})


def _ask(tried: str, argv: str, message: str, files: Files | None = None, **more: Any) -> Case:
    words = argv.split()[0]
    return command(f"crfx rank {words}", tried, f"rank {argv}", message, files or MODEL, **more)


def _set(setting: str, message: str) -> Case:
    return _train(f"--set {setting}", f"good.txt --model n.crfx --set {setting}", message)


CASES = [
    _top("a command that there is not", "trian", "invalid choice: 'trian'"),
    _top("an option that there is not", "--fast", "--fast|COMMAND"),
    _demo("no strings", "--strings 0", "--strings: 0 is not a whole number of 2 or more"),
    _demo("one string", "--strings 1", "--strings: 1 is not"),
    _demo("-5 strings", "--strings -5", "--strings"),
    _demo("strings of text", "--strings many", "--strings: many is not"),
    _demo("2.5 strings", "--strings 2.5", "--strings: 2.5 is not"),
    _demo("strings of nothing", "--strings", "--strings: expected one argument"),
    _demo("a seed below 0", "--seed -1", "--seed"),
    _demo("a seed of text", "--seed x", "--seed: x is not"),
    _demo("an option that there is not", "--fast", "--fast"),
    _demo("a word too many", "now", "now"),
    _demo("output to a file", "--strings 4 --output there",
          "there is a file, not a folder", {"there": "text"}),
    _demo("output below a file", "--strings 4 --output there/in",
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
    _train("bytes that are no text", "bad.txt --model m.crfx", "bad.txt, line 1",
           {"bad.txt": b"\xff\xfe\x00"}),
    _line("negative relevance", "-1 qid:1 1:1", "bad.txt, line 2: relevance is '-1'"),
    _line("no query", "1 1:1", "bad.txt, line 2: there is no query"),
    _line("a query of text", "1 qid:x 1:1", "bad.txt, line 2: query is 'x'"),
    _line("features that fall", "1 qid:1 3:1 2:1", "bad.txt, line 2: feature 2 comes after"),
    _line("feature 0", "1 qid:1 0:1", "bad.txt, line 2: '0:1' is no feature"),
    _line("a feature of NaN", "1 qid:1 1:nan", "bad.txt, line 2: feature 1 is 'nan'"),
    _line("a feature beyond all", "1 qid:1 9999999:1", "bad.txt, line 2: feature 9999999"),
    _train("a query that comes back", "bad.txt --model m.crfx", "bad.txt, line 3: query 1 comes",
           {"bad.txt": "1 qid:1 1:1\n1 qid:2 1:1\n1 qid:1 1:1\n"}),
    _train("a query in two files", "good.txt again.txt --model m.crfx", "query 1 is in two",
           {"good.txt": GOOD, "again.txt": GOOD}),
    _train("equal relevance", "bad.txt --model m.crfx", "no query has documents of two",
           {"bad.txt": "1 qid:1 1:1\n1 qid:1 1:2\n"}),
    _train("a damaged gz", "bad.gz --model m.crfx", "bad.gz cannot be decompressed",
           {"bad.gz": PACKED[:20]}),
    _train("a gz that is none", "bad.gz --model m.crfx", "bad.gz cannot be decompressed",
           {"bad.gz": GOOD}),
    _train("a model in no folder", "good.txt --model no/m.crfx", "there is no folder no"),
    _train("a model that is a folder", "good.txt --model there", "there is a folder",
           {"good.txt": GOOD, "there": None}),
    _train("a model in the file", "good.txt --model good.txt", "good.txt is read, and would be"),
    _train("a model on a full disk", "good.txt --model /dev/full", "/dev/full"),
    _train("patience without validation", "good.txt --model m.crfx --patience 3",
           "--patience needs --validation"),
    _train("patience of 0", "good.txt --model m.crfx --validation good.txt --patience 0",
           "patience|early_stopping_rounds is 0"),
    _train("patience of text", "good.txt --model m.crfx --patience x", "--patience"),
    _train("validation that is not there", "good.txt --model m.crfx --validation no.txt", "no.txt"),
    _train("validation with more features", "good.txt --model m.crfx --validation wide.txt",
           "wide.txt has a feature 9: there may be 2",
           {"good.txt": GOOD, "wide.txt": "1 qid:1 9:1\n"}),
    _train("a scorer that there is not", "good.txt --model m.crfx --scorer net", "--scorer"),
    _train("an objective that there is not", "good.txt --model m.crfx --objective map",
           "--objective"),
    _train("a temperature of 0", "good.txt --model m.crfx --temperature 0", "temperature is 0"),
    _train("a temperature of NaN", "good.txt --model m.crfx --temperature nan",
           "temperature is nan"),
    _train("a temperature of text", "good.txt --model m.crfx --temperature hot", "--temperature"),
    _train("a temperature for the likelihood",
           "good.txt --model m.crfx --objective likelihood --temperature 1", "temperature is 1.0"),
    _train("0 threads", "good.txt --model m.crfx --jobs 0", "n_jobs is 0|--jobs"),
    _train("10**12 threads", f"good.txt --model m.crfx --jobs {10**12}", "n_jobs is|--jobs"),
    _train("a seed below 0", "good.txt --model m.crfx --seed -1", "random_state is -1|--seed"),
    _set("sweeps", "'sweeps' is not NAME=VALUE"),
    _set("=3", "'=3' is not NAME=VALUE"),
    _set("speed=3", "RankingCRF has no argument 'speed'"),
    _set("sweeps=-1", "sweeps is -1"),
    _set("sweeps=many", "sweeps is 'many'"),
    _set("sweeps=[1]", r"sweeps is \[1\]"),
    _set("sweeps=NaN", "sweeps is nan"),
    _set("l2=-0.5", "l2 is -0.5"),
    _set("step=0", "step is 0"),
    _set("max_depth=3", "max_depth is 3, but scorer is 'linear'"),
    _set("seed=3", "RankingCRF has no argument 'seed'"),
    _set("n_jobs=3", "there is an option of its own"),
    _set("verbose=3", "--set verbose"),
    _set("eval_metric=map", "eval_metric is 'map'"),
    _ask("a model that is not there", "predict no.crfx good.txt", "no.crfx"),
    _ask("a model that is text", "predict good.txt good.txt", "good.txt is not a model file"),
    _ask("a model that is empty", "predict empty.crfx good.txt", "empty.crfx is not a model file",
         {"empty.crfx": "", "good.txt": GOOD}),
    _ask("a model that labels", "predict l.crfx good.txt", "holds a LinearCRF: rank needs",
         {"l.crfx": _labeller, "good.txt": GOOD}),
    _ask("documents that are not there", "predict m.crfx no.txt", "no.txt"),
    _ask("documents with more features", "predict m.crfx wide.txt", "there may be 2",
         {**MODEL, "wide.txt": "1 qid:1 9:1\n"}),
    _ask("output in no folder", "predict m.crfx good.txt -o no/s.txt", "there is no folder no"),
    _ask("output to a folder", "predict m.crfx good.txt -o there", "there is a folder",
         {**MODEL, "there": None}),
    _ask("output to the model", "predict m.crfx good.txt -o m.crfx", "m.crfx is read, and would"),
    _ask("output on a full disk", "predict m.crfx good.txt -o /dev/full", "/dev/full"),
    _ask("standard output on a full disk", "predict m.crfx good.txt", "[Nn]o space left",
         shell="> /dev/full"),
    _ask("neither model nor scores", "eval good.txt", "name a model, or pass --scores"),
    _ask("both model and scores", "eval m.crfx good.txt --scores good.txt", "one of the two"),
    _ask("scores that are not there", "eval good.txt --scores no.txt", "no.txt"),
    _ask("scores of text", "eval good.txt --scores s.txt", "s.txt, line 2: 'x' is not a score",
         {**MODEL, "s.txt": "1\nx\n"}),
    _ask("too few scores", "eval good.txt --scores s.txt", "s.txt has 1 scores for 12",
         {**MODEL, "s.txt": "1\n"}),
    _ask("scores of NaN", "eval good.txt --scores s.txt", "nan|NaN",
         {**MODEL, "s.txt": "nan\n" * 12}),
    _ask("a damaged gz of scores", "eval good.txt --scores s.gz", "s.gz cannot be decompressed",
         {**MODEL, "s.gz": PACKED[:20]}),
    _ask("a cut of 0", "eval m.crfx good.txt --cuts 0", "--cuts"),
    _ask("cuts of text", "eval m.crfx good.txt --cuts a,b", "--cuts"),
    _ask("a definition that there is not", "eval m.crfx good.txt --definition new", "--definition"),
]  # fmt: skip
