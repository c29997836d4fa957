"""One file per published table; one function per experiment, from a task to its figures."""

from reproduce.experiments import (
    conll2003,
    convergence,
    hidden_units,
    letor,
    loss_gradients,
    objectives,
    ocr,
    protein,
    safeguard,
    tagging,
    treecrf,
    trees,
)
from reproduce.experiments.task import Experiment, Outcome, Task

EXPERIMENTS: dict[str, Experiment] = {
    "ocr": ocr.run,
    "ocr-settings": ocr.judge_settings,
    "conll2003": conll2003.run,
    "protein": protein.run,
    "convergence-likelihood": convergence.likelihood,
    "convergence-gamma": convergence.gamma,
    "safeguard": safeguard.run,
    "hidden-units": hidden_units.run,
    "objectives": objectives.run,
    "chunking": tagging.chunking,
    "pos": tagging.pos,
    "treecrf-protein": treecrf.protein,
    "treecrf-faq": treecrf.faq,
    "letor": letor.run,
    "loss-gradients": loss_gradients.run,
    "trees-upos": trees.upos,
    "trees-sst": trees.sst,
}

__all__ = ["EXPERIMENTS", "Experiment", "Outcome", "Task"]
