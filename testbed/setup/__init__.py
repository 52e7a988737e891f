"""Set-up: what a machine needs before anything else of this project can run, looked for and put right.

Standard library only, since the project's environment is one of the things that are set up.
"""
