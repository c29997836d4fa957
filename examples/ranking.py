"""Documents in order: which page answers the query best.

Fold 1 of LETOR's MQ2008: queries to pages of .gov, each page with 46 numbers (how often the words
of the query occur in its title, its body, ...) and how relevant a person found it: 2, 1 or 0.
`RankingCRF` learns a score that puts relevant pages first, trained for NDCG itself.
"""

from itertools import pairwise

import numpy as np

from crfx import RankingCRF
from crfx.datasets import load_mq2008
from crfx.ndcg import ndcg

fold = load_mq2008().fold(1)
train, validation, test = fold.train, fold.validation, fold.test
print(f"{len(train.group)} queries to learn from, {len(test.group)} to test on")

# 1. Pages of one query lie together: `group` says how many there are of each.
watched = (validation.X, validation.relevance, validation.group)
settings = {"early_stopping_rounds": 20, "eval_metric": "ndcg@5", "random_state": 0}
linear = RankingCRF("linear", **settings)
trees = RankingCRF("trees", max_depth=3, learning_rate=0.05, **settings)
for name, crf in [("a linear score", linear), ("boosted trees", trees)]:
    crf.fit(train.X, train.relevance, group=train.group, eval_set=watched)
    reached = [crf.score(test.X, test.relevance, test.group, cut=cut) for cut in (1, 5, 10)]
    print(f"{name:15} NDCG@1 {reached[0]:.3f}  @5 {reached[1]:.3f}  @10 {reached[2]:.3f}")

# 2. Is it worth it? An order by chance, and by the column that orders the training pages best.
columns = [ndcg(train.relevance, train.X[:, k], train.group, cut=5) for k in range(46)]
best = int(np.argmax(columns))
chance = np.random.default_rng(0).normal(size=len(test.X))
print(f"by chance       NDCG@5 {ndcg(test.relevance, chance, test.group, cut=5):.3f}")
alone = ndcg(test.relevance, test.X[:, best], test.group, cut=5)
print(f"column {best + 1} alone NDCG@5 {alone:.3f}")

# 3. One query: what a person said of its pages, in our order.
starts = np.cumsum([0, *test.group])
pages = next(
    slice(begin, end)
    for begin, end in pairwise(starts)
    if end - begin < 20 and len(set(test.relevance[begin:end])) == 3
)
X, relevance = test.X[pages], test.relevance[pages].astype(int)
(order,) = trees.rank(X, [len(X)])
print("relevance of one query's pages, as they came: ", *relevance)
print("relevance of one query's pages, in our order: ", *relevance[order])

# 4. Why are the first two first? The features that moved their scores most (f0 is column 1).
print(trees.explain(X, positions=order[:2]).as_text(top=3))
