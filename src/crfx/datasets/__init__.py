"""Takes a name, gives X and y; comes after nothing, before `batch`.

One file per data set; each has one `load_…` function and says where its data come from.
"""

from crfx.datasets.digit_strings import DigitStrings, load_digit_strings

__all__ = ["DigitStrings", "load_digit_strings"]
