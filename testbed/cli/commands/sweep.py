"""Run an experiment with every combination of settings."""

import argparse

from testbed.cli.options import add_comparison, add_repeatable
from testbed.errors import UsageError


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("experiment", nargs="?", help="its name; may be left out with --resume")
    add_repeatable(parser, "--set", "NAME=VALUE,…", "a parameter's values; each is combined with each of the others")
    parser.add_argument("--repeats", type=int, metavar="N", help="runs of each combination (default: 1)")
    parser.add_argument("--topology", help="instead of the experiment's own")
    parser.add_argument(
        "--kafka", metavar="VERSION,…", help="run this Kafka release, or each of several with each combination"
    )
    add_comparison(parser)
    parser.epilog = "exit codes: 0 every run passed, 1 one failed, 2 one was inconclusive or could not be made"


def run(args: argparse.Namespace) -> int:
    from testbed.cli.campaign_output import or_else, play, refuse_with_resume, store_for
    from testbed.cli.comparing import report
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
        raise UsageError("name an experiment, or a series to go on with: --resume ID")
    else:
        refuse_with_resume(args, "the experiment")
    return report(play(args, asked, "sweep", stop_early=False), as_json=args.json, as_markdown=args.markdown)
