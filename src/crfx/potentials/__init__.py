"""Takes a batch, gives the scores of its parts; comes after `objectives`, before `trainers`.

An additive potential accepts functions fitted to a gradient and a curvature: boosted trees
(`trees`, over `xgboost_learner`, the one door to XGBoost), any regressor (`regressors`), tables
(`transitions`) and functions linear in the features (`newton`).  A parametric one accepts a
gradient of its parameters: functions linear in the features (`linear`).
"""
