"""Tables: rows, their settings, and the published figures.

A file in TOML::

    title = "Handwritten words"
    source = "Chen et al. 2015, Table 2"
    keep = ["right"]              # curves that are stored although nothing here shows them

    [[metrics]]                   # what a unit measures; the first is the one that counts
    name = "error"
    title = "error, %"
    group = "By letters"          # metrics of another group stand in a table of their own
    by_unit = true                # a table of this figure, unit by unit, too; by default false

    [defaults.settings]           # arguments of GBCRF, for every row that does not name another
    random_state = 0              # estimator among its own: settings = { estimator = "LinearCRF" }

    [quick]                       # what `--quick` changes
    units = 1
    settings = { n_estimators = 10 }
    data = { train = 500 }

    [[rows]]
    name = "logitboost"
    title = "LogitBoost"
    published = { error = [9.67, 0.49] }     # or one number, without the spread
    experiment = "ocr"
    units = [0, 1, 2]
    settings = { edges = "none" }            # TOML has no null: "none" stands for None
    data = {}                                # options of the experiment

    [[rows.chosen]]                          # settings of some units: what was chosen on data
    units = [0, 1]                           # that these units do not test on
    settings = { max_depth = 4 }

A row without `experiment` shows published figures only; its `note` says why. A table may ask for
plots too, `[[plots]]` and `[[bars]]`: `plot_settings` has their form; and for `[[comparisons]]`
of its rows, whose form is in `comparisons`.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reproduce.comparisons import Comparison, read_comparison
from reproduce.fields import Fields, check_distinct, check_folder_name, is_number
from reproduce.plot_settings import Bars, Plot, read_bars, read_plot


@dataclass(frozen=True, slots=True)
class Metric:
    """A figure that every unit of a table has: its name, and how to print it."""

    name: str
    title: str
    digits: int
    group: str = ""
    by_unit: bool = False


@dataclass(frozen=True, slots=True)
class Published:
    """A published figure, with its spread over folds if it was published."""

    value: float
    spread: float | None


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table; `experiment` is None where only published figures are shown.

    `chosen` has the settings, whole, of the units that have their own.
    """

    name: str
    title: str
    experiment: str | None
    units: tuple[str, ...]
    settings: dict[str, Any]
    chosen: dict[str, dict[str, Any]]
    data: dict[str, Any]
    published: dict[str, Published]
    note: str

    def settings_of(self, unit: str) -> dict[str, Any]:
        """Return the settings of a unit."""
        return self.chosen.get(unit, self.settings)


@dataclass(frozen=True, slots=True)
class Table:
    """A table ready to run: defaults are merged into the rows, and `--quick` is applied."""

    name: str
    title: str
    source: str
    metrics: tuple[Metric, ...]
    rows: tuple[Row, ...]
    plots: tuple[Plot, ...]
    bars: tuple[Bars, ...]
    comparisons: tuple[Comparison, ...]
    keep: tuple[str, ...]
    notes: tuple[str, ...]
    quick: bool

    @property
    def stem(self) -> str:
        """Return the name of its files (results, page) without extension; quick ones differ."""
        return f"{self.name}-quick" if self.quick else self.name

    def curves_of(self, row: str) -> set[str]:
        """Return the curves of a row that are stored: those that are shown, and those to keep."""
        lines = (line for plot in self.plots for line in plot.lines if line.row == row)
        shown = {name for line in lines for name in (line.curve, line.over)}
        compared = {
            comparison.curve
            for comparison in self.comparisons
            if any(row in pair for pair in comparison.pairs)
        }
        return {*self.keep, *shown, *compared}

    def row(self, name: str) -> Row:
        """Return the row of that name."""
        for row in self.rows:
            if row.name == name:
                return row
        names = ", ".join(row.name for row in self.rows)
        raise ValueError(f"table {self.name} has no row {name!r}: its rows are {names}")


def find_table(name: str) -> Path:
    """Return the file of a table, given by its name or by its path."""
    if name.endswith(".toml"):
        if not Path(name).is_file():
            raise FileNotFoundError(f"there is no file {name}")
        return Path(name)
    files = {path.stem: path for path in list_tables()}
    if name not in files:
        raise ValueError(f"there is no table {name!r}: tables are {', '.join(files)}")
    return files[name]


def list_tables() -> list[Path]:
    """Return the files of all tables: of `reports/tables` here, else of the checkout of crfx."""
    for base in (Path.cwd(), Path(__file__).parents[1]):
        if paths := sorted((base / "reports" / "tables").glob("*.toml")):
            return paths
    raise FileNotFoundError(
        "there is no folder reports/tables here: go to a checkout of crfx, or give the path of a "
        "table, a file .toml"
    )


def read_table(path: Path, *, quick: bool = False) -> Table:
    """Read and check one file; errors name the file and the place in it."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path.name}: {error}") from error
    try:
        return _table(path.stem, Fields(content, "the table"), quick)
    except ValueError as error:
        raise ValueError(f"{path.name}: {error}") from error


def _table(name: str, fields: Fields, quick: bool) -> Table:
    check_folder_name(name, "the name of the file")
    title, source = fields.text("title"), fields.text("source")
    metrics = tuple(_metric(part) for part in fields.parts("metrics"))
    check_distinct([metric.name for metric in metrics], "metric")
    if not metrics:
        raise ValueError("the table has no [[metrics]]")
    defaults = Fields(fields.mapping("defaults"), "defaults")
    less = Fields(fields.mapping("quick"), "quick")
    under, over = (
        {key: part.mapping(key) for key in ("settings", "data")} for part in (defaults, less)
    )
    enough = less.number("units", None)
    base = _Layers(under, over, enough) if quick else _Layers(under, {}, None)
    measured = [metric.name for metric in metrics]
    rows = [_row(part, base, measured, quick) for part in fields.parts("rows")]
    named = [row.name for row in rows]
    check_distinct(named, "row")
    if not rows:
        raise ValueError("the table has no [[rows]]")
    plots = tuple(read_plot(part, named) for part in fields.parts("plots"))
    bars = tuple(read_bars(part, named, measured) for part in fields.parts("bars"))
    check_distinct([*(plot.name for plot in plots), *(each.name for each in bars)], "picture")
    comparisons = tuple(read_comparison(part, named) for part in fields.parts("comparisons"))
    keep, notes = tuple(fields.texts("keep")), tuple(fields.texts("notes"))
    for part in (fields, defaults, less):
        part.nothing_left()
    return Table(
        name, title, source, metrics, tuple(rows), plots, bars, comparisons, keep, notes, quick
    )


@dataclass(frozen=True, slots=True)
class _Layers:
    """The defaults and overrides of the settings of a row, and the number of units."""

    under: dict[str, dict[str, Any]]
    over: dict[str, dict[str, Any]]
    units: int | None

    def merged(self, key: str, row_content: dict[str, Any]) -> dict[str, Any]:
        content = dict(row_content)
        if "estimator" not in row_content:  # another estimator has other arguments
            content = {**self.under.get(key, {}), **row_content, **self.over.get(key, {})}
        return {name: None if value == "none" else value for name, value in content.items()}


def _row(fields: Fields, layers: _Layers, metrics: list[str], quick: bool) -> Row:
    name = fields.text("name")
    fields.place = f"row {name!r}"
    check_folder_name(name, "the name of the row")
    experiment, note = fields.text("experiment", ""), fields.text("note", "")
    units = [str(unit) for unit in fields.values("units", ["test"])]
    check_distinct(units, f"{fields.place}: unit")
    for unit in units:
        check_folder_name(unit, f"{fields.place}: the name of a unit")
    settings_by_key = {key: fields.mapping(key) for key in ("settings", "data")}
    merged = {key: layers.merged(key, settings_by_key[key]) for key in settings_by_key}
    chosen = _chosen(fields, units, settings_by_key["settings"], layers)
    in_quick = fields.flag("quick", True)
    if not experiment and (settings_by_key["settings"] or settings_by_key["data"] or not note):
        raise ValueError(
            f"{fields.place} has no experiment: then it has no settings and no data, and a note "
            "that says why"
        )
    if not units[: layers.units]:
        raise ValueError(f"{fields.place} has no units")
    if quick and not in_quick:
        experiment, note = "", f"{note} Not in the quick version.".strip()
    kept = units[: layers.units] if experiment else []
    row = Row(
        name=name,
        title=fields.text("title"),
        experiment=experiment or None,
        units=tuple(kept),
        settings=merged["settings"] if experiment else {},
        chosen={unit: chosen[unit] for unit in kept if unit in chosen},
        data=merged["data"] if experiment else {},
        published=_published(fields, metrics),
        note=note,
    )
    fields.nothing_left()
    return row


def _chosen(
    fields: Fields, units: list[str], row_settings: dict[str, Any], layers: _Layers
) -> dict[str, dict[str, Any]]:
    by_unit: dict[str, dict[str, Any]] = {}
    for part in fields.parts("chosen"):
        part.place = f"{fields.place}, {part.place}"
        settings = layers.merged("settings", {**row_settings, **part.mapping("settings")})
        meant = [str(unit) for unit in part.values("units", [])]
        part.nothing_left()
        if not meant:
            raise ValueError(f"{part.place} has no units")
        for unit in meant:
            if unit not in units or unit in by_unit:
                what = "is chosen for twice" if unit in by_unit else "is no unit of the row"
                raise ValueError(f"{part.place}: {unit!r} {what}")
            by_unit[unit] = settings
    return by_unit


def _published(fields: Fields, metrics: list[str]) -> dict[str, Published]:
    figures = {}
    for metric, value in fields.mapping("published").items():
        if metric not in metrics:
            raise ValueError(f"{fields.place}: published {metric!r} is no metric of the table")
        pair = value if isinstance(value, list) else [value, None]
        numbers = [number for number in pair if number is not None]
        if len(pair) != 2 or any(not is_number(number) for number in numbers):
            raise ValueError(
                f"{fields.place}: published {metric!r} is {value!r}, not a number or a pair of "
                "number and spread"
            )
        figures[metric] = Published(float(pair[0]), None if pair[1] is None else float(pair[1]))
    return figures


def _metric(fields: Fields) -> Metric:
    name, title = fields.text("name"), fields.text("title")
    digits, group = fields.number("digits", 2) or 0, fields.text("group", "")
    metric = Metric(name, title, digits, group, fields.flag("by_unit", False))
    fields.nothing_left()
    return metric
