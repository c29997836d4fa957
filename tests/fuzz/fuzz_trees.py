"""XGBoost's trees: what passes the check must neither crash XGBoost nor be refused by it later."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pandas
from harness import fuzz
from zips import unpacked

from crfx.potentials import tree_format, ubjson
from crfx.potentials.xgboost_learner import TreeEnsemble, XGBoostLearner

SAVED = Path(__file__).parents[1] / "saved_models"
SHAPES = {"gbcrf-1": (4, 3), "gbcrf-categories-1": (2, 3), "ranking-trees-1": (4, 1)}
MODULES = ["crfx.potentials.tree_format", "crfx.potentials.ubjson"]
SEEDS = [
    bytes(SHAPES[name])
    + next(
        raw for key, raw in unpacked((SAVED / f"{name}.crfx").read_bytes()).items() if "ubj" in key
    )
    for name in SHAPES
]
NUMBERS = [-(2**31), -2, -1, 0, 1, 2, 3, 5, 1000, 2**24, 2**31 - 1, 2**40]
TEXTS = ["", "0", "1", "2", "-1", "3", "gbtree", "dart", "float", "c", "q", "99999999999"]
FLOATS = [0.0, -1.0, 1e30, float("nan"), float("inf")]


def target(raw: bytes) -> Any:
    """The first two bytes tell the number of features and of outputs."""
    if len(raw) < 2 or not raw[0] or not raw[1] or max(raw[:2]) > 20:
        return None
    n_features, n_outputs = raw[0], raw[1]
    tree_format.check(raw[2:], n_features=n_features, n_outputs=n_outputs)
    X = np.linspace(-2, 2, 6 * n_features, dtype=np.float32).reshape(6, n_features)
    X[0, 0] = np.nan
    X[1] = 2.0  # a category
    ensemble = TreeEnsemble.of(raw[2:], n_outputs)
    matrix = XGBoostLearner().matrix(_named(X, ubjson.decode(raw[2:])["learner"]))
    return ensemble.scores(matrix), ensemble.contributions(matrix), ensemble.importance("gain")


def _named(X: Any, learner: Any) -> Any:
    """A data frame where the trees know names, with categories where they say so."""
    names, types = learner.get("feature_names", []), learner.get("feature_types", [])
    if not names or len(set(names)) < len(names):
        return X
    columns = {name: X[:, k] for k, name in enumerate(names)}
    for name, kind in zip(names, types, strict=False):
        if kind == "c":
            columns[name] = pandas.Categorical.from_codes([0, 1, 2, 3, -1, 0], list("uvwx"))
    return pandas.DataFrame(columns)


TARGET = target


def _leaves(value: Any, path: tuple[Any, ...] = ()) -> Any:
    if path:
        yield path
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from _leaves(value[key], (*path, key))


def _odd(old: Any, chance: random.Random) -> Any:
    if isinstance(old, np.ndarray):
        new = old.copy()
        if chance.random() < 0.2:
            return np.resize(new, chance.choice([0, 1, len(new) + 1, max(len(new) - 1, 0)]))
        if chance.random() < 0.1:
            return new.astype(chance.choice([np.float32, np.int32, np.int64, np.uint8]))
        if len(new):
            pool = FLOATS if new.dtype.kind == "f" else NUMBERS
            with np.errstate(over="ignore", invalid="ignore"):
                new[chance.randrange(len(new))] = np.array(chance.choice(pool)).astype(new.dtype)
        return new
    if isinstance(old, str):
        return chance.choice(TEXTS)
    if isinstance(old, int | float):
        return chance.choice(NUMBERS)
    return chance.choice([None, {}, [], "x", 1, old])


def mutated(raw: bytes, max_size: int, seed: int, mutate: Any) -> bytes:
    """One or two values of the document changed; now and then its bytes."""
    chance = random.Random(seed)
    if chance.random() < 0.15:
        return bytes(mutate(raw, max_size))
    try:
        value = ubjson.decode(raw[2:])
        paths = list(_leaves(value))
        for _ in range(chance.choice([1, 1, 2])):
            *front, last = chance.choice(paths)
            at = value
            for key in front:
                at = at[key]
            if isinstance(at, dict) and chance.random() < 0.1:
                del at[last]
            else:
                at[last] = _odd(at[last], chance)
        return (raw[:2] + ubjson.encode(value))[:max_size]
    except (ValueError, KeyError, IndexError, TypeError, OverflowError):
        return chance.choice(SEEDS)


if __name__ == "__main__":
    import atheris

    fuzz(
        TARGET,
        SEEDS,
        MODULES,
        mutator=lambda raw, size, seed: mutated(raw, size, seed, atheris.Mutate),
        max_len=1 << 15,
    )
