"""Trees over features and labels before: against a tree grown and walked by plain loops."""

from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from crfx.batch import Batch
from crfx.potentials.context_trees import ContextLearner, ContextShape, ContextTrees, Slopes
from crfx.potentials.tree_arrays import LEAF, NAMES, TreeArrays, join
from crfx.structures import Chain, Forest

SUMS = {"rtol": 2e-5, "atol": 2e-6}
"""Of sums of float32 over contexts and rows, and of what is divided by them."""
LEAST_GAIN = 1e-9


# The slow twin: every pair of a row and a context is an example of its own.


@dataclass
class Examples:
    """(examples, ...): features as numbers, labels before (n_labels for none), slopes, the row."""

    x: np.ndarray
    before: np.ndarray
    g: np.ndarray
    h: np.ndarray
    row: np.ndarray


def worth(g, h, l2):
    return g.sum() ** 2 / (h.sum() + l2) if h.sum() + l2 > 0 else 0.0


def sides_of(examples, column, named, with_missing):
    """Every way in which a column may divide examples, as the members that go left."""
    missing = np.isnan(column)
    if named:
        values = list(np.unique(column[~missing])) + ([np.nan] if missing.any() else [])
        groups = [missing if np.isnan(v) else column == v for v in values]
        groups = [group for group in groups if examples.h[group].sum() > 0]
        groups.sort(key=lambda group: examples.g[group].sum() / examples.h[group].sum())
        for n in range(1, len(groups)):
            yield np.any(groups[:n], axis=0)
        return
    for limit in [*np.unique(column[~missing])[1:], np.inf]:
        yield column < limit
        if with_missing and missing.any() and limit != np.inf:
            yield (column < limit) | missing


def best_split(examples, is_category, learner, least):
    """(gain, members that go left or None), by trying all."""
    best, left = LEAST_GAIN, None
    columns = [(c, True) for c in examples.before.T] + list(
        zip(examples.x.T, is_category, strict=True)
    )
    for column, named in columns:
        for side in sides_of(examples, column.astype(float), named, with_missing=True):
            if examples.h[side].sum() < least or examples.h[~side].sum() < least:
                continue
            both = sum(
                worth(examples.g[s], examples.h[s], learner.reg_lambda) for s in (side, ~side)
            )
            gain = 0.5 * (both - worth(examples.g, examples.h, learner.reg_lambda))
            if gain > best:
                best, left = gain, side
    return best, left


def take(examples, which):
    return Examples(*(getattr(examples, name)[which] for name in ("x", "before", "g", "h", "row")))


def grow_slowly(examples, is_category, learner):
    """(examples,) the value of each example's leaf, and the objective that is reached."""
    least = max(learner.min_child_weight, 1e-10 * examples.h.sum())

    def searched(members):
        """(gain, examples of the leaf, those that would go left or None)."""
        gain, left = best_split(take(examples, members), is_category, learner, least)
        return gain, members, left

    leaves = [searched(np.arange(len(examples.g)))]
    while len(leaves) < learner.max_leaves:
        splitting = [n for n, (_, _, left) in enumerate(leaves) if left is not None]
        if not splitting:
            break
        _, members, left = leaves.pop(max(splitting, key=lambda n: leaves[n][0]))
        leaves += [searched(members[left]), searched(members[~left])]
    values = np.zeros(len(examples.g))
    objective = 0.0
    for _, members, _ in leaves:
        g, h = examples.g[members].sum(), examples.h[members].sum() + learner.reg_lambda
        values[members] = -g / h if h > 0 else 0.0
        objective -= 0.5 * g * g / h if h > 0 else 0.0
    return values, objective


# Cases.


@dataclass
class Case:
    """A batch, its features as plain numbers, and slopes."""

    batch: Batch
    structure: Chain | Forest
    shape: ContextShape
    x: np.ndarray
    is_category: np.ndarray
    slopes: Slopes
    chosen: np.ndarray

    def contexts_of(self, row):
        """The labels before a row; those of a row without any are n_labels."""
        K, order = self.shape.n_labels, self.shape.order
        return list(product(range(K), repeat=order)) if self.has_context[row] else [(K,) * order]

    @property
    def has_context(self):
        is_reached = np.zeros(self.batch.n_rows, dtype=bool)
        is_reached[self.structure.edge_rows(self.batch)] = True
        return is_reached

    def examples(self, label):
        """All pairs of a chosen row and a context."""
        result, slopes, has_context = [], self.slopes, self.has_context
        for row in self.chosen:
            weight = 1.0 if slopes.weights is None else slopes.weights[row]
            for before in self.contexts_of(row):
                at = (row, *before, label) if has_context[row] else (row, label)
                g = slopes.edge if has_context[row] else slopes.node
                h = slopes.edge_curvature if has_context[row] else slopes.node_curvature
                result.append((self.x[row], before, g[at], weight if h is None else h[at], row))
        return Examples(*(np.array(part, dtype=float) for part in zip(*result, strict=True)))

    def function(self, learner, n_jobs=1):
        trees = ContextTrees(self.shape, learner, n_jobs)
        trees.bind(self.batch, self.structure, [])
        return trees

    def grow(self, learner, n_jobs=1):
        """One round, and its scores (rows, K) and (rows, K, ..., K)."""
        function = self.function(learner, n_jobs)
        grown = function.propose(self.slopes, self.chosen, 0)
        K, n = self.shape.n_labels, self.batch.n_rows
        node = np.zeros((n, K), np.float32)
        edge = np.zeros((n, *(K,) * (self.shape.order + 1)), np.float32)
        function.add(grown.trees, grown.bound, 1.0, node=node, edge=edge)
        return grown.trees, node, edge

    def scores_at(self, examples, label, node, edge):
        """(examples,) what a round says."""
        K = self.shape.n_labels
        return np.array(
            [
                node[row, label] if before[0] == K else edge[(row, *before, label)]
                for row, before in zip(
                    examples.row.astype(int), examples.before.astype(int), strict=True
                )
            ]
        )


def plain_windows(x, lengths, left, right, outside):
    """Rows of x, each with its neighbours; written without the library."""
    wide = []
    for end, length in zip(np.cumsum(lengths), lengths, strict=True):
        window = x[end - length : end]
        for t in range(length):
            row = [
                window[t + s] if 0 <= t + s < length else np.asarray(outside, dtype=float)
                for s in range(-left, right + 1)
            ]
            wide.append(np.concatenate(row))
    return np.array(wide)


def make_features(kind, n, random, lengths, window):
    """(what is passed, plain numbers of the window, which columns hold categories)."""
    x = np.round(random.normal(size=(n, 3)) * 2)
    named = np.zeros(3, dtype=bool)
    outside = np.full(3, -np.inf)
    width = sum(window) + 1
    if kind in ("missing", "sparse"):
        x[random.random(x.shape) < 0.3] = np.nan
    features = x.astype(np.float32)
    if kind == "frame":
        codes = random.integers(5, size=n)
        x[:, 1] = np.where(random.random(n) < 0.2, np.nan, codes)
        words = pd.Categorical.from_codes(
            np.where(np.isnan(x[:, 1]), -1, codes), categories=list("vwxyz")
        )
        features = pd.DataFrame({"a": x[:, 0], "b": words, "c": x[:, 2]})
        named[1], outside[1] = True, 5
    if kind == "sparse":
        rows, columns = np.nonzero(~np.isnan(x))
        features = sparse.csr_matrix((x[rows, columns], (rows, columns)), shape=x.shape)
        outside[:] = np.nan
    plain = plain_windows(x, lengths, *window, outside)
    if kind == "sparse" and width > 1:
        inside = plain_windows(np.ones((n, 1)), lengths, *window, [0.0])
        plain = np.column_stack([plain, np.where(inside == 0, 1.0, np.nan)])
    flags = np.zeros(plain.shape[1], dtype=bool)
    flags[: 3 * width] = np.tile(named, width)
    return features, plain, flags


def make_case(
    kind="dense",
    *,
    order=1,
    n_labels=3,
    window=(0, 0),
    curved=False,
    weighted=False,
    share=1.0,
    forest=False,
    seed=0,
    lengths=(5, 1, 4, 0, 6, 3),
):
    random = np.random.default_rng(seed)
    n = sum(lengths)
    X, plain, flags = make_features(kind, n, random, lengths, window)
    parents = None
    if forest:
        parents = np.concatenate([[random.integers(-1, t) if t else -1 for t in range(m)]
                                  for m in lengths]).astype(np.int64)  # fmt: skip
    batch = Batch.from_lengths(lengths, X=X, parents=parents)
    tables = (n, *(n_labels,) * (order + 1))

    def drawn(shape, positive=False):
        values = random.uniform(0.1, 2, shape) if positive else random.normal(size=shape)
        return values.astype(np.float32)

    slopes = Slopes(drawn(tables), drawn((n, n_labels)))
    if curved:
        slopes = replace(
            slopes,
            edge_curvature=drawn(tables, positive=True),
            node_curvature=drawn((n, n_labels), positive=True),
        )
    if weighted:
        slopes = replace(slopes, weights=np.repeat(random.uniform(0.2, 3, len(lengths)),
                                                   lengths).astype(np.float32))  # fmt: skip
    chosen = np.flatnonzero(random.random(n) < share).astype(np.int32)
    shape = ContextShape(n_labels, order, window, is_sparse=kind == "sparse")
    structure = Forest() if forest else Chain(order)
    return Case(batch, structure, shape, plain, flags, slopes, chosen)


def check_growth(case, learner):
    trees, node, edge = case.grow(learner)
    assert trees.n_trees == case.shape.n_labels
    for label in range(case.shape.n_labels):
        examples = case.examples(label)
        values, objective = grow_slowly(examples, case.is_category, learner)
        scores = case.scores_at(examples, label, node, edge)
        nodes = slice(*trees.starts[label : label + 2])
        leaves = trees.values[nodes][trees.features[nodes] == LEAF].astype(float)
        reached = (examples.g * scores + 0.5 * examples.h * scores**2).sum()
        reached += 0.5 * learner.reg_lambda * (leaves**2).sum()
        np.testing.assert_allclose(reached, objective, **SUMS)
        np.testing.assert_allclose(scores, values, **SUMS)
        assert len(leaves) <= learner.max_leaves


KINDS = ["dense", "missing", "frame", "sparse"]
PLACES = enumerate(product(KINDS, [(0, 0), (1, 1), (2, 0)]))
GROWN = [
    *(
        ({"kind": kind, "window": window, "curved": curved}, {"max_leaves": 6, "reg_lambda": l2})
        for n, (kind, window) in PLACES
        for curved, l2 in [((False, 0.0), (True, 0.7))[n % 2]]
    ),
    *(
        (
            {"kind": "missing", "share": 0.7, "seed": seed, "window": (1, 0), "order": order}
            | {"curved": curved, "weighted": not curved},
            {"max_leaves": 7, "reg_lambda": 1.5, "min_child_weight": 4.0},
        )
        for seed, (order, curved) in enumerate(product([1, 2], [False, True]))
    ),
    *(({"kind": "frame", "forest": True, "seed": seed}, {"max_leaves": 8}) for seed in range(2)),
    # More labels than the 16 that are grown at a time.
    ({"n_labels": 18, "lengths": (4, 1, 3, 1)}, {"max_leaves": 4}),
    ({"n_labels": 18, "lengths": (4, 1, 3, 1), "curved": True}, {"max_leaves": 4}),
    # Few leaves, and as many as there can be.
    *(({"seed": 4, "lengths": (3, 2)}, {"max_leaves": n}) for n in (1, 2, 100)),
]
"""Arguments of cases and of learners; windows and curvature alternate over the kinds."""


@pytest.mark.parametrize(("arguments", "settings"), GROWN, ids=str)
def test_propose_agrees_with_an_exhaustive_search(arguments, settings):
    check_growth(make_case(**arguments), ContextLearner(**settings))


@pytest.mark.parametrize("seed", range(2))
def test_propose_finds_the_best_set_of_labels(seed):
    """The best of all sets is a prefix of the labels sorted by slope (Fisher 1958)."""
    learner = ContextLearner(max_leaves=2, reg_lambda=5.0)
    case = make_case(n_labels=5, curved=True, seed=seed, lengths=(4, 5))
    case.batch = Batch.from_lengths((4, 5), X=np.zeros((9, 1), np.float32))
    case.slopes.edge_curvature[:] *= np.array([0.01, 0.1, 1, 5, 20])[None, :, None]
    trees, *_ = case.grow(learner)
    for label in range(5):
        examples = case.examples(label)
        groups = [examples.before[:, 0] == k for k in range(6)]
        best = 0.0
        for chosen in product([False, True], repeat=6):
            side = np.any([group & goes for group, goes in zip(groups, chosen, strict=True)], 0)
            both = worth(examples.g[side], examples.h[side], 5.0) + worth(
                examples.g[~side], examples.h[~side], 5.0
            )
            best = max(best, 0.5 * (both - worth(examples.g, examples.h, 5.0)))
        np.testing.assert_allclose(trees.gains[trees.starts[label]], best, **SUMS)


def test_exhaustive_search_detects_other_slopes():
    """The companion of the agreement."""
    case = make_case(curved=True)
    other = replace(case, slopes=make_case(curved=True, seed=1).slopes)
    _, node, edge = other.grow(ContextLearner())
    examples = case.examples(0)
    values, _ = grow_slowly(examples, case.is_category, ContextLearner())
    assert not np.allclose(case.scores_at(examples, 0, node, edge), values, **SUMS)


def fitted(X, lengths, node, edge=None, rows=None, max_leaves=2):
    """A function with one round, fitted to these slopes."""
    node = np.asarray(node, np.float32)
    n_rows, n_labels = node.shape
    function = ContextTrees(ContextShape(n_labels, 1), ContextLearner(max_leaves=max_leaves))
    function.bind(Batch.from_lengths(lengths, X=X), Chain(1), [])
    edge = np.zeros((n_rows, n_labels, n_labels), np.float32) if edge is None else edge
    rows = np.arange(n_rows, dtype=np.int32) if rows is None else rows
    function.propose(Slopes(edge, node), rows, 0).accept(1.0)
    return function


def scores_of_single_rows(function, X):
    """(rows, labels) of instances of one position each."""
    return function.parts(Batch.from_lengths([1] * len(X), X=X), Chain(1))["node"]


def test_bins_of_many_values_are_of_equal_size():
    """With more values than bins, bins are of similar size, and a frequent value has its own."""
    random = np.random.default_rng(0)
    x = np.where(random.random(4000) < 0.5, 0.25, random.normal(size=4000)).astype(np.float32)
    node = random.normal(size=(4000, 1))
    scores = scores_of_single_rows(
        fitted(x[:, None], [1] * 4000, node, max_leaves=1000), x[:, None]
    )
    bins, sizes = np.unique(scores[x != 0.25, 0], return_counts=True)
    assert 200 < len(bins) <= 255
    assert sizes.max() <= 2 * (x != 0.25).sum() / 200
    shares = (scores[:, 0] == scores[x == 0.25, 0][0]) & (x != 0.25)
    assert shares.sum() <= 2 * 4000 / 255


# Walks.


def path(trees, tree, x, before):
    """The nodes that an example passes, each with whether it goes left there; None at the leaf."""
    at = first = trees.starts[tree]
    while (feature := trees.features[at]) != LEAF:
        left = goes_left(trees, at, x[feature] if feature >= 0 else before[-2 - feature])
        yield at, left
        at = first + (trees.left if left else trees.right)[at]
    yield at, None


def walk(trees, tree, x, before):
    """The value of one tree, by its definition."""
    *_, (leaf, _) = path(trees, tree, x, before)
    return trees.values[leaf]


def goes_left(trees, at, value):
    if np.isnan(value):
        return bool(trees.missing_left[at])
    if trees.sets[at] < 0:
        return value < trees.thresholds[at]
    words = trees.words[trees.sets[at] : trees.sets[at] + trees.set_sizes[at]]
    bits = [int(word) >> b & 1 for word in words for b in range(64)]
    return int(value) < len(bits) and bits[int(value)] == 1


def rounds_of(case, learner, n_rounds, n_jobs=1):
    """A function with several rounds, each fitted to slopes of its own."""
    function = case.function(learner, n_jobs)
    for seed in range(n_rounds):
        random = np.random.default_rng(100 + seed)
        slopes = replace(
            case.slopes,
            edge=random.normal(size=case.slopes.edge.shape).astype(np.float32),
            node=random.normal(size=case.slopes.node.shape).astype(np.float32),
        )
        function.propose(slopes, case.chosen, 0).accept(0.3)
    return function


WALKED = [
    {"kind": "dense", "window": (1, 2)},
    {"kind": "frame", "window": (1, 1), "n_labels": 2},
    {"kind": "sparse", "window": (0, 2)},
    {"kind": "missing", "order": 2},
    {"kind": "dense", "n_labels": 70, "lengths": (3, 2)},
    {"kind": "frame", "forest": True},
    {"kind": "dense", "n_labels": 1},
]


@pytest.mark.parametrize("arguments", WALKED, ids=str)
def test_scores_agree_with_plain_walks(arguments):
    case = make_case(**arguments, share=0.7)
    function = rounds_of(case, ContextLearner(max_leaves=9), 3)
    node, edge = function.parts(case.batch, case.structure).values()
    trees, K = function.trees, case.shape.n_labels
    assert (trees.features < LEAF).any() or K == 1
    for row, label in product(range(case.batch.n_rows), range(K)):
        for context in case.contexts_of(row):
            total = np.float32(0)
            for tree in range(label, trees.n_trees, K):
                total += walk(trees, tree, case.x[row].astype(np.float32), context)
            score = edge[(row, *context, label)] if case.has_context[row] else node[row, label]
            assert score == total
    assert not node[case.has_context].any()
    assert not edge[~case.has_context].any()


def test_rounds_added_singly_are_bitwise_equal_to_all_at_once():
    case = make_case("missing", order=2)
    function = rounds_of(case, ContextLearner(), 5)
    trees = function.trees
    whole = function.parts(case.batch, case.structure)
    steps = {name: np.zeros_like(scores) for name, scores in whole.items()}
    for number in range(5):
        starts = trees.starts[number * 3 : number * 3 + 4]
        one = replace(trees.between(0, (number + 1) * 3), starts=starts)
        function.add(one, function._bound, 1.0, **steps)
        np.testing.assert_equal(steps, function.parts(case.batch, case.structure, number + 1))
    np.testing.assert_equal(steps, whole)
    assert all(scores.any() for scores in whole.values())


def test_adders_add_scores_of_accepted_rounds():
    """Training adds steps of a round, a model has leaves shorter by the step."""
    case = make_case()
    function = case.function(ContextLearner())
    grown = function.propose(case.slopes, case.chosen, 0)
    steps = {"node": np.zeros((19, 3), np.float32), "edge": np.zeros((19, 3, 3), np.float32)}
    for name, add in grown.adders(grown.bound).items():
        add(steps[name], 0.3)
    grown.accept(0.3)
    np.testing.assert_equal(steps, function.parts(case.batch, case.structure))


@pytest.mark.parametrize("kind", KINDS)
def test_threads_give_the_same_bits(kind):
    case = make_case(kind, n_labels=5, order=2, window=(1, 1), lengths=(40, 1, 50, 60))
    learner = ContextLearner(max_leaves=20, trimming=0.1)
    one, two = (rounds_of(case, learner, 2, n_jobs) for n_jobs in (1, 2))
    for name in NAMES:
        np.testing.assert_array_equal(getattr(one.trees, name), getattr(two.trees, name))
    np.testing.assert_equal(
        *(function.parts(case.batch, case.structure) for function in (one, two))
    )


def test_rounds_are_kept_and_dropped():
    case = make_case("frame")
    long, short = (rounds_of(case, ContextLearner(), n) for n in (4, 2))
    copied = long.copy(ContextLearner())
    long.keep(2)
    assert (long.n_rounds, copied.n_rounds) == (2, 4)
    for name in set(NAMES) - {"words"}:
        np.testing.assert_array_equal(getattr(long.trees, name), getattr(short.trees, name))
    again = join([long.trees, short.trees])
    again.check(case.x.shape[1], 3, 1)
    assert again.n_trees == 12
    np.testing.assert_array_equal(
        long.parts(case.batch, case.structure)["edge"],
        short.parts(case.batch, case.structure)["edge"],
    )


# Influence trimming.


def test_trimming_searches_kept_rows_and_fits_all_rows():
    share = 0.2
    case = make_case("missing", seed=3, lengths=(9, 8, 7))
    tiny = np.random.default_rng(0).random(24) < 0.4
    case.slopes.edge[tiny] *= 0.05
    case.slopes.node[tiny] *= 0.05
    learner = ContextLearner(max_leaves=6, trimming=share)
    trees, node, edge = case.grow(learner)
    for label in range(3):
        influence = np.where(case.has_context, np.abs(case.slopes.edge[..., label]).sum(1),
                             np.abs(case.slopes.node[:, label]))  # fmt: skip
        order = np.argsort(influence, kind="stable")
        weights = np.where(case.has_context, 3.0, 1.0)  # a pair each
        allowed = np.ones(24, dtype=bool)
        for sums in (np.cumsum(influence[order]), np.cumsum(weights[order])):
            allowed &= sums <= share * sums[-1]
        kept = np.sort(order[~np.logical_and.accumulate(allowed)]).astype(np.int32)
        assert 0 < len(kept) <= 20
        rest = replace(case, chosen=kept)
        alone, *_ = rest.grow(replace(learner, trimming=0.0))
        ours, theirs = (slice(*t.starts[label : label + 2]) for t in (trees, alone))
        for name in ("features", "left", "right", "thresholds", "missing_left", "gains"):
            np.testing.assert_array_equal(getattr(trees, name)[ours], getattr(alone, name)[theirs])
        examples = case.examples(label)
        scores = case.scores_at(examples, label, node, edge)
        for value in np.unique(scores):
            members = scores == value
            mean = -examples.g[members].sum() / examples.h[members].sum()
            np.testing.assert_allclose(value, mean, **SUMS)
        assert len(np.unique(scores)) == 6


def test_trimming_of_a_tiny_share_changes_nothing():
    """Bit by bit: no row is so small."""
    case = make_case("frame", window=(1, 1))
    plain, trimmed = (case.grow(ContextLearner(trimming=t))[0] for t in (0.0, 1e-9))
    for name in NAMES:
        np.testing.assert_array_equal(getattr(plain, name), getattr(trimmed, name))


# What does not occur in a node.


@pytest.mark.parametrize("sign", [1, -1])
def test_absent_categories_go_to_larger_child(sign):
    frame = pd.DataFrame({"a": pd.Categorical(list("xxxxxyyz"), categories=list("wxyzv"))})
    node = sign * np.where(np.array(list("xxxxxyyz"))[:, None] == "x", -1.0, [[1.0]])
    names = ["w", "x", "y", "z", "v", None]
    asked = pd.DataFrame({"a": pd.Categorical(names, categories=list("wxyzv"))})
    scores = scores_of_single_rows(fitted(frame, [1] * 8, node), asked)
    np.testing.assert_array_equal(scores[:, 0], sign * np.array([1, 1, -1, -1, 1, 1]))


@pytest.mark.parametrize("sign", [1, -1])
def test_absent_missing_values_go_to_larger_child(sign):
    x = np.array([[1.0]] * 5 + [[2.0]] * 3, np.float32)
    asked = np.array([[np.nan], [1 * sign], [2 * sign]], np.float32)
    scores = scores_of_single_rows(fitted(sign * x, [1] * 8, x - 1.5), asked)
    np.testing.assert_array_equal(scores[:, 0], [0.5, 0.5, -0.5])


@pytest.mark.parametrize("sign", [1, -1])
def test_absent_missing_context_goes_to_larger_child(sign):
    X = np.ones((12, 1), np.float32)
    edge = np.zeros((12, 3, 3), np.float32)
    edge[:, :2], edge[:, 2] = -0.5 * sign, 1.0 * sign
    second_positions = np.arange(1, 12, 2, dtype=np.int32)
    function = fitted(X, [2] * 6, np.zeros((12, 3)), edge, second_positions)
    np.testing.assert_array_equal(scores_of_single_rows(function, X[:1]), [[0.5 * sign] * 3])


# Features of every kind.


def test_sparse_features_stay_as_they_were_passed():
    """Out of order and twice the same cell: sorted and summed in a copy."""
    numbers = np.array([1, 2, 3, 4], np.float32), np.array([3, 1, 2, 2], np.int32)
    X = sparse.csr_matrix((*numbers, np.array([0, 2, 4], np.int32)), shape=(2, 4))
    batch = Batch.from_lengths([2], X=X)
    function = ContextTrees(ContextShape(2, 1, is_sparse=True))
    function.bind(batch, Chain(1), [])
    np.testing.assert_array_equal(X.indices, [3, 1, 2, 2])
    np.testing.assert_array_equal(X.data, [1, 2, 3, 4])
    np.testing.assert_array_equal(X.indptr, [0, 2, 4])


@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_windows_reject_features_of_another_kind(kind):
    """They have other columns: trees would read beyond their rows."""
    case = make_case(kind, window=(1, 1))
    function = rounds_of(case, ContextLearner(), 1)
    other = make_case("dense" if kind == "sparse" else "sparse", window=(1, 1))
    with pytest.raises(ValueError, match=f"the model was fitted on {kind} features"):
        function.parts(other.batch, other.structure)
    with pytest.raises(ValueError, match="use one kind"):
        function.bind(case.batch, case.structure, [other.batch])
    none = Batch.from_lengths([], X=np.zeros((0, 3), np.float32))
    assert function.parts(none, case.structure)["edge"].shape == (0, 3, 3)


def test_core_rejects_rows_with_too_few_features():
    function = rounds_of(make_case("dense", window=(1, 1)), ContextLearner(), 1)
    assert function.trees.features.max() >= 3
    narrow = ContextTrees(ContextShape(3, 1), _rounds=[function.trees])
    with pytest.raises(ValueError, match="features that the rows have not"):
        narrow.parts(make_case("dense").batch, Chain(1))


def test_a_tree_may_be_as_deep_as_it_has_leaves():
    """Walks do not recurse: a stack would be at its end."""
    n = 200_000
    codes = np.arange(2 * n + 1)
    inner = (codes % 2 == 0) & (codes < 2 * n)
    asks = np.where(codes % 4 == 0, -2, 0)
    deep = TreeArrays(
        starts=np.array([0, len(codes)]),
        features=np.where(inner, asks, LEAF).astype(np.int32),
        left=np.where(inner, codes + 1, 0).astype(np.int32),
        right=np.where(inner, codes + 2, 0).astype(np.int32),
        thresholds=np.where(inner, 0, np.nan).astype(np.float32),
        missing_left=np.zeros(len(codes), np.uint8),
        sets=np.where(inner & (asks == -2), 0, -1),
        words=np.array([2], np.uint64),
        set_sizes=np.where(inner & (asks == -2), 1, 0).astype(np.int32),
        values=np.where(inner, 0, codes).astype(np.float32),
        gains=np.zeros(len(codes), np.float32),
        weights=np.zeros(len(codes), np.float32),
    )
    deep.check(1, 1, 1)
    function = ContextTrees(ContextShape(1, 1), _rounds=[deep])
    batch = Batch.from_lengths([2], X=np.ones((2, 1), np.float32))
    node, edge = function.parts(batch, Chain(1)).values()
    assert node[0, 0] == 1  # the root sends "none" to the left
    assert edge[1, 0, 0] == 2 * n


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_near_zero_numbers_are_zero_in_search_and_walks(kind):
    """Threads flush them: what bins keep apart walks would take for the same."""
    x = np.where(np.arange(40) % 3 == 0, 1e-40, 0).astype(np.float32)[:, None]
    case = make_case(lengths=(40,))
    case.slopes.edge[:, :, 0] = case.slopes.node[:, 0, None] = np.where(x > 0, 1.0, -1.0)
    case.x = np.zeros((40, 1))
    case.is_category = np.zeros(1, dtype=bool)
    if kind == "sparse":
        x = sparse.csr_matrix((x[:, 0], np.zeros(40, int), np.arange(41)), shape=(40, 1))
        case.shape = ContextShape(3, 1, is_sparse=True)
    case.batch = Batch.from_lengths([40], X=x)
    check_growth(case, ContextLearner())


@pytest.mark.parametrize("seed", range(0, 20, 4))
def test_rounding_errors_of_histograms_are_no_categories(seed):
    """Deep in a tree sums come from differences: what they leave is not taken for rows."""
    for variant in range(seed, seed + 4):
        check_absent_categories(make_case("frame", curved=True, seed=variant, lengths=(20, 15, 25)))


def check_absent_categories(case):
    """Check that values absent from a node go to the child with the larger curvature."""
    trees, *_ = case.grow(ContextLearner(max_leaves=25))
    for label in range(3):
        examples = case.examples(label)
        passed = {}
        for x, before, h in zip(examples.x, examples.before, examples.h, strict=True):
            for at, left in path(trees, label, x, before):
                passed.setdefault(at, []).append((x[1], left, h))
        for at, members in passed.items():
            if trees.features[at] != 1:
                continue
            values, left, h = map(np.array, zip(*members, strict=True))
            others = h[left].sum() * 2 > h.sum()
            for absent in set(range(5)) - set(values[~np.isnan(values)].astype(int)):
                assert goes_left(trees, at, absent) == others
            if not np.isnan(values).any():
                assert bool(trees.missing_left[at]) == others
