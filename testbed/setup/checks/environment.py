"""The project's Python environment."""

from testbed.setup.environment import environment, make
from testbed.setup.finding import Check, Finding


class PythonEnvironment(Check):
    """Every Python dependency, at the version in the lock file."""

    name = "python environment"
    needs = ("python packages", "disk")
    fixable = True
    doing = "installing Python dependencies"
    estimate_s = 40.0

    def probe(self) -> Finding:
        """Whether it was made to the end."""
        wanted = environment()
        if wanted.complete:
            return self.good(str(wanted.folder))
        return self.bad("not made yet for this checkout, lock file and interpreter")

    def fix(self) -> None:
        """Make it."""
        make(environment())
