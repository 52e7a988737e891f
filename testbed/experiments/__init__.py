"""Experiments: their parameters, steps and results. The package `results` judges them."""
