"""Open a prompt into a testbed, or a shell on a host."""

import argparse
from contextlib import closing

from testbed.cli.options import pick, pick_testbed
from testbed.errors import UsageError
from testbed.suggestions import did_you_mean


def configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = "testbed shell [NAME] [HOST]"
    parser.add_argument("where", nargs="*", help="[NAME] [HOST]; the testbed's NAME may be left out when one is up")
    parser.epilog = (
        "Without HOST: a prompt with hosts, links, topics, moves and faults; `help` lists its commands.\n"
        "With HOST: a root shell on that host. One word is a testbed if one has that name, otherwise a host.\n"
        "The standard input may be a script. A script of the prompt ends at its first failure.\n"
        "Exit code: that of the failed line, or of the host's shell."
    )


def run(args: argparse.Namespace) -> int:
    from testbed.provision.state import names

    if not args.where or (len(args.where) == 1 and args.where[0] in names()):
        from testbed.cli.prompt.dialog import converse

        with closing(pick_testbed(args.where[0] if args.where else None)) as testbed:
            return converse(testbed)
    from testbed.cli.terminal import shell

    try:
        testbed, host = pick(args.where)
    except UsageError as error:
        if len(args.where) > 1:
            raise
        word, up = args.where[0], names()
        raise UsageError(f"{error}; and no testbed is called {word}{did_you_mean(word, up)}") from error
    return shell(testbed.hosts[host])
