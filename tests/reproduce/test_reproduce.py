"""`python -m reproduce` as a user meets it."""

import json
import sys

import pytest

from reproduce.__main__ import main
from reproduce.experiments import EXPERIMENTS


@pytest.fixture(autouse=True)
def checkout(table_file, coins, monkeypatch):
    """A folder with one table, whose experiment takes no time, and no pictures."""
    monkeypatch.chdir(table_file.parents[2])
    monkeypatch.setitem(EXPERIMENTS, "coins", coins)
    text = table_file.read_text(encoding="utf-8")
    table_file.write_text(text[: text.index("[[plots]]")], encoding="utf-8")
    return table_file.parents[2]


def test_it_runs_prints_and_writes(checkout, capsys):
    assert main(["coins"]) == 0
    out, err = capsys.readouterr()
    assert "4.00 ± 1.00" in out
    assert "3 of 3" in out
    assert "coins, new, unit 2: error, % 5.00" in err
    page = (checkout / "reports" / "coins.md").read_text(encoding="utf-8")
    assert "| New way | 4.00 ± 1.00 | 4.00 | 3 of 3 |" in page
    assert "[results/coins.jsonl](results/coins.jsonl)" in page
    assert (checkout / "reports" / "results" / "coins.jsonl").is_file()


def test_it_begins_where_it_was_stopped(coins):
    assert main(["coins", "--row", "new", "--unit", "0", "2"]) == 0
    assert main(["coins"]) == 0
    assert coins.asked == [("new", "0"), ("new", "2"), ("new", "1")]


def test_quick_results_are_kept_apart(checkout, capsys):
    assert main(["coins", "--quick"]) == 0
    assert "quick version" in capsys.readouterr().out
    reports = checkout / "reports"
    assert (reports / "results" / "coins-quick.jsonl").is_file()
    quick = (reports / "coins-quick.md").read_text(encoding="utf-8")
    assert quick.startswith("# Coins (quick version:")
    assert "python -m reproduce coins --quick" in quick
    assert not (reports / "results" / "coins.jsonl").exists()
    assert not (reports / "coins.md").exists()


def test_render_runs_nothing(checkout, coins):
    assert main(["coins", "--unit", "0"]) == 0
    (checkout / "reports" / "coins.md").unlink()
    assert main(["coins", "--render"]) == 0
    assert "1 of 3" in (checkout / "reports" / "coins.md").read_text(encoding="utf-8")
    assert len(coins.asked) == 1


def test_results_may_go_elsewhere_and_to_standard_output_as_json(checkout, tmp_path, capsys):
    assert main(["coins", "--results", str(tmp_path / "mine"), "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["rows"][1]["figures"]["error"]["ours"]["value"] == 4.0
    assert (tmp_path / "mine" / "coins.jsonl").is_file()
    assert (tmp_path / "mine" / "coins.md").is_file()
    assert not (checkout / "reports" / "coins.md").exists()


def test_list_shows_source_and_progress(table_file, capsys):
    main(["coins", "--unit", "1"])
    capsys.readouterr()
    long = "Somebody 1900, Table 1, whose coins are others'; its Figure 2 has no numbers"
    text = table_file.read_text(encoding="utf-8").replace("Somebody 1900, Table 1", long)
    table_file.write_text(text, encoding="utf-8")
    assert main(["--list"]) == 0
    out = capsys.readouterr().out
    assert "1 of 3" in out
    assert "Somebody 1900, Table 1 " in out
    assert "whose" not in out
    assert "Figure 2" not in out


def test_without_matplotlib_the_figures_are_kept(table_file, checkout, monkeypatch, capsys):
    plot = '[[plots]]\nname = "curve"\ntitle = "Down"\ny = "error"\n'
    lines = 'lines = [{ row = "new", curve = "error", label = "new" }]\n'
    text = table_file.read_text(encoding="utf-8")
    table_file.write_text(text + plot + lines, encoding="utf-8")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert main(["coins"]) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert "pip install 'crfx[plot]'" in last
    assert "--render" in last
    assert "3 of 3" in (checkout / "reports" / "coins.md").read_text(encoding="utf-8")


def test_an_error_is_one_line_and_exit_code_2(capsys):
    for arguments, message in (
        ([], "name a table"),
        (["dice.toml"], "there is no file dice.toml"),
        (["coins", "--row", "newer"], "no row 'newer'"),
    ):
        assert main(arguments) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith("python -m reproduce: error: ")
        assert err.count("\n") == 1
        assert message in err
    with pytest.raises(SystemExit) as exit:
        main(["coins", "--jobs", "0"])
    assert exit.value.code == 2
    assert "0 is not a whole number of 1 or more" in capsys.readouterr().err
