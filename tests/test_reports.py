"""What the rendered reports say is what the recorded results say."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "reports" / "results"


@pytest.fixture
def load_benchmark(monkeypatch):
    """Import a benchmark as it is run: with its folder on the path."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))

    def load(name):
        spec = importlib.util.spec_from_file_location(
            f"{name}_benchmark", ROOT / "benchmarks" / f"{name}.py"
        )
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, spec.name, module)  # dataclasses look for it there
        spec.loader.exec_module(module)
        return module

    yield load
    for name in ("measuring", "cli", "latency", "tagging"):
        sys.modules.pop(name, None)


@pytest.fixture
def benchmark(load_benchmark):
    return load_benchmark("inference")


@pytest.fixture
def result():
    return json.loads((RESULTS / "inference.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "name",
    [
        "inference",
        "boosting",
        "linear",
        "hidden_units",
        "treecrf",
        "objectives",
        "ranking",
        "class_weights",
        "shards",
        "latency",
        "tagging",
        "text_template",
        "cli",
        "report_page",
    ],
)
def test_the_page_is_rendered_from_the_results(load_benchmark, name):
    module = load_benchmark(name)
    others = {
        "treecrf": "treecrf-scale.json",
        "objectives": "objectives-speed.json",
        "class_weights": "class-weights.json",
        "text_template": "text-template.json",
        "report_page": "report-page.json",
    }
    target = RESULTS / others.get(name, f"{name}.json")
    recorded = json.loads(target.read_text(encoding="utf-8"))
    assert module.PAGE.read_text(encoding="utf-8") == module.page(recorded)


def test_the_page_of_pages_is_rendered_from_their_results(load_benchmark):
    module = load_benchmark("real_work")
    assert module.PAGE.read_text(encoding="utf-8") == module.page()


def test_a_changed_figure_changes_the_page(benchmark, result):
    result["speed"][0]["seconds"]["statistics_1"] *= 100
    assert benchmark.page(result) != benchmark.PAGE.read_text(encoding="utf-8")
    assert "missed" in benchmark.page(result)


def test_the_benchmark_measures_what_it_claims(benchmark):
    node, edge, offsets = benchmark.workload(9)
    assert node.shape == (52_152, 9)
    assert edge.shape == (9, 9)
    assert len(offsets) - 1 == 6_877
    rows = benchmark.measure_speed(peers=False, repeats=1)
    assert [row["labels"] for row in rows] == [3, 9, 26]
    names = {f"{task}_{jobs}" for task in ("statistics", "viterbi") for jobs in (1, 2)}
    for row in rows:
        assert set(row["seconds"]) == {"product"} | names
        assert all(0 < seconds < 60 for seconds in row["seconds"].values())


def test_both_tools_are_given_the_same_features(load_benchmark):
    linear = load_benchmark("linear")
    sentence = [("The", "DT"), ("cats", "NNS"), ("a=b", "SYM")]
    template = linear.Template(linear.CHUNKING, ("word", "pos"))
    dicts = linear.as_dicts(template, sentence, {})
    names = [[f"{key}={text}" for key, text in position.items()] for position in dicts]
    assert names == template.features(sentence)
    assert dicts[0]["word[0]"] is sentence[0][0]


@pytest.mark.parametrize(("ours", "word"), [(0.019, "reached"), (0.021, "**missed**")])
def test_the_page_about_linear_crfs_judges_each_target(load_benchmark, ours, word):
    linear = load_benchmark("linear")
    both = {"ours": ours, "crfsuite": 0.2}
    part = {
        "command": "python benchmarks/linear.py",
        "machine": {**linear.machine(), "date": "today"},
        "took": 60.0,
        "instances": 1,
        "positions": 10,
        "iterations": 1,
        "repeats": 1,
        "seconds": {"prepared": both, "dicts": {"ours": 0.1, "crfsuite": 0.3}},
    }
    text = linear.page({"tagging": part})
    assert f"(≥ 10: {word})" in text
    assert "(≥ 2: reached)" in text
    assert "## Memory" not in text


def test_a_run_is_near_from_the_first_iteration_that_is_low_enough(load_benchmark):
    trace = load_benchmark("linear").Trace(objectives=[3.0, 1.0, 2.0, 0.5])
    assert trace.first_below(1.5) == 1
    assert trace.first_below(0.1) is None


@pytest.mark.parametrize(("theirs", "word"), [(5.1, "reached"), (4.9, "**missed**")])
def test_the_page_about_hidden_units_judges_each_size(load_benchmark, theirs, word):
    hidden_units = load_benchmark("hidden_units")
    losses = {"ours": 1.0, "torch": 1.0}
    row = {"size": 8, "seconds": {"ours": 1.0, "torch": theirs}, "first": losses, "last": losses}
    part = {
        "command": "python benchmarks/hidden_units.py",
        "machine": {**hidden_units.machine(), "date": "today"},
        "took": 60.0,
        "instances": 1,
        "positions": 10,
        "units": 3,
        "repeats": 1,
        "sizes": [row],
    }
    text = hidden_units.page({"sweep": part})
    assert f"(≥ 5: {word})" in text
    assert "## Many features" not in text


@pytest.mark.parametrize(("seconds", "word"), [(1.7, "reached"), (1.8, "**missed**")])
def test_the_page_about_treecrf_judges_growth(load_benchmark, seconds, word):
    treecrf = load_benchmark("treecrf")
    found = {"treecrf": {"1": 1.0, "7": seconds}, "linear": {}, "rounds": 3, "leaves": 2}
    part = {
        "found": found,
        "command": "python benchmarks/treecrf.py",
        "machine": {**treecrf.machine(), "date": "today"},
        "took": 60.0,
    }
    text = treecrf.page({"windows": part})
    assert f"(≤ 1.75: {word})" in text
    assert "## Memory" not in text


def test_mcnemar_counts_what_only_one_has_right(load_benchmark):
    treecrf = load_benchmark("treecrf")
    found = treecrf.mcnemar([1.0] * 9 + [0.0, 1.0], [0.0] * 8 + [1.0, 1.0, 1.0])
    assert (found["only_one"], found["only_other"], found["positions"]) == (8, 1, 11)
    assert found["p"] == pytest.approx(2 * 10 / 2**9)  # nine throws of a coin, eight or more
    assert treecrf.mcnemar([1.0], [1.0])["p"] == 1.0


def test_a_conjunction_is_a_set_of_places(load_benchmark):
    treecrf = load_benchmark("treecrf")
    assert treecrf.all_conjunctions("AC", 3)[0] == [
        "0.", "1A", "2C", "0.1A", "0.2C", "1A2C", "0.1A2C",
    ]  # fmt: skip


def test_models_that_differ_are_not_compared(load_benchmark):
    hidden_units = load_benchmark("hidden_units")
    hidden_units.check_same({"ours": 1.00005, "torch": 1.0}, 1e-4)
    for ours in (1.001, 0.999, float("nan")):
        with pytest.raises(SystemExit, match="losses differ"):
            hidden_units.check_same({"ours": ours, "torch": 1.0}, 1e-4)


def test_the_corpus_is_as_large_as_the_page_says(load_benchmark, monkeypatch):
    hidden_units = load_benchmark("hidden_units")
    monkeypatch.setattr(hidden_units, "SENTENCES", 50)
    X, labels, lengths = hidden_units.treebank_like()
    assert X.shape == (lengths.sum(), 212_610)
    assert len(labels) == lengths.sum()
    assert set(labels.tolist()) == set(range(45))
    assert (X.data == 1).all()
    assert 25 < X.nnz / len(labels) <= 30
    assert 20 < lengths.mean() < 24
