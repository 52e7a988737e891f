"""`testbed sweep EXPERIMENT`."""

import argparse

from testbed.cli.command import Command

OF_A_NEW_ONE = ("set", "topology", "kafka", "repeats", "profile", "seed", "measure", "threshold", "store")
"""The options that choose the runs of a new campaign."""


def _configure(parser: argparse.ArgumentParser) -> None:
    from testbed.cli.campaign_output import add_options

    parser.add_argument("experiment", nargs="?", help="its name; may be left out with --resume")
    parser.add_argument(
        "--set",
        metavar="NAME=VALUE,…",
        action="append",
        default=[],
        help="a parameter's values; each is combined with each of the others",
    )
    parser.add_argument("--repeats", type=int, metavar="N", help="runs of each combination (default: 1)")
    parser.add_argument("--topology", help="instead of the experiment's own")
    parser.add_argument(
        "--kafka", metavar="VERSION,…", help="run this Kafka release, or each of several with each combination"
    )
    add_options(parser)
    parser.epilog = "exit codes: 0 every run passed, 1 one failed, 2 one was inconclusive or could not be made"


def _run(args: argparse.Namespace) -> int:
    from results.report.sweep import as_markdown
    from testbed.cli.campaign_output import (
        against,
        as_json,
        ending,
        or_else,
        problem_lines,
        refuse_with_resume,
        store_for,
        variants_table,
    )
    from testbed.cli.comparing import exit_code
    from testbed.cli.output import TimedProgress
    from testbed.errors import UsageError
    from testbed.runner.campaign import new_campaign
    from testbed.runner.execution import parse_budget
    from testbed.runner.report import sweep_page, write_sweep
    from testbed.runner.run import run_campaign
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
        refuse_with_resume(args, OF_A_NEW_ONE, "the experiment")
    result = run_campaign(asked, args.resume, "sweep", parse_budget(args.budget), TimedProgress())
    status = exit_code(result)
    report = write_sweep(result)
    if args.json:
        print(as_json(result, ("pass", "fail", "inconclusive")[status], report))
    elif args.markdown:
        print(as_markdown(sweep_page(result)))
    else:
        print(variants_table(result))
        print(f"{against(result)}\n{problem_lines(result)}{result.campaign.id}: {ending(result)}\nreport {report}")
    return status


COMMAND = Command("sweep", "run an experiment with every combination of settings", _configure, _run)
