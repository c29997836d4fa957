"""Copy gradients to a GPU, in the form that XGBoost reads there."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt


@contextmanager
def on_device(device: str, *arrays: npt.NDArray[np.float32]) -> Iterator[list[Any]]:
    """Copy arrays to a GPU for as long as the context lasts.

    XGBoost can copy host arrays itself, but first interleaves gradient and curvature in fresh host
    memory, which takes longer than the copy.  This uses the driver that XGBoost has loaded.
    """
    number = int(device.partition(":")[2] or 0)
    with ExitStack() as stack:
        context, pointer = ctypes.c_void_p(), ctypes.c_uint64()
        _driver("cuInit", 0)
        _driver("cuDevicePrimaryCtxRetain", ctypes.byref(context), number)
        stack.callback(_driver, "cuDevicePrimaryCtxRelease_v2", number)
        _driver("cuCtxPushCurrent_v2", context)
        stack.callback(_driver, "cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))
        copies = []
        for array in map(np.ascontiguousarray, arrays):
            _driver("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(array.nbytes))
            stack.callback(_driver, "cuMemFree_v2", ctypes.c_uint64(pointer.value))
            host = ctypes.c_void_p(array.ctypes.data)
            _driver("cuMemcpyHtoD_v2", pointer, host, ctypes.c_size_t(array.nbytes))
            interface = {
                "data": (pointer.value, True),
                "shape": array.shape,
                "typestr": "<f4",
                "version": 3,
            }
            copies.append(SimpleNamespace(shape=array.shape, __cuda_array_interface__=interface))
        _driver("cuCtxSynchronize")  # a copy may return before its last bytes have arrived
        yield copies


def _driver(name: str, *arguments: Any) -> None:
    """Call a function of the CUDA driver; raise RuntimeError if it fails."""
    library = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    if error := getattr(library, name)(*arguments):
        raise RuntimeError(f"CUDA driver: {name} failed with error {error}")
