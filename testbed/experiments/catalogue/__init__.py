"""The experiments: a module declares EXPERIMENT, or several EXPERIMENTS."""
