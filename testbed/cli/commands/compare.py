"""`testbed compare`."""

import argparse
from pathlib import Path

from testbed.cli.command import Command


def _configure(parser: argparse.ArgumentParser) -> None:
    from testbed.cli.series import add_options

    parser.add_argument("--experiment", metavar="NAME", default=None, help="which (default: kip73-two-node)")
    parser.add_argument("--kafka", metavar="VERSION", action="append", default=[], help="a Kafka; the first is the old")
    parser.add_argument(
        "--variant",
        metavar="'LABEL: NAME=VALUE …'",
        action="append",
        default=[],
        help="a variant: settings, kafka=…, topology=…; the first is the baseline",
    )
    parser.add_argument("--set", metavar="NAME=VALUE", action="append", default=[], help="a setting of all variants")
    parser.add_argument("--topology", help="instead of the experiment's own")
    parser.add_argument("--pairs", type=int, default=10, metavar="N", help="runs of each variant (default: 10)")
    add_options(parser)
    parser.add_argument("--markdown", action="store_true", help="tables for a pull request's comment")
    parser.add_argument("--junit", metavar="FILE", type=Path, help="write JUnit's XML there, too")
    parser.epilog = "exit codes: 0 OK or IMPROVED, 1 REGRESSED, 2 NOISY, ENV-CHANGED or NO-DATA"


def _run(args: argparse.Namespace) -> int:
    from testbed.cli.series import EXIT, as_json, as_junit, as_markdown, ending, findings_table, variants_table
    from testbed.cli.show import Steps, write
    from testbed.errors import UsageError
    from testbed.runner.limits import parse_budget
    from testbed.runner.run import begin, new_series, require_tellable, resume
    from testbed.runner.variant import Variant, parse_variant

    if args.json and args.markdown:
        raise UsageError("--json and --markdown: only one of them")
    asked = None
    if args.kafka or args.variant:
        if args.kafka and args.variant:
            raise UsageError("either --kafka A --kafka B, or --variant twice (with kafka=… in them)")
        name = args.experiment or "kip73-two-node"
        base = Variant(name, name, args.profile, tuple(args.set), None, args.topology)
        words = args.variant or [f"kafka {version}: kafka={version}" for version in args.kafka]
        variants = [parse_variant(word, base) for word in words]
        if len(variants) < 2:
            raise UsageError("one variant: there is nothing to compare it with; give --kafka or --variant twice")
        asked = new_series(
            "compare",
            variants,
            args.pairs,
            args.seed,
            store=args.store,
            measure_names=args.measure,
            threshold=args.threshold / 100,
        )
        require_tellable(asked)
    elif not args.resume:
        raise UsageError("what is compared? --kafka A --kafka B, or --variant 'LABEL: NAME=VALUE' twice")
    budget_s = parse_budget(args.budget) if args.budget else None
    progress = Steps()
    if args.resume:
        result = resume(args.resume, asked, "compare", budget_s, progress, stop_early=not args.all)
    else:
        assert asked is not None
        result = begin(asked, budget_s, progress, stop_early=not args.all)
    verdict = result.outcome.verdict
    if args.junit:
        write(args.junit, as_junit(result))
    if args.json:
        print(as_json(result, verdict))
    elif args.markdown:
        print(as_markdown(result), end="")
    else:
        print(f"{variants_table(result)}\n\nagainst {result.series.variants[0].label}:")
        print(f"{findings_table(result.outcome)}\n\n{verdict}  {result.series.id}: {ending(result)}")
    return EXIT[verdict]


COMMAND = Command("compare", "compare variants in interleaved pairs: better, worse, or cannot tell", _configure, _run)
