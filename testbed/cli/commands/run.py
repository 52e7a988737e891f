"""Run an experiment and judge it."""

import argparse

from testbed.cli.options import add_defects, add_kafka, add_repeatable
from testbed.cli.output import timed_progress


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "experiment",
        nargs="?",
        metavar="EXPERIMENT",
        help="an experiment or a comparison; `testbed experiments` lists them; not needed with --resume",
    )
    add_repeatable(parser, "--set", "NAME=VALUE", "a parameter; repeatable")
    parser.add_argument("--profile", metavar="PROFILE", help="smoke, ci or release (default: ci)")
    parser.add_argument("--on", metavar="NAME", help="a testbed that is up; it stays up")
    parser.add_argument("--topology", metavar="TOPOLOGY", help="a topology instead of the experiment's own")
    add_kafka(parser, "the topology's")
    add_defects(parser)
    parser.add_argument("--store", metavar="URI", help="the result store (default: under the XDG data folder)")
    parser.add_argument("--confirm", action="store_true", help="let Spark judge the run again, from the store")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--repeats", type=int, metavar="N", help="of a comparison: runs of each variant")
    parser.add_argument(
        "--seed", metavar="N", type=int, help="of a comparison: seed of the order of the runs (default: 1)"
    )
    parser.add_argument("--budget", metavar="TIME", help="of a comparison: begin no run that would end after this time")
    parser.add_argument("--resume", metavar="ID", help="continue an interrupted comparison; repeats no run")
    parser.epilog = (
        "Example: `testbed run kip73-two-node --set rate=5MB/s`.\n"
        "Exit codes: 0 pass, 1 fail, 2 inconclusive; of a comparison: of the worst run."
    )


def run(args: argparse.Namespace) -> int:
    from testbed.cli import sweeps
    from testbed.cli.verdicts import EXIT, as_json, as_text
    from testbed.experiments.experiment_run import RunRequest, run
    from testbed.runner.named_comparisons import named_comparisons

    if args.experiment is None:
        return sweeps.resume(args)
    if comparison := named_comparisons().get(args.experiment):
        return sweeps.compare(args, comparison)
    sweeps.refuse(args)
    request = RunRequest(
        experiment=args.experiment,
        settings=args.set,
        profile=args.profile or "ci",
        on=args.on,
        topology=args.topology,
        kafka=args.kafka,
        store=args.store,
        confirm=args.confirm,
        defects=args.defect,
    )
    finished = run(request, timed_progress())
    print(as_json(finished) if args.json else as_text(finished))
    return EXIT[finished.verdict]
