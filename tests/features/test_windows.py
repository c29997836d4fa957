"""Windows: neighbours in order, nothing from other instances, bad sizes."""

import numpy as np
import pytest

from crfx.features import windows

X = [np.arange(6.0).reshape(3, 2), np.zeros((0, 2)), np.array([[9.0, 10.0]])]


def test_windows_put_neighbours_side_by_side():
    for left, right in ((0, 0), (1, 1), (2, 0), (0, 3), (5, 5)):
        result = windows(X, left, right, outside=-1)
        for x, wide in zip(X, result, strict=True):
            assert wide.shape == (len(x), (left + 1 + right) * 2)
            for t, row in enumerate(wide.reshape(len(x), left + 1 + right, 2)):
                for place, other in enumerate(range(t - left, t + right + 1)):
                    expected = x[other] if 0 <= other < len(x) else [-1, -1]
                    np.testing.assert_array_equal(row[place], expected)
    with pytest.raises(ValueError, match=r"the window is \(-1, 2\)"):
        windows(X, -1, 2)


def test_windows_are_missing_beyond_the_ends():
    assert np.isnan(windows(X, 1, 0)[2][0, :2]).all()
    assert windows([], 1, 1) == []
