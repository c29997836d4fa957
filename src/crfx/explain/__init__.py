"""Takes a model and what `prediction` says of an instance, gives what every feature adds to it;
comes after `prediction`, before `estimators`.
"""
