"""Nights: what runs came to, judged as series with Spark, and said in one line a scenario."""
