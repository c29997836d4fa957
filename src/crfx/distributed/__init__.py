"""Takes estimators and partitions, gives trained ones; comes after `estimators`, before `cli`.

``with cluster(client): estimator.fit(X, y)`` trains on the workers of a Dask cluster.
"""

from crfx.distributed.cluster import cluster

__all__ = ["cluster"]
