"""The report of `benchmarks/distributed.py`, rendered from the measurements."""

from __future__ import annotations

import json
from typing import Any

from benchmarks.clusters import agreement, cost, overhead, scale
from benchmarks.measuring import RESULTS, host_line, verdict

NAMED = ("crfx", "numpy", "xgboost", "dask")
BILLION = 1_000_000_000


def rendered(result: dict[str, Any]) -> str:
    """Return the page with all measured parts."""
    lines = [
        "# On many machines, and beyond memory",
        "",
        "Rendered by `benchmarks/distributed.py` from "
        "[results/distributed.json](results/distributed.json). Workers are processes of one "
        "machine, with one thread each; [docs/cluster.md](../docs/cluster.md) tells how to use "
        "them, [docs/scale.md](../docs/scale.md) what to expect of more.",
        "",
        *_summary(result),
    ]
    parts = {
        "agreement": ("The same model", _agreement),
        "overhead": ("One worker against none", _overhead),
        "kills": ("Workers killed at random", _kills),
        "scale": ("Seconds of a round", _scale),
        "large": ("Ten million positions", _large),
    }
    for name, (title, render) in parts.items():
        if name in result:
            lines += ["", f"## {title}", "", host_line(result[name], NAMED), ""]
            lines += render(result[name])
    if (beyond := _out_of_core()) is not None:
        lines += ["", "## Beyond memory", "", host_line(beyond, NAMED), "", *_beyond(beyond)]
    return "\n".join([*lines, ""])


def _summary(result: dict[str, Any]) -> list[str]:
    """Return the targets and the results."""
    lines = ["| what | to reach | measured | |", "|---|---|---|---|"]

    def add(what: str, wanted: str, got: str, reached: bool) -> None:
        lines.append(f"| {what} | {wanted} | {got} | {verdict(reached)} |")

    if "agreement" in result:
        rows = [row for row in result["agreement"]["rows"] if row["is_exact"]]
        same = min(row["same"] for row in rows)
        add("1, 2, 3 workers: same answers", "≥ 99.9 %", f"{100 * same:.3f} %", same >= 0.999)
        worst = max(row["objective"] for row in rows)
        add("objective, relative", "≤ 1e-3", f"{worst:.1e}", worst <= agreement.SAME_OBJECTIVE)
        for name in dict.fromkeys(row["name"] for row in rows if "parameters" in row):
            far = max(row["parameters"] for row in rows if row["name"] == name)
            add(f"parameters of {name}", "≤ 1e-4", f"{far:.1e}", far <= agreement.SAME_PARAMETERS)
        tables = [row for row in rows if row["is_table"] and row["name"].startswith("GBCRF")]
        most = max(row["bytes_per_round"] / _allowed(row) for row in tables)
        add("bytes a round of GBCRF, beside XGBoost's", "≤ 16 labels² + 1 kB",
            f"{most:.2f} of that", most <= 1)  # fmt: skip
    if "overhead" in result:
        ratio = max(row["ratio"] for row in result["overhead"]["rows"])
        add("one worker against none", f"≤ {overhead.MOST}×", f"{ratio:.2f}×",
            ratio <= overhead.MOST)  # fmt: skip
    if (part := _out_of_core()) is not None:
        times = _feature_bytes(part) / part["shards"]["bytes"]
        ratio = part["shards"]["seconds"] / part["memory"]["seconds"]
        add("wide data out of core", "4× the memory, ≤ 3× the time",
            f"{times:.2f}×, {ratio:.2f}×", times >= 4 and ratio <= 3)  # fmt: skip
    if "large" in result:
        peak = max(row["peak"] for row in result["large"]["rows"])
        add("10 million positions × 20 features × 9 labels, 10 rounds", "≤ 20 GB",
            f"{peak / 1e9:.1f} GB", peak <= scale.MOST_BYTES)  # fmt: skip
    if "kills" in result:
        rows = result["kills"]["rows"]
        same = sum(row["identical"] for row in rows)
        add("random kills", "20, none lost, identical model", f"{len(rows)}, {same} identical",
            len(rows) >= 20 and same == len(rows))  # fmt: skip
    return lines


def _out_of_core() -> dict[str, Any] | None:
    """Return the measurements of `out_of_core.py`, if there are any."""
    path = RESULTS / "out-of-core.json"
    if not path.exists():
        return None
    result: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return result


def _feature_bytes(part: dict[str, Any]) -> float:
    return 4.0 * part["sizes"]["features"] * part["shards"]["rows"]


def _beyond(part: dict[str, Any]) -> list[str]:
    rows, sizes = part["shards"]["rows"], part["sizes"]
    same = part["shards"]["predictions"] == part["memory"]["predictions"]
    lines = [
        f"`GBCRF`, {part['rounds']} rounds, `max_depth={part['depth']}`, one thread: {rows:,} "
        f"rows, {sizes['features']} features in float32 ({_feature_bytes(part) / 1e9:.2f} GB), "
        f"{sizes['labels']} labels, in shards of {sizes['shard']:,} rows. Anonymous memory, which "
        f"page caches are no part of; {part['nothing']['bytes'] / 1e6:.0f} MB of it is a process "
        f"that does nothing. Predictions are {'the same' if same else '**not** the same'}.",
        "",
        "| features | peak | s | s a round |",
        "|---|---|---|---|",
    ]
    for name, where in (("shards", "on disk"), ("memory", "in memory")):
        row = part[name]
        lines.append(
            f"| {where} | {row['bytes'] / 1e6:,.0f} MB | {row['seconds']:.0f} | "
            f"{row['round']:.1f} |"
        )
    return lines


def _allowed(row: dict[str, Any]) -> float:
    return 16 * row["n_labels"] ** 2 + 1000


def _agreement(part: dict[str, Any]) -> list[str]:
    lines = [
        "Against the same estimator without a cluster, on one thread. Labels of held-out positions "
        "(of rankings, the places of documents) that are the same; the objective at the end, "
        "relative; of weights and transitions the largest difference. Sweeps (SGD, large margin, "
        "linear rankings) are averaged over workers ten times each: two workers are another "
        "algorithm there, and one is the same. Where `tol` ends L-BFGS before it has converged, "
        "rounding says at which iteration, and models are as near as `tol`.",
        "",
        "| | workers | same | objective | parameters | bytes a round | s | s without |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in part["rows"]:
        far = f"{row['parameters']:.1e}" if "parameters" in row else ""
        lines.append(
            f"| {row['name']} | {row['workers']} | {100 * row['same']:.3f} % | "
            f"{row['objective']:.1e} | {far} | {row['bytes_per_round']:,.0f} | "
            f"{row['seconds']:.1f} | {row['seconds_alone']:.1f} |"
        )
    return lines


def _overhead(part: dict[str, Any]) -> list[str]:
    lines = ["| OCR | s without | s with one worker | ratio |", "|---|---|---|---|"]
    return lines + [
        f"| {row['name']} | {row['here']:.1f} | {row['there']:.1f} | {row['ratio']:.2f} |"
        for row in part["rows"]
    ]


def _kills(part: dict[str, Any]) -> list[str]:
    lines = [
        f"{part['workers']} workers train on 600 words; one of them gets SIGKILL at a random "
        "moment, is started again by Dask, and training resumes from the last saved model. "
        "Identical: trees or weights, transitions and the objective of every round, to the bit.",
        "",
        "| | worker | after s | s undisturbed | s | identical |",
        "|---|---|---|---|---|---|",
    ]
    return lines + [
        f"| {row['name']} | {row['worker']} | {row['after']:.1f} | {row['undisturbed']:.1f} | "
        f"{row['seconds']:.1f} | {'yes' if row['identical'] else '**no**'} |"
        for row in part["rows"]
    ]


def _scale(part: dict[str, Any]) -> list[str]:
    cores = part["machine"]["cores"]
    lines = [
        f"{part['features']} features, {part['labels']} labels, chains of 20. Told: by the model "
        "below.",
        "",
        "| | workers | rows | s a round | predicted | bytes a round |",
        "|---|---|---|---|---|---|",
    ]
    models = models_of(part)
    for row in part["rows"]:
        predicted = cost.seconds(models[row["name"]], row["rows"], row["workers"], cores)
        lines.append(
            f"| {row['name']} | {row['workers']} | {row['rows']:,} | {row['seconds']:.3f} | "
            f"{predicted:.3f} | {row['bytes_per_round']:,.0f} |"
        )
    lines += [
        "",
        "Seconds of a round = *row* · rows / min(workers, cores) + *worker* · (workers − 1) + "
        "*round*, by least squares:",
        "",
        "| | row | worker | round | largest error |",
        "|---|---|---|---|---|",
    ]
    for name, model in models.items():
        lines.append(
            f"| {name} | {model['row']:.2e} | {model['worker']:.2e} | {model['round']:.2e} | "
            f"{100 * model['error']:.0f} % |"
        )
    lines += [
        "",
        "One billion positions, if every worker has a core of its own:",
        "",
        "| | workers | s a round | rows of each |",
        "|---|---|---|---|",
    ]
    for name, model in models.items():
        for number in (10, 50, 200):
            predicted = cost.seconds(model, BILLION, number, number)
            lines.append(f"| {name} | {number} | {predicted:.1f} | {BILLION // number:,} |")
    return lines


def models_of(part: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Return the cost model of each estimator, by name."""
    cores = part["machine"]["cores"]
    names = dict.fromkeys(row["name"] for row in part["rows"])
    return {
        name: cost.fitted([row for row in part["rows"] if row["name"] == name], cores)
        for name in names
    }


def _large(part: dict[str, Any]) -> list[str]:
    lines = [
        f"{part['features']} features, {part['labels']} labels, from ten shards. The peak is that "
        "of all processes together, client and workers.",
        "",
        "| | workers | rows | rounds | s | s a round | peak |",
        "|---|---|---|---|---|---|---|",
    ]
    return lines + [
        f"| {row['name']} | {row['workers']} | {row['rows']:,} | {row['rounds']} | "
        f"{row['seconds']:.0f} | {row['round']:.1f} | {row['peak'] / 1e9:.1f} GB |"
        for row in part["rows"]
    ]
