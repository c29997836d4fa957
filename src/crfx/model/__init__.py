"""Takes potentials, gives the scores of a batch; comes after `potentials`, before `io`.

`model` holds the parts of a model and adds up their scores.
"""
