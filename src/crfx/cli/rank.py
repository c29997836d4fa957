"""`crfx rank train | predict | eval`: learn to order documents, score them, judge the order.

Files are LETOR's and SVMlight's (`crfx.io.letor`), plain or .gz.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crfx.cli.options import (
    add_estimator_options,
    add_example,
    add_quiet,
    check_output,
    settings_of,
)
from crfx.cli.tag import opened_output
from crfx.estimators.arguments import RANKING_ARGUMENTS, check_arguments

if TYPE_CHECKING:
    from crfx.estimators.ranking import RankingCRF
    from crfx.io.letor import Rankings

SUMMARY = "learn to order documents, from files of LETOR or SVMlight"
_TRAIN = "  crfx rank train train.txt --validation vali.txt --patience 20 --model m.crfx"
_PREDICT = "  crfx rank predict m.crfx test.txt -o scores.txt"
_EVAL = "  crfx rank eval m.crfx test.txt"
_CUTS = (1, 2, 3, 4, 5, 10)
_NAMED = (
    "early_stopping_rounds",
    "scorer",
    "objective",
    "temperature",
    "random_state",
    "n_jobs",
    "device",
)
"""Arguments of RankingCRF that have their own options."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the three commands."""
    commands = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, (summary, example, declare) in {
        "train": ("train a RankingCRF and save it", _TRAIN, _configure_train),
        "predict": ("write the score of every document, one a line", _PREDICT, _configure_predict),
        "eval": ("print NDCG of a model's scores, or of scores in a file", _EVAL, _configure_eval),
    }.items():
        subparser = commands.add_parser(name, help=summary)
        add_example(subparser, summary, example)
        declare(subparser)


def _configure_train(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="training set")
    parser.add_argument("--model", type=Path, required=True, metavar="M.crfx", help="save it there")
    parser.add_argument("--validation", type=Path, metavar="FILE", help="evaluation set, for NDCG")
    add_estimator_options(parser, "RankingCRF", RANKING_ARGUMENTS.kinds, _NAMED)
    parser.add_argument("--json", action="store_true", help="print one JSON object, no text")
    add_quiet(parser)


def _configure_predict(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, metavar="M.crfx")
    parser.add_argument("file", type=Path, metavar="FILE", help="documents; relevance is not used")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="write there (standard output)"
    )


def _configure_eval(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", nargs="?", type=Path, metavar="M.crfx")
    parser.add_argument("file", type=Path, metavar="FILE", help="documents with their relevance")
    parser.add_argument(
        "--scores", type=Path, metavar="FILE", help="one score per line, instead of a model"
    )
    parser.add_argument(
        "--definition",
        choices=("usual", "letor"),
        default="usual",
        help="definition of NDCG; letor: that of the tool of LETOR 4.0 (%(default)s)",
    )
    parser.add_argument(
        "--gain",
        choices=("exponential", "linear"),
        default="exponential",
        help="2^r - 1 or r of a document of relevance r (%(default)s)",
    )
    parser.add_argument(
        "--cuts", type=_cuts, default=_CUTS, metavar="K,K,...", help="(1,2,3,4,5,10)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object, no table")


def _cuts(text: str) -> tuple[int, ...]:
    parts = text.split(",")
    if not all(part.isdecimal() and int(part) >= 1 for part in parts):
        raise argparse.ArgumentTypeError(f"{text!r} does not list whole numbers of 1 or more")
    return tuple(map(int, parts))


def run(arguments: argparse.Namespace) -> None:
    """Run one of the three commands."""
    actions: dict[str, Callable[[argparse.Namespace], None]] = {
        "train": _train,
        "predict": _predict,
        "eval": _eval,
    }
    actions[arguments.action](arguments)


def _train(arguments: argparse.Namespace) -> None:
    from crfx.estimators.ranking import RankingCRF
    from crfx.estimators.support import check_device
    from crfx.io import letor

    named = {name: getattr(arguments, name) for name in _NAMED}
    settings = settings_of("RankingCRF", arguments.set, named, {})
    model = RankingCRF(**settings, verbose=0 if arguments.quiet else 1)
    check_arguments(model)
    if arguments.early_stopping_rounds is not None and arguments.validation is None:
        raise ValueError("--patience needs --validation, a file to watch")
    check_output(arguments.model, "the model", [*arguments.files, arguments.validation])
    if model.device is not None:
        check_device(model.device)
    train = letor.join([letor.read(path) for path in arguments.files])
    watched = None
    if arguments.validation is not None:
        part = letor.read(arguments.validation, n_features=train.X.shape[1])
        watched = (part.X, part.relevance, part.group)
    model.fit(train.X, train.relevance, group=train.group, eval_set=watched)
    model.save(arguments.model)
    _print_summary(arguments, model, train)


def _print_summary(arguments: argparse.Namespace, model: RankingCRF, train: Rankings) -> None:
    summary: dict[str, Any] = {
        "model": str(arguments.model),
        "queries": len(train.group),
        "documents": len(train.X),
        "features": train.X.shape[1],
        "skipped_queries": model.n_skipped_,
        "rounds": model.n_rounds_,
    }
    on_validation = ""
    if watched := model.history_.get("eval_metric", []):
        summary["validation_ndcg"] = float(watched[model.best_iteration_])
        on_validation = f", NDCG {summary['validation_ndcg']:.4f} on validation"
    if arguments.json:
        print(json.dumps(summary))
    elif not arguments.quiet:
        print(
            f"{summary['queries']} queries, {summary['documents']} documents, "
            f"{summary['features']} features; {summary['skipped_queries']} queries with one level "
            f"of relevance skipped; {summary['rounds']} rounds{on_validation}; "
            f"saved in {arguments.model}"
        )


def _predict(arguments: argparse.Namespace) -> None:
    from crfx.cli.models import load_ranker
    from crfx.io import letor

    if arguments.output is not None:
        check_output(arguments.output, "the scores", [arguments.model, arguments.file])
    model = load_ranker(arguments.model)
    documents = letor.read(arguments.file, n_features=model.n_features_in_)
    scores = model.predict(documents.X).tolist()
    with opened_output(arguments.output) as out:
        out.writelines(f"{score!r}\n" for score in scores)


def _eval(arguments: argparse.Namespace) -> None:
    from crfx.cli.models import load_ranker
    from crfx.io import letor
    from crfx.ndcg import mean_ndcg, ndcg_by_query

    if (arguments.model is None) == (arguments.scores is None):
        raise ValueError("name a model, or pass --scores: one of the two")
    if arguments.scores is None:
        model = load_ranker(arguments.model)
        part = letor.read(arguments.file, n_features=model.n_features_in_)
        scores = model.predict(part.X)
    else:
        part = letor.read(arguments.file)
        scores = _read_scores(arguments.scores, len(part.X))
    judged_by = {"definition": arguments.definition, "gain": arguments.gain}
    by_query = ndcg_by_query(part.relevance, scores, part.group, cuts=arguments.cuts, **judged_by)
    means = dict(zip(arguments.cuts, mean_ndcg(by_query).tolist(), strict=True))
    counts = {"queries": len(part.group), "documents": len(part.X)}
    if arguments.json:
        print(json.dumps({**counts, **judged_by, "ndcg": means}))
        return
    print(f"{counts['queries']} queries, {counts['documents']} documents")
    for cut, mean in means.items():
        print(f"{f'NDCG@{cut}':<8} {mean:.4f}")


def _read_scores(path: Path, n_documents: int) -> list[float]:
    from crfx.io.lines import open_bytes

    with open_bytes(path) as file:
        text = file.read()
    scores = []
    for number, line in enumerate(text.decode("utf-8", "replace").splitlines(), 1):
        try:
            scores.append(float(line))
        except ValueError:
            raise ValueError(f"{path}, line {number}: {line!r} is not a score") from None
    if len(scores) != n_documents:
        raise ValueError(f"{path} has {len(scores)} scores for {n_documents} documents")
    return scores
