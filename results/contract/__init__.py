"""The contract of a run: its samples, events, criteria and manifest, and the store that holds runs."""
