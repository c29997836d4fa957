"""`crfx train` with words and settings that make no sense."""

from __future__ import annotations

from listed.case import Case, Each, each, values_of
from listed.commands import command
from listed.text_commands import CONLL, CONLLU, CRFSUITE, FILE, of_numbers, ranker, train


def _without(tried: str, argv: str, message: str) -> Case:
    return command("crfx train", tried, f"train {argv}", message, FILE)


def _set(setting: str | Each, message: str, model: str = "linear") -> Case:
    settings = values_of(setting)
    options = Each(f"--model {model} --set {setting}" for setting in settings)
    return train(f"--set {settings[0]} ({model})", options, message)


CASES = [
    _without("no model", "--train a.conll -o n.crfx", "required: --model"),
    _without("no file", "--model linear -o n.crfx", "required: --train"),
    _without("no output", "--model linear --train a.conll", "required: -o"),
    train("a model that there is not", "--model svm", "invalid choice: 'svm'"),
    train("a word too many", "b.conll", "b.conll"),
    train("a format that there is not", "--format xml", "--format"),
    train("a file that is not there", each("--train no.conll", "--dev no.conll"), "no.conll"),
    train("a folder as file", each("--train there", "-o there", "--dev there"),
          "there is a folder", {"there": None}),
    train("output in no folder", "-o no/n.crfx", "there is no folder no"),
    train("output to a file that is read",
          each("--train a.conll -o a.conll", "--dev d.conll -o d.conll"),
          "[ad].conll is read, and would be lost", {"d.conll": CONLL}),
    train("output on a full disk", "-o /dev/full --set max_iter=2", "/dev/full"),
    train("dev with other columns", "--dev d.conll", "d.conll:1: it has 2 columns",
          {"d.conll": "EU B-ORG\n\n"}),
    train("dev with other labels", "--dev d.conll", "S-PER", {"d.conll": "EU NNP B-PER\n\n"}),
    train("dev that is empty", "--dev d.conll", "d.conll", {"d.conll": ""}),
    train("patience without dev", "--patience 3", "--patience needs --dev"),
    train("another patience", each("--patience 0 --dev a.conll", "--patience x"),
          "--patience: (0|x) is not"),
    train("nothing to resume", "--resume", "nothing was interrupted, so leave out --resume"),
    train("to resume and to begin with", "--resume --init-model m.crfx", "leave out --init-model"),
    train("init-model that is not there", "--init-model no.crfx", "no.crfx"),
    train("init-model that is none", "--init-model a.conll", "a.conll is not a model file"),
    train("init-model of another kind", "--model gbcrf --init-model m.crfx",
          "holds a LinearCRF, but --model is gbcrf", {"m.crfx": of_numbers}),
    train("init-model that ranks", "--init-model r.crfx", "holds a RankingCRF",
          {"r.crfx": ranker}),
    train("init-model of numbers", "--init-model m.crfx", "was trained on arrays",
          {"m.crfx": of_numbers}),
    train("another seed", each("--seed -1", "--seed x"), "--seed"),
    train("a seed of 2**40", f"--seed {2**40}", "random_state is"),
    train("another number of threads", each("--jobs 0", f"--jobs {10**12}"),
          "--jobs: 0 is not|n_jobs is"),
    train("a device that there is not", "--model gbcrf --device tpu", "device is 'tpu': choose"),
    train("a template that is not there", "--template no.txt", "no.txt"),
    train("a template that is empty", "--template t.txt", "t.txt: the template has no line",
          {"t.txt": ""}),
    train("a template of another column", "--template t.txt", "t.txt: template, line 1: .*'tag'",
          {"t.txt": "tag[0]\n"}),
    train("a template that is no text", "--template t.txt", "t.txt:1", {"t.txt": b"\xff\xfe"}),
    train("a template for crfsuite", "--train c.crfsuite --template t.txt",
          "whose tokens have features already", {"c.crfsuite": CRFSUITE, "t.txt": "word[0]"}),
    train("too few names of columns", "--columns word", "a.conll:1: it has 3 columns"),
    train("a column twice", "--columns word,word", "twice"),
    train("a column that no template can name", "--columns a,b-c",
          "the column 'b-c' cannot stand in a temp"),
    train("a label of text", each("--label last", "--label upos"), "label is '(last|upos)'"),
    train("a label beyond", "--label 7", "label is column 7"),
    train("trees of conll", "--trees", "--trees: a.conll is conll"),
    train("conll as conllu", "--format conllu", "a.conll:1"),
    train("conll as crfsuite", "--format crfsuite", "has labels and no features"),
    train("conll as npz", "--format npz", "a.conll"),
    train("conllu with a label that there is not", "--train u.conllu --label pos",
          "label is 'pos'", {"u.conllu": CONLLU}),
    train("conllu with a column that there is not", "--train u.conllu --columns form,size",
          "column 'size'", {"u.conllu": CONLLU}),
    train("conllu with the label as column", "--train u.conllu --columns form,upos",
          "upos is the label", {"u.conllu": CONLLU}),
    train("constraints that there are not", "--constraints iob9", "--constraints"),
    train("constraints that labels do not have", "--constraints bioes --train b.conll", "label",
          {"b.conll": "a X\nb Y\n\n"}),
    train("standard input that is closed", "--train -", "stdin|standard input", shell="<&-"),
    train("standard input that is empty", "--train -", "<stdin>", shell="</dev/null"),
    train("standard input twice", "--train - --dev -", "<stdin>|standard input",
          shell="< a.conll"),
    train("a GPU for a linear model", "--device cuda", "--device is for --model gbcrf"),
    _set("max_iter", "'max_iter' is not NAME=VALUE"),
    _set("speed=3", "LinearCRF has no argument 'speed'"),
    _set(each("max_iter=-1", "max_iter=many"), "max_iter is (-1|'many')"),
    _set(each("l2=NaN", "l2=Infinity"), "l2 is (nan|inf)"),
    _set("edges=none", "edges is 'none'"),
    _set(each("random_state=3", "n_jobs=3"), "there is an option of its own"),
    _set("device=cuda", "there is an option of its own", "gbcrf"),
    _set("verbose=3", "--set verbose"),
    _set("max_iter=3 --set max_iter=4", "twice"),
    _set("tree_params=3", "tree_params is a int", "gbcrf"),
    _set("window=2", "window is 2", "treecrf"),
    _set("n_hidden=-1", "n_hidden is -1", "hidden-unit"),
]  # fmt: skip
