"""Takes the record of a fitted estimator (`saved`), gives its `state`, and back; comes after
`trainers`, before `estimators`.

`saved_model` has the models, `saved_training` where their training stands; `linear_json` writes
a linear model for other languages.  None of them sees an estimator.
"""
