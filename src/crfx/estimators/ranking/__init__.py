"""Orders of documents: the estimator, and what only it needs."""

from crfx.estimators.ranking.estimator import RankingCRF

__all__ = ["RankingCRF"]
