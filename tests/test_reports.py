"""Rendered reports agree with the recorded results."""

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
    for name in ("measuring", "instruction_sets", "cli", "latency", "tagging"):
        sys.modules.pop(name, None)


BY_SET = [
    "inference",
    "boosting",
    "linear",
    "hidden_units",
    "treecrf",
    "objectives",
    "ranking",
    "latency",
    "tagging",
]
"""Benchmarks that measure every instruction set."""


def recorded_by(name):
    """The recorded result of a benchmark."""
    others = {
        "treecrf": "treecrf-scale.json",
        "objectives": "objectives-speed.json",
        "class_weights": "class-weights.json",
        "text_template": "text-template.json",
        "report_page": "report-page.json",
    }
    return json.loads((RESULTS / others.get(name, f"{name}.json")).read_text(encoding="utf-8"))


def parts_by_set(result):
    """The parts of a result that were measured in every instruction set."""
    return [
        part for part in (result, *result.values()) if isinstance(part, dict) and "sets" in part
    ]


def skip_if_recorded_earlier(*names):
    """Skip where a result is older than the benchmark's measurement of instruction sets."""
    for name in names:
        if name in BY_SET and not parts_by_set(recorded_by(name)):
            pytest.skip(f"{name} was recorded before it was measured in every instruction set")


@pytest.mark.parametrize(
    "name", [*BY_SET, "class_weights", "shards", "text_template", "cli", "report_page", "gpu"]
)
def test_the_page_is_rendered_from_the_results(load_benchmark, name):
    skip_if_recorded_earlier(name)
    module = load_benchmark(name)
    assert module.PAGE.read_text(encoding="utf-8") == module.page(recorded_by(name))


@pytest.mark.parametrize("name", BY_SET)
def test_figures_with_targets_are_recorded_for_every_instruction_set(name):
    skip_if_recorded_earlier(name)
    for part in parts_by_set(recorded_by(name)):
        assert set(part["machine"]["instruction_sets"]) <= set(part["sets"])
        for figures in part["figures"].values():
            assert figures.keys() == part["sets"].keys()
            assert all(figure > 0 for figure in figures.values())


def test_the_page_of_pages_is_rendered_from_their_results(load_benchmark):
    skip_if_recorded_earlier("latency", "tagging")
    module = load_benchmark("real_work")
    assert module.PAGE.read_text(encoding="utf-8") == module.page()


def test_a_changed_figure_changes_the_page(load_benchmark):
    skip_if_recorded_earlier("inference")
    result, page = recorded_by("inference"), load_benchmark("inference").page
    result["figures"]["statistics_26"]["avx2"] = 9.04
    assert "| 9.0 (≤ 9: reached) |" in page(result)
    result["figures"]["statistics_26"]["avx2"] = 9.06
    assert "| 9.1 (≤ 9: **missed**) |" in page(result)


def test_the_benchmark_measures_what_it_claims(load_benchmark):
    benchmark = load_benchmark("inference")
    node, edge, offsets = benchmark.workload(9)
    assert node.shape == (52_152, 9)
    assert edge.shape == (9, 9)
    assert len(offsets) - 1 == 6_877
    record = {"seconds": benchmark.core("1")}
    assert list(record["seconds"]) == ["3", "9", "26"]
    names = {f"{task}_{jobs}" for task in ("statistics", "viterbi") for jobs in (1, 2)}
    for seconds in record["seconds"].values():
        assert set(seconds) == {"product"} | names
        assert all(0 < each < 60 for each in seconds.values())
    seconds = record["seconds"]["26"]
    result = benchmark.figure("viterbi_26", record, {})
    assert result == seconds["viterbi_1"] / seconds["product"]


def test_both_tools_are_given_the_same_features(load_benchmark):
    linear = load_benchmark("linear")
    sentence = [("The", "DT"), ("cats", "NNS"), ("a=b", "SYM")]
    template = linear.Template(linear.CHUNKING, ("word", "pos"))
    dicts = linear.as_dicts(template, sentence, {})
    names = [[f"{key}={text}" for key, text in position.items()] for position in dicts]
    assert names == template.features(sentence)
    assert dicts[0]["word[0]"] is sentence[0][0]


def test_training_counts_the_iterations_of_each_tool(load_benchmark):
    linear = load_benchmark("linear")
    to_near = {"letters": {"crfsuite": 100, "ours": 200}}
    record, peers = {"seconds": {"letters_1": 1.0}}, {"letters": 8.0}
    assert linear.training_figure(to_near, "training_letters", record, peers) == 4.0
    trace = linear.Trace(objectives=[3.0, 1.0, 2.0, 0.5])
    assert trace.first_below(1.5) == 1
    assert trace.first_below(0.1) is None


def test_the_page_about_hidden_units_shows_unequal_parameters(load_benchmark):
    hidden_units = load_benchmark("hidden_units")
    runs = {}
    for n_jobs in ("1", "2"):
        digests = {"hidden_sgd": n_jobs, "linear_lbfgs": "same", "products": None}
        seconds = 2 / int(n_jobs)
        runs[n_jobs] = {
            name: {"seconds": seconds, "digest": digest} for name, digest in digests.items()
        }
    part = dict.fromkeys(("instances", "units", "sweeps", "batch_size", "iterations"), 1) | {
        "command": "python benchmarks/hidden_units.py",
        "machine": {**hidden_units.machine(["avx512", "avx2"]), "date": "today"},
        "took": 60.0,
        "peers": {},
        "sets": {"avx2": runs},
        "figures": {"threads_hidden_sgd": {"avx2": 2.0}, "threads_linear_lbfgs": {"avx2": 2.0}},
    }
    text = hidden_units.page({"threads": part})
    assert "| HiddenUnitCRF, SGD | AVX2 | 2.00 s | 1.00 s | 2.00 | **no** |" in text
    assert "| LinearCRF | AVX2 | 2.00 s | 1.00 s | 2.00 | yes |" in text
    assert "## Many features" not in text


def test_mcnemar_counts_what_only_one_has_right(load_benchmark):
    treecrf = load_benchmark("treecrf")
    result = treecrf.mcnemar([1.0] * 9 + [0.0, 1.0], [0.0] * 8 + [1.0, 1.0, 1.0])
    assert (result["only_one"], result["only_other"], result["positions"]) == (8, 1, 11)
    assert result["p"] == pytest.approx(2 * 10 / 2**9)  # nine throws of a coin, eight or more
    assert treecrf.mcnemar([1.0], [1.0])["p"] == 1.0
    conjunctions = treecrf.all_conjunctions("AC", 3)[0]
    assert conjunctions == ["0.", "1A", "2C", "0.1A", "0.2C", "1A2C", "0.1A2C"]


def test_hidden_units_are_compared_on_the_corpus_of_the_page(load_benchmark, monkeypatch):
    hidden_units = load_benchmark("hidden_units")
    monkeypatch.setattr(hidden_units, "SENTENCES", 50)
    X, labels, lengths = hidden_units.treebank_like()
    assert X.shape == (lengths.sum(), 212_610)
    assert len(labels) == lengths.sum()
    assert set(labels.tolist()) == set(range(45))
    assert (X.data == 1).all()
    assert 25 < X.nnz / len(labels) <= 30
    assert 20 < lengths.mean() < 24
    hidden_units.check_same({"ours": 1.00005, "torch": 1.0}, 1e-4)
    for ours in (1.001, 0.999, float("nan")):
        with pytest.raises(SystemExit, match="losses differ"):
            hidden_units.check_same({"ours": ours, "torch": 1.0}, 1e-4)
