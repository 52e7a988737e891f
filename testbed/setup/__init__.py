"""Set-up: checks and fixes what a machine needs before anything else of this project can run.

Standard library only, since the project's environment is one of the things that are set up.
"""
