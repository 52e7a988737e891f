"""Incidents as files: what went wrong once, told so that it can be played again and judged."""
