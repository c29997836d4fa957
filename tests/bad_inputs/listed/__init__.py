"""All bad inputs, by area.  A list is a plain module with `CASES`."""

from __future__ import annotations

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
    sweep,
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
    sweep,
    scores,
    loaders,
    shards,
    text_files,
    commands_train,
    commands_asked,
    commands_rank,
    commands_report,
)
CASES: list[Case] = [case for area in AREAS for case in area.CASES]
