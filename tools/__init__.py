"""Programs for those who develop the testbed; no user needs them."""
