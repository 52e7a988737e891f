"""`testbed compare`."""

import argparse
from pathlib import Path

from testbed.cli.command import Command

OF_A_NEW_ONE = ("experiment", "set", "topology", "pairs", "profile", "seed", "measure", "threshold", "store")
"""The options that choose the runs of a new campaign."""


def _configure(parser: argparse.ArgumentParser) -> None:
    from testbed.cli.campaign_output import add_options

    parser.add_argument("--experiment", metavar="NAME", default=None, help="which (default: kip73-two-node)")
    parser.add_argument("--kafka", metavar="VERSION", action="append", default=[], help="a Kafka; the first is the old")
    parser.add_argument(
        "--variant",
        metavar="'LABEL: NAME=VALUE …'",
        action="append",
        default=[],
        help="a variant: settings, kafka=…, topology=…, defect=…; the first is the baseline",
    )
    parser.add_argument("--set", metavar="NAME=VALUE", action="append", default=[], help="a setting of all variants")
    parser.add_argument("--topology", help="instead of the experiment's own")
    parser.add_argument("--pairs", type=int, metavar="N", help="runs of each variant (default: 10)")
    add_options(parser)
    parser.add_argument("--junit", metavar="FILE", type=Path, help="write JUnit's XML there, too")
    parser.epilog = "exit codes: 0 OK or IMPROVED, 1 REGRESSED, 2 NOISY, ENV-CHANGED or NO-DATA"


def _run(args: argparse.Namespace) -> int:
    from results.compare.judgement import EXIT
    from testbed.cli import campaign_output
    from testbed.cli.output import TimedProgress, require_writable, write
    from testbed.errors import UsageError
    from testbed.runner.campaign import new_campaign, require_enough_pairs
    from testbed.runner.execution import parse_budget
    from testbed.runner.run import run_campaign
    from testbed.runner.variant import Variant, of_each, parse_variant, split_defects

    asked = None
    if args.kafka or args.variant:
        if args.kafka and args.variant:
            raise UsageError("either --kafka A --kafka B, or --variant twice (with kafka=… in them)")
        name = args.experiment or "kip73-two-node"
        settings, defects = split_defects(args.set)
        base = Variant(name, name, args.profile or "ci", settings, None, args.topology, defects=defects)
        variants = [parse_variant(word, base) for word in args.variant] or list(of_each(base, args.kafka))
        if len(variants) < 2:
            raise UsageError("one variant: there is nothing to compare it with; give --kafka or --variant twice")
        asked = new_campaign(
            "compare",
            variants,
            campaign_output.or_else(args.pairs, 10),
            campaign_output.or_else(args.seed, 1),
            store=campaign_output.store_for(args),
            measure_names=args.measure,
            threshold=campaign_output.or_else(args.threshold, 3.0) / 100,
        )
        require_enough_pairs(asked)
    elif not args.resume:
        raise UsageError("what is compared? --kafka A --kafka B, or --variant 'LABEL: NAME=VALUE' twice")
    else:
        campaign_output.refuse_with_resume(args, OF_A_NEW_ONE, "--kafka or --variant")
    budget_s = parse_budget(args.budget)
    require_writable(args.junit)
    result = run_campaign(asked, args.resume, "compare", budget_s, TimedProgress(), stop_early=not args.all)
    verdict = result.outcome.verdict
    if args.junit:
        write(args.junit, campaign_output.as_junit(result))
    if args.json:
        print(campaign_output.as_json(result, verdict))
    elif args.markdown:
        print(campaign_output.as_markdown(result), end="")
    else:
        print(f"{campaign_output.variants_table(result)}\n\nagainst {result.campaign.variants[0].label}:")
        print(f"{campaign_output.findings_table(result.outcome)}\n\n{campaign_output.problem_lines(result)}", end="")
        print(f"{verdict}  {result.campaign.id}: {campaign_output.ending(result)}")
    return EXIT[verdict]


COMMAND = Command("compare", "compare variants in interleaved pairs: better, worse, or cannot tell", _configure, _run)
