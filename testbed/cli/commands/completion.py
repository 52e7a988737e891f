"""`testbed completion SHELL`."""

import argparse

from testbed.cli.command import Command
from testbed.cli.completion import SHELLS


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="the shell that evaluates the code")
    parser.epilog = (
        'bash: eval "$(testbed completion bash)"\n'
        'zsh:  eval "$(testbed completion zsh)"\n'
        "fish: testbed completion fish | source"
    )


def _run(args: argparse.Namespace) -> int:
    from testbed.cli.completion import shell_code

    print(shell_code(args.shell))
    return 0


COMMAND = Command("completion", "print what a shell needs to complete this program's command lines", _configure, _run)
