"""The classes that a model file can name, and `load`."""

from __future__ import annotations

import os
import re
from importlib import import_module
from typing import Any

from crfx.estimators.arguments import check_arguments
from crfx.io.model_file import read
from crfx.serialisation.saved import Saved

CLASSES = {
    "GBCRF": "crfx.estimators.gbcrf",
    "HiddenUnitCRF": "crfx.estimators.hidden_unit",
    "LinearCRF": "crfx.estimators.linear",
    "RankingCRF": "crfx.estimators.ranking",
    "TreeCRF": "crfx.estimators.treecrf",
}
"""The modules of classes by name: a name in a file selects one of them, and nothing else."""


def class_of(name: str) -> Any:
    """Return the class of a name, one of `CLASSES`."""
    return getattr(import_module(CLASSES[name]), name)


def load(path: str | os.PathLike[str]) -> Any:
    """Read an estimator that ``save`` wrote.

    Nothing in the file is executed, so that files from others are safe to load.

    Parameters
    ----------
    path : str or path
        The model file.

    Returns
    -------
    A fitted estimator of the class that was saved.

    Raises
    ------
    ValueError
        If the file is damaged, or is not a model file of crfx.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from crfx import LinearCRF, load
    >>> crf = LinearCRF(n_jobs=1).fit([[["hot"], ["cold"]]], [["sun", "rain"]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     crf.save(Path(folder) / "weather.crfx")
    ...     loaded = load(Path(folder) / "weather.crfx")
    >>> loaded.predict([[["cold"]]])[0].tolist()
    ['rain']
    """
    state = read(os.fspath(path))  # a number would be an open file of the system
    try:
        saved = Saved.from_state(state)
        estimator = class_of(saved.class_name)(**_with_device(saved.arguments))
        check_arguments(estimator)
        vars(estimator).update(saved.attributes())
        state.check_all_read()
    except (KeyError, TypeError, IndexError, AttributeError, ValueError, OverflowError) as error:
        message = " ".join(str(error).split())
        raise ValueError(f"{os.fspath(path)} is not a model file of crfx: {message}") from None
    return estimator


def check_can_be_saved(kind: type) -> None:
    """Raise ValueError unless `load` knows the class."""
    if CLASSES.get(kind.__name__) != kind.__module__:
        raise ValueError(f"a {kind.__name__} cannot be saved: load would not know it")


def _with_device(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments in a model file; early files have the device in ``tree_params``."""
    params = arguments.get("tree_params")
    if "device" in arguments or not isinstance(params, dict) or "device" not in params:
        return arguments
    others = {name: value for name, value in params.items() if name != "device"}
    # XGBoost takes "gpu" for "cuda".
    device = re.sub(r"^gpu\b", "cuda", str(params["device"]))
    return {**arguments, "tree_params": others or None, "device": device}
