"""The catalogue of experiments: each module declares EXPERIMENT, or EXPERIMENTS for several."""
