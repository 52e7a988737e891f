"""Set-up: checks and fixes of a machine, before anything else of this project can run.

Standard library only, since set-up makes the project's environment.
"""
