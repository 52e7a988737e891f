"""Nights: measures of runs, judged as series with Spark and reported in one line for each scenario."""
