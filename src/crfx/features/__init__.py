"""Takes what users have, gives one stacked matrix; comes after `datasets`, before `batch`.

Rows are positions.  `matrix` stacks arrays, CSR matrices and data frames; `words` reads dicts and
texts, `templates` makes such texts of columns, `windows` puts neighbours side by side; `columns`
says whether features are those a model was fitted on; `conjunctions` multiplies columns;
`per_position` has scikit-learn's transformers work on lists of instances.
"""

from crfx.features.per_position import PerPosition
from crfx.features.templates import Template
from crfx.features.windows import windowed, windows
from crfx.features.words import HashedVocabulary, Vocabulary

__all__ = [
    "HashedVocabulary",
    "PerPosition",
    "Template",
    "Vocabulary",
    "windowed",
    "windows",
]
