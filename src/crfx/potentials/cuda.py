"""Check that XGBoost can grow trees on a GPU here, before anything is trained."""

from __future__ import annotations

import json

import numpy as np

from crfx.potentials.xgboost_learner import plain_errors

REMEDY = 'to train on the CPU: set_params(device="cpu"), or --device cpu'


def check_cuda(device: str) -> None:
    """Raise ValueError unless XGBoost can use ``device``, "cuda" or "cuda:N".

    XGBoost itself only warns: without a GPU it trains on the CPU, and where N is too large on
    another GPU.  So a booster predicts one row there, and is asked which device it took.
    """
    import xgboost

    build = xgboost.build_info()
    if not build["USE_CUDA"]:
        raise ValueError(
            f"device is {device!r}, but this XGBoost ({xgboost.__version__}) was built without "
            'CUDA: xgboost.build_info()["USE_CUDA"] is False, as in the package xgboost-cpu; '
            f"install xgboost in its place; {REMEDY}"
        )
    asked = {"device": device, "fail_on_invalid_gpu_id": True, "base_score": 0.0}
    try:
        with xgboost.config_context(verbosity=0), plain_errors():
            rows = xgboost.DMatrix(np.zeros((1, 1), np.float32), nthread=1)
            booster = xgboost.Booster(asked, [rows])
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
