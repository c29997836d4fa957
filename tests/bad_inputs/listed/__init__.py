"""All bad inputs, by area.  A list is a plain module with `CASES`."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from listed import (
    arguments,
    commands_asked,
    commands_rank,
    commands_report,
    commands_train,
    decoding,
    labels,
    loaders,
    matrices,
    objectives,
    predicting,
    ranking,
    scores,
    shards,
    text_files,
    training,
    words,
    workers,
)
from listed.case import Case

AREAS = (
    matrices,
    words,
    labels,
    training,
    arguments,
    objectives,
    predicting,
    decoding,
    ranking,
    workers,
    scores,
    loaders,
    shards,
    text_files,
    commands_train,
    commands_asked,
    commands_rank,
    commands_report,
)


def _in_turn(cases: list[Case]) -> list[Case]:
    """Have inputs tried on subjects in turn, where several share the code that refuses them."""
    n_tried: Counter[tuple[str, ...]] = Counter()
    result = []
    for case in cases:
        names = tuple(subject.name for subject in case.subjects)
        result.append(replace(case, turn=n_tried[names]))
        n_tried[names] += case.n_inputs
    return result


CASES = _in_turn([case for area in AREAS for case in area.CASES])
