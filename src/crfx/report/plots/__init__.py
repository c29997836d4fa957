"""Plots for print and notebooks; `drawing` is the one door to matplotlib."""
