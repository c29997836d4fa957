"""The page says what the results say."""

import dataclasses
from pathlib import Path

import pytest

from reproduce import plots, render
from reproduce.experiments import EXPERIMENTS
from reproduce.results import read_units, write_units
from reproduce.runner import missing, run
from reproduce.summary import as_json, summarise
from reproduce.table import read_table

REPORTS = Path(__file__).parents[2] / "reports"


@pytest.fixture
def done(table_file, coins, tmp_path):
    """The table with two of its three units done."""
    table = read_table(table_file)
    tasks = missing(table, tmp_path, units=["0", "1"])
    run(table, tasks, tmp_path, experiments={"coins": coins})
    return table


def page(table, results):
    return render.page(table, summarise(table, results), "results")


def test_ours_stands_beside_the_published_figure(done, tmp_path):
    text = page(done, tmp_path)
    # Units gave 3 and 4: mean 3.5, standard deviation 0.71.
    assert "| New way | 3.50 ± 0.71 | 4.00 | 2 of 3 |" in text
    assert "| Old way | – | 9.50 ± 0.50 | – | – |" in text
    assert "# Coins\n" in text
    assert "Somebody 1900, Table 1" in text
    assert "- Coins are fair." in text
    assert "- Old way: open, comes later." in text
    assert "`random_state=0, rounds=10, edges=None`; data: `start=3.0`" in text
    assert ": 2 units" in text


COMPARED = '[[comparisons]]\ntitle = "Apart"\ncurve = "error"\npairs = [["new", "newer"]]\n'
NEWER = '[[rows]]\nname = "newer"\ntitle = "Newer way"\nexperiment = "coins"\nunits = [0, 1]\n'


def test_rows_are_compared_on_what_both_have_done(done, table_file, coins, tmp_path):
    text = table_file.read_text(encoding="utf-8")
    more = f"{NEWER}data = {{ start = 2.5 }}\n{COMPARED}[[plots]]"
    table_file.write_text(text.replace("[[plots]]", more, 1), encoding="utf-8")
    table = read_table(table_file)
    assert "## Comparisons" not in page(table, tmp_path)
    tasks = missing(table, tmp_path, rows=["newer"])
    run(table, tasks, tmp_path, experiments={"coins": coins})
    # In both units the first number of the curve is 9, the second 3 + unit or 2.5 + unit.
    text = page(table, tmp_path)
    assert "**Apart**" in text
    assert "| New way | Newer way | 25.00 | 0.00 to 50.00 | 2 / 2 / 0 | p = 0.5 |" in text


def test_settings_that_are_not_there_leave_no_mark(done, table_file, tmp_path):
    text = table_file.read_text(encoding="utf-8")
    text = text.replace("random_state = 0\n", "").replace('rounds = 10, edges = "none"', "")
    table_file.write_text(text, encoding="utf-8")
    assert "- New way (`new`): data: `start=3.0`\n" in page(read_table(table_file), tmp_path)
    table_file.write_text(text.replace("data = { start = 3.0 }", ""), encoding="utf-8")
    assert "- New way (`new`): the defaults\n" in page(read_table(table_file), tmp_path)


def test_where_nothing_is_drawn_there_is_no_seed(done, tmp_path):
    unit = read_units(tmp_path, done)["new", "0"]
    write_units(tmp_path, done, {("new", "0"): dataclasses.replace(unit, seed=None)})
    text = page(done, tmp_path)
    assert "; no seed: 1 unit\n" in text
    assert "; seed 0: 1 unit\n" in text


def test_metrics_of_another_group_stand_in_a_table_of_their_own(done, table_file, tmp_path):
    text = table_file.read_text(encoding="utf-8")
    more = '[[metrics]]\nname = "time"\ntitle = "time, h"\ngroup = "Effort"\n'
    table_file.write_text(text.replace("[defaults", f"{more}[defaults"), encoding="utf-8")
    table = read_table(table_file)
    text = page(table, tmp_path)
    assert "|  | error, % | published | units | time |" in text
    assert "**Effort**\n\n|  | time, h | units | time |" in text
    shown = render.for_terminal(table, summarise(table, tmp_path))
    assert [column.header for column in shown.columns][1:3] == ["error, %", "published"]
    assert "on the page too: Effort" in shown.caption


def test_a_figure_is_shown_unit_by_unit_where_asked(done, table_file, tmp_path):
    text = table_file.read_text(encoding="utf-8")
    asked = text.replace('title = "error, %"', 'title = "error, %"\nby_unit = true')
    table_file.write_text(asked, encoding="utf-8")
    table = read_table(table_file)
    text = page(table, tmp_path)
    assert "**error, % by unit**\n\n|  | unit 0 | unit 1 |" in text
    assert "| New way | 3.00 | 4.00 |" in text
    assert "by unit" not in page(table, tmp_path / "nothing")


def test_units_of_other_settings_are_not_shown(done, table_file, tmp_path):
    text = table_file.read_text(encoding="utf-8")
    table_file.write_text(text.replace("rounds = 10", "rounds = 20"), encoding="utf-8")
    assert "| New way | – | 4.00 | 0 of 3 |" in page(read_table(table_file), tmp_path)


def test_as_json(done, tmp_path):
    old, new = as_json(done, summarise(done, tmp_path))["rows"]
    assert (new["done"], new["units"]) == (["0", "1"], ["0", "1", "2"])
    assert new["figures"]["error"]["ours"]["value"] == 3.5
    assert new["figures"]["error"]["published"] == {"value": 4.0, "spread": None}
    assert old["figures"]["error"]["ours"] is None


def test_pictures_are_drawn_and_shown(done, tmp_path):
    text = page(done, tmp_path)
    assert "![Down](figures/coins-curve.png)\n\n![Ways](figures/coins-ways.png)" in text
    nothing = summarise(done, tmp_path / "nothing")
    assert "![" not in page(done, tmp_path / "nothing")
    assert plots.draw(done, nothing, tmp_path) == []
    pytest.importorskip("matplotlib", reason="pictures need crfx[plot]")
    paths = plots.draw(done, summarise(done, tmp_path), tmp_path)
    assert [path.name for path in paths] == ["coins-curve.png", "coins-ways.png"]
    for path in paths:
        assert path.read_bytes().startswith(b"\x89PNG")


def test_bars_stand_for_what_is_done(done, tmp_path):
    """The old way has published figures alone: neither its bars are shown nor what has no other."""
    _, ways = plots.pictures(done, summarise(done, tmp_path))
    assert ways.draw.keywords["panels"] == {"Fair": {"by hand": {"old": None, "new": 3.5}}}
    assert ways.draw.keywords["y_label"] == "error, %"


def test_committed_pages_are_rendered_from_the_results():
    """A table without results has no page; one with results has the page that they give."""
    for path in sorted(REPORTS.glob("tables/*.toml")):
        table = read_table(path)
        written = render.page_path(table, REPORTS)
        done = any(each.units for each in summarise(table, REPORTS / "results"))
        assert written.exists() == done, path.stem
        if done:
            assert written.read_text(encoding="utf-8") == page(table, REPORTS / "results")


def test_every_experiment_is_in_a_table():
    tables = [read_table(path) for path in REPORTS.glob("tables/*.toml")]
    assert {row.experiment for table in tables for row in table.rows} - {None} == set(EXPERIMENTS)
