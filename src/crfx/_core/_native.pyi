"""The compiled core of crfx. Use crfx.inference."""

from typing import Annotated, Any, overload

import numpy
from numpy.typing import NDArray


class InputError(ValueError):
    pass

class Problem32:
    """A scored batch; see crfx.inference.problem."""

    def __init__(self, node: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], edge: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], offsets: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], parents: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)] | None, edge_types: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)] | None, start: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)] | None, end: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)] | None, order: int, sharing: str) -> None: ...

@overload
def sum_product(problem: Problem32, log_z: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], node: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')] | None, edge: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')] | None, edge_sum: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')] | None, edge_curvature: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')] | None, weight: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)] | None, node_gamma: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')] | None, edge_gamma: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')] | None, curvature: str | None, n_threads: int) -> None: ...

@overload
def sum_product(problem: Problem64, log_z: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], node: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')] | None, edge: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')] | None, edge_sum: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')] | None, edge_curvature: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')] | None, weight: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)] | None, node_gamma: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')] | None, edge_gamma: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')] | None, curvature: str | None, n_threads: int) -> None:
    """Fills the given arrays; those that are None are not computed."""

@overload
def expectation(problem: Problem32, cost: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], value: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], node: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], edge: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')] | None, edge_sum: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')] | None, n_threads: int) -> None: ...

@overload
def expectation(problem: Problem64, cost: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], value: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], node: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], edge: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')] | None, edge_sum: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')] | None, n_threads: int) -> None:
    """Expected cost per instance and its gradient in the scores."""

@overload
def loss_scaled(problem: Problem32, cost: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], truth: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], unit: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)] | None, value: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], node: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')] | None, node_curvature: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')] | None, edge: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')] | None, edge_curvature: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')] | None, edge_sum: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')] | None, edge_curvature_sum: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')] | None, n_threads: int) -> None: ...

@overload
def loss_scaled(problem: Problem64, cost: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], truth: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], unit: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)] | None, value: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], node: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')] | None, node_curvature: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')] | None, edge: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')] | None, edge_curvature: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')] | None, edge_sum: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')] | None, edge_curvature_sum: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')] | None, n_threads: int) -> None:
    """
    The loss-scaled sum per instance; slopes where node is given, by row or summed.
    """

@overload
def max_product(problem: Problem32, labels: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu')], scores: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], n_threads: int) -> None: ...

@overload
def max_product(problem: Problem64, labels: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu')], scores: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], n_threads: int) -> None:
    """Best labelling and its score."""

@overload
def sample(problem: Problem32, labels: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu')], seed: int, n_threads: int) -> None: ...

@overload
def sample(problem: Problem64, labels: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu')], seed: int, n_threads: int) -> None:
    """Fills labels (samples x rows)."""

@overload
def event_curvature(p: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], gamma: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)] | None, factor: float, least: float, curvature: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], n_threads: int) -> None: ...

@overload
def event_curvature(p: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], gamma: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)] | None, factor: float, least: float, curvature: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], n_threads: int) -> None:
    """
    Fills curvature with max(factor * gamma * p * (1 - p), least); no p stays above 1.
    """

@overload
def softmax(scores: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], p: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], log_z: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], n_threads: int) -> None: ...

@overload
def softmax(scores: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], p: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], log_z: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], n_threads: int) -> None:
    """Fills p (rows x K) and log_z (rows) with the softmax of every row."""

@overload
def add_table_rows(x: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], table: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], which: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], factor: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)] | None, to: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], n_threads: int) -> None: ...

@overload
def add_table_rows(x: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], table: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], which: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], factor: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)] | None, to: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], n_threads: int) -> None:
    """
    Fills to with x + factor * table[which], row by row; a negative which adds nothing.
    """

@overload
def weighted_total(weight: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], score: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], n_threads: int) -> float: ...

@overload
def weighted_total(weight: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], score: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], n_threads: int) -> float:
    """The sum of weight * score; a weight of 0 silences a score of -inf."""

@overload
def linear_scores(starts: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)] | None, weight_starts: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], outputs: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], scores: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], n_threads: int) -> None: ...

@overload
def linear_scores(starts: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)] | None, weight_starts: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], outputs: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], scores: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], n_threads: int) -> None:
    """Adds X W to scores, X by rows; values None: all 1."""

@overload
def linear_gradient(starts: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)] | None, features: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], weight_starts: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], outputs: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], slope: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], gradient: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], n_threads: int) -> None: ...

@overload
def linear_gradient(starts: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)] | None, features: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], weight_starts: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], outputs: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], slope: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], gradient: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], n_threads: int) -> None:
    """
    Adds X^T slope to gradient, one per weight; X by columns, each of one of `features`.
    """

@overload
def k_best(problem: Problem32, k: int, n_threads: int) -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.int32], dict(shape=(None,))]]: ...

@overload
def k_best(problem: Problem64, k: int, n_threads: int) -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.int32], dict(shape=(None,))]]:
    """(counts per instance, scores, labels), concatenated."""

class Problem64:
    """A scored batch; see crfx.inference.problem."""

    def __init__(self, node: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], edge: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], offsets: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], parents: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)] | None, edge_types: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)] | None, start: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)] | None, end: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)] | None, order: int, sharing: str) -> None: ...

class FeatureRows:
    """Rows of features that trees ask of."""

    @overload
    def __init__(self, values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', writable=False)], first: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', writable=False)], n_features: int, n_base: int) -> None: ...

    @overload
    def __init__(self, starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', writable=False)], values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', writable=False)], n_features: int) -> None: ...

class Bins:
    """Features as small numbers, by which trees look for splits."""

    def __init__(self, rows: FeatureRows, is_category: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', writable=False)], n_threads: int, workers: object | None = None, overlap: int = 0) -> None:
        """
        `workers` has rank, size and sum(array) -> array, or is None; the first `overlap` rows of dense values are also the last ones of the worker before.
        """

    @property
    def bytes(self) -> int: ...

class ContextTrees:
    """Trees over features and the labels before."""

    def __init__(self, starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', writable=False)], features: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', writable=False)], left: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', writable=False)], right: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', writable=False)], thresholds: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', writable=False)], missing_left: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', writable=False)], sets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', writable=False)], words: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', writable=False)], set_sizes: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', writable=False)], values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', writable=False)], *, n_labels: int, order: int) -> None: ...

    def add_scores(self, n_trees: int, rows: FeatureRows, has_context: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', writable=False)], *, step: float, edge: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C')] | None, node: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C')] | None, n_threads: int) -> None:
        """
        Adds step times the scores of the first trees to edge (rows x contexts x labels) and node (rows x labels), both flat.
        """

def grow_context_trees(bins: Bins, *, n_labels: int, order: int, has_context: NDArray[numpy.uint8], edge: NDArray[numpy.float32], edge_curvature: NDArray[numpy.float32] | None, node: NDArray[numpy.float32], node_curvature: NDArray[numpy.float32] | None, weights: NDArray[numpy.float32] | None, chosen: NDArray[numpy.int32], max_leaves: int, l2: float, min_child_weight: float, trimming: float, column_share: float, seed: int, n_threads: int, workers: object | None = None) -> tuple[NDArray[Any], ...]:
    """
    Grows a tree per label; returns the arrays that ContextTrees takes, gains and weights.
    """

class BoostedTrees:
    """Trees of features alone, ready to be walked."""

    def __init__(self, *, starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', writable=False)], outputs: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', writable=False)], left: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', writable=False)], right: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', writable=False)], features: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', writable=False)], values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', writable=False)], missing_left: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', writable=False)], sets: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', writable=False)], set_starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', writable=False)], categories: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', writable=False)], n_features: int, n_outputs: int) -> None: ...

    @property
    def n_trees(self) -> int: ...

    def score(self, rows: FeatureRows, n_trees: int, scores: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C')], n_threads: int) -> None:
        """Writes the sum of the first trees to scores (rows x outputs), flat."""

class FeatureNames:
    """Numbers the names of features; by their hash, where n_hashed is not 0."""

    def __init__(self, names: list[str], n_hashed: int = 0) -> None: ...

    def __len__(self) -> int: ...

    def names(self) -> list[str]:
        """All names, in the order of their numbers."""

    def encode(self, instances: object, grows: bool) -> tuple[NDArray[numpy.int64], NDArray[numpy.int64], NDArray[numpy.int32], NDArray[numpy.float32] | None, int]:
        """
        (lengths, starts, indices, values or None, number of unknown features).
        """

    def encode_template(self, instances: object, lines: list[tuple[str, list[tuple[int, int]]]], grows: bool) -> tuple[NDArray[numpy.int64], NDArray[numpy.int64], NDArray[numpy.int32], NDArray[numpy.float32] | None, int]:
        """
        As encode; instances are lists of columns, lines (prefix, [(column, offset)]).
        """

@overload
def hidden_scores(inputs: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', writable=False)], bias: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', writable=False)], to_label: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', writable=False)], constant: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', writable=False)], activation: str, scores: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C')], n_threads: int) -> None: ...

@overload
def hidden_scores(inputs: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', writable=False)], bias: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', writable=False)], to_label: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', writable=False)], constant: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', writable=False)], activation: str, scores: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C')], n_threads: int) -> None:
    """Fills scores (rows x K) from inputs of units (rows x H)."""

@overload
def hidden_gradient(inputs: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', writable=False)], bias: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', writable=False)], to_label: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', writable=False)], constant: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', writable=False)], activation: str, slopes: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', writable=False)], input_gradient: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C')], in_bias: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')], in_to_label: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C')], in_constant: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')], n_threads: int) -> None: ...

@overload
def hidden_gradient(inputs: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', writable=False)], bias: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', writable=False)], to_label: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', writable=False)], constant: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', writable=False)], activation: str, slopes: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', writable=False)], input_gradient: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C')], in_bias: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')], in_to_label: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C')], in_constant: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')], n_threads: int) -> None:
    """
    Fills the gradients of sum(slopes * scores) in the inputs and the parameters.
    """

class HiddenSweeps:
    """Chains whose nodes are scored by hidden units."""

    def __init__(self, chains: Chains, dense: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', writable=False)] | None, starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', writable=False)] | None, indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', writable=False)] | None, values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', writable=False)] | None, *, n_features: int, n_hidden: int, activation: str, has_skip: bool) -> None: ...

    @property
    def size(self) -> int:
        """How many parameters there are."""

    def catch_up(self, *, values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C')], sum: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')], product_then: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')], steps_then: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')], product: float, steps: float) -> None:
        """Brings all parameters to the last step."""

    def run(self, asked: SweepSteps, *, rates: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', writable=False)], dropout: float, seed: int, values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C')], sum: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')], product_then: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')], steps_then: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')], product: float, steps: float, n_counted: int) -> tuple[float, float, int]:
        """
        Sweeps once over the instances in order, changing the arrays of parameters; returns what product, steps and n_counted then are.
        """

def ranking_objective(scores: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', writable=False)], gains: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', writable=False)], offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', writable=False)], *, objective: str, temperature: float, loss_weight: float, sum_over_truths: bool, cut: int, n_samples: int, sample_all: bool, seed: int, value: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')], gradient: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')], curvature: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')] | None, effective: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')], n_threads: int) -> None:
    """
    Fills value and effective samples per query, gradient and curvature per document.
    """

MOST_SUMMED: int = 16

MOST_LISTED: int = 8

MOST_DOCUMENTS: int = 160

class SweepLoss:
    """What sweeps lower; the arrays are viewed, not copied."""

    def __init__(self, kind: str, *, class_weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', writable=False)] | None, table: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', writable=False)] | None, by_length: bool, unit: float) -> None: ...

class Chains:
    """Chains to sweep over; the arrays are viewed, not copied."""

    def __init__(self, offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', writable=False)], parents: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', writable=False)] | None, edge_types: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', writable=False)] | None, labels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', writable=False)], weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', writable=False)] | None, loss: SweepLoss, *, n_labels: int, order: int, n_types: int, sharing: str, has_edge: bool, has_start: bool, has_end: bool, base_node: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', writable=False)] | None, base_edge: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', writable=False)] | None, base_start: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', writable=False)] | None, base_end: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', writable=False)] | None, base_pairs: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', writable=False)] | None) -> None: ...

class SweepSteps:
    """Steps over instances, see crfx.trainers.sgd.Steps."""

    def __init__(self, order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', writable=False)], *, batch_size: int, first: int, step: float, period: float, penalty: float, smallest_shrinkage: float, counts: bool, n_threads: int) -> None: ...

class Sweeps:
    """Chains whose nodes are scored by linear functions."""

    def __init__(self, chains: Chains, dense: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', writable=False)] | None, starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', writable=False)] | None, indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', writable=False)] | None, values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', writable=False)] | None, weight_starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', writable=False)], outputs: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', writable=False)] | None, free: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order='C', writable=False)] | None) -> None: ...

    def run(self, asked: SweepSteps, *, values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')], sum: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')], product_then: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')], steps_then: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')], product: float, steps: float, n_counted: int) -> tuple[float, float, int]:
        """
        Sweeps once over the instances in order, changing the arrays of parameters; returns what product, steps and n_counted then are.
        """

def observed_pairs(starts: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], codes: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], n_features: int) -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.int32], dict(shape=(None,))]]:
    """
    (starts, outputs): the outputs with which each feature occurs, rising; X by rows, codes the output of each row, negative where it has none.
    """

def instruction_set() -> str:
    """Name of the instruction set in use."""

def available_threads() -> int:
    """Threads used when none are named."""
