"""One file per experiment: which measures and which judgement it uses."""
