"""Takes a table of published figures, gives ours beside them; comes after `estimators`, before
nothing.

A table is a file, `reports/tables/<name>.toml` (`tables`). Its rows are made of units, a fold or a
test set each, which the functions in `experiments` compute; `runner` runs those that are missing,
`results` keeps each in a file of its own, `render` writes the page and `plots` its pictures from
these files alone.
"""
