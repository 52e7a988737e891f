"""Print what a shell needs to complete this program's command lines."""

import argparse

from testbed.cli.completion import SHELLS


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="the shell that evaluates the code")
    parser.epilog = (
        'bash: eval "$(testbed completion bash)"\n'
        'zsh:  eval "$(testbed completion zsh)"\n'
        "fish: testbed completion fish | source"
    )


def run(args: argparse.Namespace) -> int:
    from testbed.cli.completion import shell_code

    print(shell_code(args.shell))
    return 0
