"""From files of documents to a ranking, on the command line: crfx rank train, predict, eval.

The files are in LETOR's format and like its MQ2008 (46 features between 0 and 1, normalised per
query, most of them weak; relevance 2, 1 or 0; some queries without anything relevant), but made up.
The same commands work on the real one, and on files of your own.
"""

import numpy as np

from crfx import load
from crfx.cli import main
from crfx.io import letor

N_FEATURES = 46


# 1. Documents of one query after another. What is relevant follows some of the features.
def make_queries(seed, n_queries):
    random = np.random.default_rng(seed)
    group = random.integers(5, 25, size=n_queries)
    parts, levels = [], []
    for n_documents in group:
        quality = random.normal(size=n_documents)  # what a searcher would see
        strength = 1 / (1 + np.arange(N_FEATURES))  # of each feature: how much it tells of that
        X = random.normal(size=(n_documents, N_FEATURES)) + np.outer(quality, strength)
        X -= X.min(axis=0)
        parts.append(X / np.maximum(X.max(axis=0), 1e-9))
        levels.append(np.digitize(quality - random.exponential(), [0.2, 1.0]))
    return letor.Rankings(
        np.concatenate(parts).round(6).astype(np.float32),
        np.concatenate(levels).astype(np.float64),
        group,
        query_ids=10_000 * (seed + 1) + np.arange(n_queries),
    )


for seed, name in enumerate(["train.txt", "validation.txt", "test.txt.gz"]):
    letor.write(name, make_queries(seed, n_queries=150))


# 2. The command line; in a shell the same words stand after "crfx".
def crfx(*words):
    print("$ crfx", *words)
    if main(words):
        raise SystemExit(2)


# A linear score, and boosted trees; sweeps or rounds end when NDCG of the validation file does
# not rise any more.
watch = ("--validation", "validation.txt", "--patience", "20")
crfx("rank", "train", "train.txt", "--model", "linear.crfx", *watch)
trees = ("--scorer", "trees", "--set", "max_depth=3", "--set", "learning_rate=0.05")
crfx("rank", "train", "train.txt", "--model", "trees.crfx", *watch, *trees)

# 3. Scores of new documents, one a line: what tools of evaluation read.
crfx("rank", "predict", "linear.crfx", "test.txt.gz", "-o", "scores.txt")

# 4. How good is the order? By the usual definition of NDCG, or as LETOR's tool takes it.
crfx("rank", "eval", "linear.crfx", "test.txt.gz")
crfx("rank", "eval", "trees.crfx", "test.txt.gz", "--cuts", "5,10")
crfx("rank", "eval", "--scores", "scores.txt", "test.txt.gz", "--definition", "letor")

# 5. The same from Python: the model file is that of `crfx.load`.
test = letor.read("test.txt.gz")
model = load("linear.crfx")
print("features that count most:", np.argsort(-np.abs(model.coef_))[:3] + 1)
print("best documents of the first query:", model.rank(test.X, test.group)[0][:5])
reached = model.score(test.X, test.relevance, test.group, cut=5)
assert reached > 0.6
