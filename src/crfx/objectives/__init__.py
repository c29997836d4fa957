"""Takes scores and truth, gives value, gradient and curvature; comes after `inference`, before
`potentials`.

One file per objective. An objective knows neither features nor potentials; trainers ask it for the
part of the scores they are about to move.
"""
