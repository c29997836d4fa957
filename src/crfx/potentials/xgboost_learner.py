"""The one door to XGBoost: grows the trees of one round from gradients and curvatures."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from crfx.features.matrix import is_categorical, is_frame, is_on_disk, single_entries
from crfx.features.quantile_cuts import category_counts, quantile_points
from crfx.potentials.cuda import on_device
from crfx.potentials.external_matrix import external_matrix
from crfx.workers import ALONE, WorkerLost, Workers

if TYPE_CHECKING:
    import xgboost

Array32 = npt.NDArray[np.float32]

_PLACE = re.compile(r"^\[[0-9:]+\] [^ ]+: ")
"""Time and line of C++ at the beginning of XGBoost's errors."""
_OF_CONNECTIONS = re.compile(
    r"\[(allreduce|allgather|broadcast|loop|comm|socket|tracker|coll)\w*\."
)
"""What errors about other workers contain."""
_EXPLAINING = Lock()
"""Held while a booster explains or is set: XGBoost allows no setting while it is in use."""
_REFUSED = set("[]<")
"""Characters that XGBoost does not accept in names of features."""
_POOL = "use_cuda_async_pool"
"""The setting of XGBoost that reuses GPU memory, which every booster would allocate again."""
_NEEDED = {"booster": "gbtree", "multi_strategy": "one_output_per_tree", "process_type": "default"}


@contextmanager
def plain_errors() -> Iterator[None]:
    """Raise XGBoost's errors in one line, without places in C++ and stack trace.

    Errors about other workers become `WorkerLost`, others ValueError.
    """
    import xgboost

    try:
        yield
    except xgboost.core.XGBoostError as error:
        message = _PLACE.sub("", str(error).split("\nStack trace", 1)[0].strip())
        message = " ".join(message.split())
        if _OF_CONNECTIONS.search(str(error)):
            raise WorkerLost(f"another worker is lost: {message}") from None
        raise ValueError(f"XGBoost: {message}") from None


@dataclass(frozen=True)
class XGBoostLearner:
    """Settings of growth: ``params`` for XGBoost, ``device`` "cpu", "cuda" or "cuda:N".

    Every round is a booster of its own, seeded by (seed, round), and its leaves are not shrunk: so
    training resumes exactly, and a step can still be halved after the trees are grown.
    """

    params: dict[str, Any] = field(default_factory=dict)
    max_bin: int = 256
    seed: int = 0
    n_jobs: int = 1
    device: str = "cpu"

    def training_matrix(self, X: Any, workers: Workers = ALONE) -> xgboost.DMatrix:
        """Quantise the features, once for all rounds.  Absent CSR entries and NaN are missing.

        Bins are those of the rows of all ``workers``, which must all make this call.  Bins of
        features on disk stay on disk too.
        """
        import xgboost

        points = quantile_points(X, self.max_bin, workers)
        kinds = None  # all numbers; to name them would take longer than the rest
        if any(counts := category_counts(X)):
            kinds = ["c" if count else "q" for count in counts]
        how = {"max_bin": self.max_bin, "enable_categorical": True}
        with plain_errors():
            # A matrix of these points alone has them as bins, which another matrix takes over.
            bins = xgboost.QuantileDMatrix(points, feature_types=kinds, nthread=1, **how)
            if is_on_disk(X):
                if X.shape[0]:
                    return external_matrix(X, _accepted, bins, self.n_jobs)
                X = X.no_rows
            return xgboost.QuantileDMatrix(_accepted(X), ref=bins, nthread=self.n_jobs, **how)

    def matrix(self, X: Any) -> xgboost.DMatrix:
        """Return features to predict from."""
        import xgboost

        with plain_errors():
            return xgboost.DMatrix(_accepted(X), nthread=self.n_jobs, enable_categorical=True)

    def grow(
        self, matrix: xgboost.DMatrix, gradient: Array32, curvature: Array32, number: int
    ) -> TreeEnsemble:
        """Fit one tree per column to minimise sum g d + h d^2 / 2; (rows, outputs) each."""
        import xgboost

        n_outputs = gradient.shape[1]
        config = {} if len(gradient) else {"verbosity": 0}  # no rows: a round of zeros, no warning
        if self.device != "cpu" and _POOL in xgboost.get_config():  # from XGBoost 3.2 on
            config |= {_POOL: True}
        with xgboost.config_context(**config), plain_errors():
            booster = xgboost.Booster(self._booster_params(n_outputs, number), [matrix])
            # Predicting without trees fills the booster's cache, which boosting keeps up to date:
            # scores of the training rows come from there and cost no walk through the trees. On a
            # GPU the walk costs less than moving those scores to the host.
            if self.device == "cpu":
                booster.predict(matrix, output_margin=True, training=True)
            if self.device == "cpu" or not len(gradient):
                booster.boost(matrix, 0, grad=gradient, hess=curvature)
            else:
                with on_device(self.device, gradient, curvature) as (slopes, curvatures):
                    booster.boost(matrix, 0, grad=slopes, hess=curvatures)
        return TreeEnsemble(booster, n_outputs)

    def _booster_params(self, n_outputs: int, number: int) -> dict[str, Any]:
        for name, needed in _NEEDED.items():
            if self.params.get(name, needed) != needed:
                raise ValueError(
                    f"{name} is {self.params[name]!r}: rounds are joined tree by tree, one per "
                    f"output, so it must be {needed!r}"
                )
        # XGBoost never evaluates the objective, which is there for the number of outputs.
        objective: dict[str, Any] = {"objective": "reg:squarederror"}
        if n_outputs > 1:
            objective = {"objective": "multi:softprob", "num_class": n_outputs}
        # XGBoost takes tuples, and from a file they come as lists.
        params = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in self.params.items()
        }
        return {
            "tree_method": "hist",
            "max_bin": self.max_bin,
            **params,
            **objective,
            "eta": 1.0,
            "base_score": 0.0,
            "disable_default_eval_metric": True,
            "device": self.device,
            "nthread": self.n_jobs,
            "seed": int(np.random.SeedSequence([self.seed, number]).generate_state(1)[0] >> 1),
        }


def check_rows(X: Any, workers: Workers) -> None:
    """Raise ValueError if a worker has no rows of data frames with categories.

    XGBoost would not learn there which categories there are.
    """
    if any(category_counts(X)) and not all(workers.gather(X.shape[0])):
        raise ValueError(
            "X has columns of categories, of which every worker needs rows, to learn from and of "
            "the eval_set, and one has none: use fewer workers"
        )


def _accepted(X: Any) -> Any:
    """Return X in a form that XGBoost accepts."""
    if not is_frame(X):
        return single_entries(X) if sparse.issparse(X) else X
    # Columns without any category become numbers, all missing.
    empty = {
        name: np.full(len(X), np.nan, dtype=np.float32)
        for name in X.columns
        if is_categorical(X[name]) and not len(X[name].cat.categories)
    }
    X = X.assign(**empty) if empty else X
    # Names that XGBoost accepts stay: constraints in ``tree_params`` may refer to them.
    if any(_REFUSED & set(str(name)) for name in X.columns):
        return X.set_axis([f"f{place}" for place in range(X.shape[1])], axis=1)
    return X


class TreeEnsemble:
    """Trees as XGBoost's own model: of a round that was grown, or of all rounds, to be explained.

    Scores of models come from `crfx.potentials.trees.TreeScorer`, which must give the same bits.
    """

    def __init__(self, booster: xgboost.Booster, n_outputs: int) -> None:
        self._booster, self.n_outputs = booster, n_outputs

    @classmethod
    def of(cls, raw: bytes, n_outputs: int, n_jobs: int = 1) -> TreeEnsemble:
        """Read XGBoost's binary format."""
        import xgboost

        booster = xgboost.Booster({"nthread": n_jobs})
        with plain_errors():
            booster.load_model(bytearray(raw))
        return cls(booster, n_outputs)

    def raw(self) -> bytes:
        """Return the trees in XGBoost's binary format."""
        return bytes(self._booster.save_raw("ubj"))

    def training_scores(self, matrix: xgboost.DMatrix) -> Array32:
        """Return (rows, outputs) on the matrix they were grown on, which XGBoost has cached."""
        if not matrix.num_row():  # XGBoost warns
            return np.zeros((0, self.n_outputs), dtype=np.float32)
        margins = self._booster.predict(matrix, output_margin=True, training=True)
        return np.asarray(margins).reshape(-1, self.n_outputs)

    def scores(self, matrix: xgboost.DMatrix, n_rounds: int | None = None) -> Array32:
        """Return (rows, outputs): the sum of the trees of the first ``n_rounds`` rounds."""
        return self._predicted(matrix, (self.n_outputs,), n_rounds, output_margin=True)

    def contributions(self, matrix: xgboost.DMatrix, n_rounds: int | None = None) -> Array32:
        """Return (rows, outputs, features + 1) SHAP values; the last is the expected score."""
        shape = self.n_outputs, self._booster.num_features() + 1
        with _EXPLAINING:
            return self._predicted(matrix, shape, n_rounds, pred_contribs=True)

    def _predicted(
        self, matrix: xgboost.DMatrix, shape: tuple[int, ...], n_rounds: int | None, **kind: bool
    ) -> Array32:
        """Return (rows, *shape)."""
        shape = matrix.num_row(), *shape
        if n_rounds == 0 or not matrix.num_row():  # 0 means all rounds to XGBoost
            return np.zeros(shape, np.float32)
        # `crfx.features.Columns` has compared names; XGBoost would refuse arrays beside frames.
        with plain_errors():
            values = self._booster.predict(
                matrix, validate_features=False, iteration_range=(0, n_rounds or 0), **kind
            )
        return np.asarray(values, dtype=np.float32).reshape(shape)

    def use_threads(self, n_jobs: int) -> None:
        """Predict on ``n_jobs`` threads from now on."""
        with _EXPLAINING:
            self._booster.set_param({"nthread": n_jobs})

    def gains(self) -> npt.NDArray[np.float64]:
        """Return (features,) the total gain of the splits at each."""
        gains = np.zeros(self._booster.num_features())
        for column, gain in self.importance("total_gain").items():
            gains[column] = gain
        return gains

    def importance(self, kind: str) -> dict[int, float]:
        """Return total or mean gain, cover or number of splits, of the columns that are used."""
        with _EXPLAINING, plain_errors():
            importance: dict[str, Any] = self._booster.get_score(importance_type=kind)
            names = self._booster.feature_names
        if names is None:
            names = [f"f{number}" for number in range(self._booster.num_features())]
        places = {name: place for place, name in enumerate(names)}
        return {places[name]: float(np.sum(value)) for name, value in importance.items()}


REMEDY = 'to train on the CPU: set_params(device="cpu"), or --device cpu'


def check_cuda(device: str) -> None:
    """Raise ValueError unless XGBoost can use ``device``, "cuda" or "cuda:N".

    XGBoost itself only warns: without a GPU it trains on the CPU, and if N is too large on another
    GPU.  So a booster predicts one row, and its configuration says which device it used.
    """
    import xgboost

    build = xgboost.build_info()
    if not build["USE_CUDA"]:
        raise ValueError(
            f"device is {device!r}, but this XGBoost ({xgboost.__version__}) was built without "
            'CUDA: xgboost.build_info()["USE_CUDA"] is False, as in the package xgboost-cpu; '
            f"install xgboost in its place; {REMEDY}"
        )
    params = {"device": device, "fail_on_invalid_gpu_id": True, "base_score": 0.0}
    try:
        with xgboost.config_context(verbosity=0), plain_errors():
            rows = xgboost.DMatrix(np.zeros((1, 1), np.float32), nthread=1)
            booster = xgboost.Booster(params, [rows])
            booster.predict(rows)  # which runs on the device
            config = json.loads(booster.save_config())
    except ValueError as error:
        raise ValueError(f"device is {device!r}, which cannot be used: {error}; {REMEDY}") from None
    if not config["learner"]["generic_param"]["device"].startswith("cuda"):
        version = ".".join(map(str, build["CUDA_VERSION"]))
        raise ValueError(
            f"device is {device!r}, but XGBoost finds no CUDA device: check that nvidia-smi lists "
            f"a GPU, that its driver supports CUDA {version}, and that CUDA_VISIBLE_DEVICES does "
            f"not hide it; {REMEDY}"
        )
