"""What a run is: its samples, events, criteria and manifest, and the store that holds runs. Knows nothing above it."""
