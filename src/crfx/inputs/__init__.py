"""Takes what users pass to `fit` and `predict`, gives `batch` and truth; comes after `trainers`,
before `estimators`.

In order: `rows` (X as one matrix), `passed` (what was passed, and the input it becomes, with the
structure of chains and forests), `label_codes`, `weights`, `training_set` (the stages of all of
these, for a training set and an evaluation set), `queries` (the same for rankings) and `shards`
(instances written into files).
"""
