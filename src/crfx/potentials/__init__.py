"""Takes a batch, gives the scores of its parts; comes after `objectives`, before `trainers`.

`base` says what a potential can do, `registry` has those that a model file can hold.

An additive potential accepts functions fitted to a gradient and a curvature: boosted trees
(`trees`, over `xgboost_learner`, the one door to XGBoost), any regressor (`regressors`), tables
(`transitions`) and functions linear in the features (`newton`).  A parametric one accepts a
gradient of its parameters: functions linear in the features (`linear`), hidden units
(`hidden_unit`).  Trees that also see the labels before (`context_trees`) score nodes and edges.
"""
