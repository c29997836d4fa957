"""Objectives on listed configurations: slopes by differences, limits, bounds, and Figure 1."""

import numpy as np
import pytest

from crfx.testing import central_differences
from crfx.testing import enumerated_objectives as enumerated
from crfx.testing.enumerated_objectives import OBJECTIVES

DIFFERENCES = {"rtol": 1e-6, "atol": 1e-8}
EXACT = {"rtol": 1e-12, "atol": 1e-12}
FIGURE_ENERGIES = np.array([-1, -0.5, 0, 0.5, 1])
FIGURE_LOSSES = np.array([5.0, 1.0, 0.0, 1.0, 5.0])


def lists(seed=0, n_truths=2, n=7, n_lists=4):
    random = np.random.default_rng(seed)
    losses = random.uniform(0.1, 3.0, (n_lists, n))
    losses[:, :n_truths] = 0.0
    return 2 * random.normal(size=(n_lists, n)), losses


@pytest.mark.parametrize("name", OBJECTIVES)
def test_slopes_are_those_of_differences(name):
    objective = OBJECTIVES[name]
    for n_truths in (1, 3):
        energies, losses = lists(n_truths=n_truths)
        slope = objective(energies, losses).gradient
        expected = central_differences(
            lambda E, losses=losses: objective(E, losses).value.sum(), energies
        )
        np.testing.assert_allclose(slope, expected, **DIFFERENCES)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_configurations_of_infinite_energy_do_not_count(name):
    energies, losses = lists()
    longer = np.concatenate([energies, np.full((4, 2), np.inf)], axis=1)
    result = OBJECTIVES[name](longer, np.concatenate([losses, np.zeros((4, 2))], axis=1))
    short = OBJECTIVES[name](energies, losses)
    np.testing.assert_allclose(result.value, short.value, **EXACT)
    np.testing.assert_allclose(result.gradient[:, :7], short.gradient, **EXACT)
    assert not result.gradient[:, 7:].any()


def test_values_by_their_definitions():
    energies, losses = np.array([0.3, -0.2, 1.1]), np.array([0.0, 2.0, 1.0])
    p = np.exp(-energies) / np.exp(-energies).sum()
    q = np.exp(-losses / 0.5) / np.exp(-losses / 0.5).sum()
    augmented = np.exp(-(energies - 3 * losses))
    scaled = np.exp(-(losses * (energies - energies[0]) - losses))
    expected = {
        "likelihood": (-np.log(p[0]), {}),
        "loss_augmented": (-np.log(augmented[0] / augmented.sum()), {"weight": 3.0}),
        "loss_scaled": (np.log(scaled.sum()), {}),
        "expected_loss": ((p * losses).sum(), {}),
        "kl": ((q * np.log(q / p)).sum(), {"temperature": 0.5}),
    }
    for name, (value, options) in expected.items():
        result = OBJECTIVES[name](energies, losses, **options)
        np.testing.assert_allclose(result.value, value, **EXACT, err_msg=name)


def test_the_sum_over_truths_is_their_number_times_the_mean():
    energies, losses = lists(n_truths=3)
    for name in ("likelihood", "loss_augmented"):
        mean = OBJECTIVES[name](energies, losses)
        total = OBJECTIVES[name](energies, losses, truths="sum")
        np.testing.assert_allclose(total.value, 3 * mean.value, **EXACT)
        np.testing.assert_allclose(total.gradient, 3 * mean.gradient, **EXACT)


def test_cold_kl_is_the_mean_likelihood():
    for n_truths in (1, 3):
        energies, losses = lists(n_truths=n_truths)
        cold = enumerated.kl(energies, losses, temperature=1e-3)
        mean = enumerated.likelihood(energies, losses)
        np.testing.assert_allclose(cold.gradient, mean.gradient, **EXACT)
        np.testing.assert_allclose(cold.value, mean.value - np.log(n_truths), **EXACT)


def test_augmented_by_nothing_is_the_likelihood():
    energies, losses = lists()
    augmented = enumerated.loss_augmented(energies, losses, weight=0.0)
    np.testing.assert_array_equal(augmented.value, enumerated.likelihood(energies, losses).value)


def predicted_loss(energies, losses):
    return np.take_along_axis(losses, energies.argmin(axis=1)[:, None], axis=1)[:, 0]


def test_two_objectives_bound_the_loss_of_the_prediction():
    for seed in range(50):
        energies, losses = lists(seed, n_truths=1)
        predicted = predicted_loss(energies, losses)
        assert (enumerated.loss_augmented(energies, losses).value >= predicted).all()
        assert (enumerated.loss_scaled(energies, losses).value >= predicted).all()


def test_expected_loss_of_a_peaked_model_is_that_of_its_prediction():
    energies, losses = lists()
    loss = enumerated.expected_loss(1e3 * energies, losses)
    np.testing.assert_allclose(loss.value, predicted_loss(energies, losses), **EXACT)


def figure_1(name, **options):
    """Minus the slopes, of length 1: above 0 where the objective would raise an energy."""
    slope = -OBJECTIVES[name](FIGURE_ENERGIES, FIGURE_LOSSES, **options).gradient
    return slope / np.linalg.norm(slope)


def test_figure_1_of_the_paper():
    slopes = {name: figure_1(name) for name in OBJECTIVES}
    p = np.exp(-FIGURE_ENERGIES) / np.exp(-FIGURE_ENERGIES).sum()
    wrong = FIGURE_LOSSES > 0
    # The likelihood lowers the truth alone, and raises the others as they are probable.
    likelihood = slopes["likelihood"]
    assert likelihood[2] < 0
    np.testing.assert_allclose(likelihood[wrong] / likelihood[0], p[wrong] / p[0], **EXACT)
    # The bounds concentrate on the worst violator, the scaled one almost wholly.
    for name, share in (("loss_augmented", 0.65), ("loss_scaled", 0.70)):
        assert slopes[name][0] > share
        assert (slopes[name][wrong] > 0).all()
    scaled = slopes["loss_scaled"]
    assert scaled[0] > 1e3 * np.abs(scaled[[1, 3, 4]]).max()
    # Expected loss lowers a wrong, probable configuration more than the truth.
    expected = slopes["expected_loss"]
    assert expected[1] < expected[2] < expected[3] < 0
    assert expected[0] > 0
    assert expected[4] > 0
    # KL lowers the truth and the low-loss configuration of low probability only.
    divergence = slopes["kl"]
    assert divergence[2] < 0
    assert divergence[3] < 0
    assert (divergence[[0, 1, 4]] > 0).all()


def test_bad_input_raises():
    for energies, losses, message in (
        ([0.0], [1.0], "no configuration of loss 0"),
        ([np.inf, 1.0], [0.0, 1.0], "no configuration of loss 0"),
        ([0.0, 1.0], [0.0], "must list the same configurations"),
        ([], [], "one or more"),
        ([0.0, np.nan], [0.0, 1.0], "must be numbers"),
        ([0.0, 1.0], [0.0, -1.0], "losses must be finite and 0 or more"),
    ):
        with pytest.raises(ValueError, match=message):
            enumerated.likelihood(energies, losses)
    for temperature in (0.0, -1.0, float("nan")):
        with pytest.raises(ValueError, match=r"temperature is .*: it must be above 0"):
            enumerated.kl([0.0, 1.0], [0.0, 1.0], temperature=temperature)
