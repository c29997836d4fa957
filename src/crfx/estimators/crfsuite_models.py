"""Models of CRFsuite as a LinearCRF: the same labels, the same probabilities."""

from __future__ import annotations

import os

import numpy as np
from scipy import sparse

from crfx.estimators.linear import LinearCRF
from crfx.features import Vocabulary
from crfx.features.columns import Columns
from crfx.io import crfsuite_model
from crfx.model.building import check_table_size
from crfx.model.model import Model
from crfx.potentials.linear import LinearFunction
from crfx.potentials.transitions import Tables
from crfx.potentials.weight_pattern import WeightPattern


def from_crfsuite(path: str | os.PathLike[str]) -> LinearCRF:
    """Return a fitted LinearCRF that tags as CRFsuite's model file does, without CRFsuite.

    It takes X as CRFsuite does: lists of feature dicts or of texts.  It has no start and end
    scores. It can be saved, and passed as ``init_model``, like any other model.  The file does not
    hold how the model was trained: the arguments of training are the defaults of LinearCRF.

    Parameters
    ----------
    path : str or path
        A model file that CRFsuite, python-crfsuite or sklearn-crfsuite wrote.

    Returns
    -------
    LinearCRF

    Raises
    ------
    ValueError
        If the file is damaged, or is not a linear-chain model of CRFsuite.

    Examples
    --------
    >>> crf = from_crfsuite("ner.crfsuite")  # doctest: +SKIP
    >>> crf.predict([[["word=Rome"]]])  # doctest: +SKIP
    [array(['B-LOC'], dtype='<U5')]
    """
    read = crfsuite_model.read(path)
    crf = LinearCRF(features="observed", start_end=False)
    try:
        crf.columns_ = Columns.of_words(Vocabulary(read.attributes))
        crf.classes_ = np.array(sorted(read.labels), dtype=np.str_)
        crf.model_ = _model(crf, read)
    except ValueError as error:
        raise ValueError(f"{os.fspath(path)} cannot be taken over: {error}") from None
    crf.n_iter_, crf.best_iteration_ = 0, 0
    crf.history_ = {"objective": [], "seconds": []}
    return crf


def _model(crf: LinearCRF, read: crfsuite_model.CRFsuiteModel) -> Model:
    """Return the model; labels are sorted here, and in the order of their first use there."""
    n_labels = len(read.labels)
    if not n_labels:
        raise ValueError("it has no labels")
    check_table_size(crf.order, n_labels)
    code_of = {label: code for code, label in enumerate(crf.classes_.tolist())}
    codes = np.array([code_of[label] for label in read.labels])
    attributes, labels, weights = read.states
    shape = len(read.attributes), n_labels
    matrix = sparse.csr_matrix((weights, (attributes, codes[labels])), shape=shape)
    matrix.sum_duplicates()
    before, after, scores = read.transitions
    table = np.zeros((n_labels, n_labels))
    np.add.at(table, (codes[before], codes[after]), scores)
    return Model(
        order=1,
        n_labels=n_labels,
        node=LinearFunction(*WeightPattern.of_matrix(matrix)),
        edge_family="table",
        edge=Tables({"edge": table}, 0.0),
    )
