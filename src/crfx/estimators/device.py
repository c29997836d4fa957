"""Where trees grow: the argument ``device``, checked before data are read."""

from __future__ import annotations

import re
from typing import Any

from crfx.inputs.rows import check_in_memory
from crfx.messages import shown
from crfx.potentials.xgboost_learner import check_cuda
from crfx.workers import current

CPU = "cpu"
_DEVICE = re.compile(r"cpu|cuda(:[0-9]+)?")


def check_device_name(device: Any) -> None:
    """Raise ValueError at what is no device, on this machine or on any other."""
    if not isinstance(device, str) or not _DEVICE.fullmatch(device):
        raise ValueError(
            f"device is {shown(device)}: choose 'cpu', 'cuda', or 'cuda:N' for GPU number N"
        )


def check_device(device: str, X: Any = None) -> None:
    """Raise ValueError where trees cannot grow on ``device``: no such GPU here, or nothing that
    can be trained there.  ``X`` is the argument of ``fit``.
    """
    if device == CPU:
        return
    if (n_workers := current().size) > 1:
        raise ValueError(
            f"device is {device!r}, but {n_workers} workers train together: trees grow on one GPU; "
            'use one worker, or device="cpu"'
        )
    check_in_memory(X, f"device={device!r} needs all features")
    check_cuda(device)


def with_device(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments in a model file; early files have the device in ``tree_params``."""
    params = arguments.get("tree_params")
    if "device" in arguments or not isinstance(params, dict) or "device" not in params:
        return arguments
    others = {name: value for name, value in params.items() if name != "device"}
    # XGBoost takes "gpu" for "cuda".
    device = re.sub(r"^gpu\b", "cuda", str(params["device"]))
    return {**arguments, "tree_params": others or None, "device": device}
