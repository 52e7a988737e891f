"""Run an experiment with every combination of settings."""

import argparse

from testbed.cli.options import add_comparison, add_repeatable
from testbed.errors import UsageError


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("experiment", nargs="?", metavar="EXPERIMENT", help="the experiment; not needed with --resume")
    add_repeatable(
        parser, "--set", "NAME=VALUE,…", "values of a parameter, combined with those of the others; repeatable"
    )
    parser.add_argument("--repeats", type=int, metavar="N", help="runs of each combination (default: 1)")
    parser.add_argument("--topology", metavar="TOPOLOGY", help="a topology instead of the experiment's own")
    parser.add_argument("--kafka", metavar="VERSION,…", help="one or several releases, tarballs or builds' paths")
    add_comparison(parser)
    parser.epilog = (
        "Example: `testbed sweep kip73-two-node --set rate=5MB/s,10MB/s --kafka 3.9.2,4.3.1`.\n"
        "Exit codes: 0 every run passed, 1 one failed, 2 one was inconclusive or could not be made."
    )


def run(args: argparse.Namespace) -> int:
    from testbed.cli.campaign_output import or_else, play, refuse_with_resume, store_for
    from testbed.cli.sweeps import report
    from testbed.runner.campaign import new_campaign
    from testbed.runner.variant import Variant, product

    asked = None
    if args.experiment:
        base = Variant(args.experiment, args.experiment, args.profile or "ci", (), None, args.topology)
        kafka = [f"kafka={args.kafka}"] if args.kafka else []
        asked = new_campaign(
            "sweep",
            product(base, [*args.set, *kafka]),
            or_else(args.repeats, 1),
            or_else(args.seed, 1),
            store=store_for(args),
            measure_names=args.measure,
            threshold=or_else(args.threshold, 3.0) / 100,
        )
    elif not args.resume:
        raise UsageError("name an experiment, or a campaign to continue: --resume ID")
    else:
        refuse_with_resume(args, "repeat the whole command, with the experiment")
    return report(play(args, asked, "sweep", stop_early=False), as_json=args.json, as_markdown=args.markdown)
