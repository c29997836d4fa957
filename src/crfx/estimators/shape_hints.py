"""What to do about X and y in another shape than ours: said where they are refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from crfx.features.matrix import is_frame
from crfx.messages import shown

NOT_SPLIT = (
    "cross-validation splits rows and leaves lengths whole: pass it a list with one matrix per "
    "instance"
)


def without_lengths(X: Any) -> str:
    """Of X that is one stacked matrix, or data frame, with no ``lengths``."""
    kind = "data frame" if is_frame(X) else "matrix"
    cut = ("X.iloc[:5]", "X.iloc[5:]") if is_frame(X) else ("X[:5]", "X[5:]")
    return (
        f"X is one {kind} of shape {X.shape}, which does not tell where instances end: pass "
        "lengths=, the number of rows of each, as in fit(X, y, lengths=[5, 3]), or a list with one "
        f"{kind} per instance, as in fit([{', '.join(cut)}], [y[:5], y[5:]]), [X] for a single "
        "one; cross-validation needs the list"
    )


def wrong_shape(X: Any) -> str:
    """Of X that is neither a list of instances nor one stacked matrix."""
    told = f"has shape {X.shape}" if hasattr(X, "shape") else f"is {shown(X)}"
    remedy = ""
    if len(getattr(X, "shape", ())) == 1:
        remedy = (
            ". Reshape your data: X.reshape(-1, 1) where it is one feature of many positions, "
            "X.reshape(1, -1) where it is one position"
        )
    return (
        f"X {told}: pass a list with one matrix per instance, or one stacked matrix with lengths="
        f"{remedy}"
    )


def beside_lengths(X: Any) -> str:
    """Of instances that come with ``lengths``, as stacked matrices do."""
    if getattr(X, "ndim", 0) == 3:
        return (
            f"lengths are given, but X has three axes, {X.shape}: if it is padded, cut it, "
            "[x[:n] for x, n in zip(X, lengths)], and y likewise; nothing is padded here"
        )
    if isinstance(X, list | tuple) and X and not hasattr(X[0], "__len__"):
        return f"lengths are given, but X is a list of {shown(X[0])} and the like: {SWAPPED}"
    if isinstance(X, list | tuple) and X and isinstance(X[0], str):
        return f"lengths are given, but X is a list of texts, {shown(X[0])} first: {SWAPPED}"
    return "lengths are given, but X is a list: a list has its own lengths"


SWAPPED = "are X and y swapped?"


def unequal(instance: int, y: Sequence[Any], lengths: Sequence[int]) -> str:
    """Of the first instance with other than one label a row; what is padded has equal lengths."""
    told = f"instance {instance}: y has {len(y[instance])} labels, X has {lengths[instance]} rows"
    counts = {len(own) for own in y if hasattr(own, "__len__")}
    if len(counts) == 1 < len(set(lengths)):
        return f"{told}; if y is padded, cut it: [own[:len(x)] for own, x in zip(y, X)]"
    if len(set(lengths)) == 1 < len(counts):
        return f"{told}; if X is padded, cut it: [x[:len(own)] for x, own in zip(X, y)]"
    return told
