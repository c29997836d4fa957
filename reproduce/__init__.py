"""Published tables, run again, with our figures beside those of the papers.

    python -m reproduce --list
    python -m reproduce loss-gradients

A table is a file ``reports/tables/<name>.toml`` (`table`). Its rows consist of units, a fold or a
test set each, which the functions in `experiments` compute, on data sets of `crfx.datasets` and
`datasets`, some with the peers in `crfsuite` and `rankers`. `runner` runs the missing units and
`results` stores each as a line of ``reports/results/<name>.jsonl``. From these files alone
`render` writes the page ``reports/<name>.md``, with `comparisons`, and `plots` draws its plots.

This folder is not installed with crfx; it runs in a checkout.
"""
