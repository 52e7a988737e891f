"""Compare variants in interleaved pairs: better, worse, or undecided."""

import argparse
from pathlib import Path

from testbed.cli.options import add_comparison, add_repeatable
from testbed.cli.output import require_writable, write
from testbed.errors import UsageError


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--experiment", metavar="NAME", default=None, help="the experiment (default: kip73-two-node)")
    add_repeatable(
        parser, "--kafka", "VERSION", "a release, a tarball or a build's path; the first is the baseline; repeatable"
    )
    add_repeatable(
        parser,
        "--variant",
        "'LABEL: NAME=VALUE …'",
        "a variant: settings, kafka=…, topology=…, defect=…; the first is the baseline; repeatable",
    )
    add_repeatable(parser, "--set", "NAME=VALUE", "a setting of all variants; repeatable")
    parser.add_argument("--topology", metavar="TOPOLOGY", help="a topology instead of the experiment's own")
    parser.add_argument("--pairs", type=int, metavar="N", help="runs of each variant (default: 10)")
    add_comparison(parser)
    parser.add_argument("--junit", metavar="FILE", type=Path, help="also write JUnit's XML to this file")
    parser.epilog = (
        "Example: `testbed compare --kafka 4.2.1 --kafka 4.3.1 --pairs 10`.\n"
        "Exit codes: 0 OK or IMPROVED, 1 REGRESSED, 2 NOISY, ENV-CHANGED or NO-DATA."
    )


def run(args: argparse.Namespace) -> int:
    from results.verdicts import EXIT
    from testbed.cli import campaign_output
    from testbed.experiments.experiment import require_once
    from testbed.runner.campaign import new_campaign, require_enough_pairs
    from testbed.runner.variant import Variant, of_each, parse_variant, split_defects

    asked = None
    if args.kafka or args.variant:
        if args.kafka and args.variant:
            raise UsageError("give either --kafka A --kafka B, or --variant twice, with kafka=… in each")
        name = args.experiment or "kip73-two-node"
        settings, defects = split_defects(args.set)
        require_once(settings)
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
        versions = [each.kafka for each in asked.variants]
        if args.kafka and len(set(versions)) < len(versions):
            names = ", ".join(f"{text} is {version}" for text, version in zip(args.kafka, versions, strict=True))
            raise UsageError(f"a Kafka is not compared with itself: {names}; build the changed sources first")
    elif not args.resume:
        raise UsageError("no variants are named: give --kafka A --kafka B, or --variant 'LABEL: NAME=VALUE' twice")
    else:
        campaign_output.refuse_with_resume(args, "repeat the whole command, with --kafka or --variant")
    require_writable(args.junit)
    result = campaign_output.play(args, asked, "compare", stop_early=not args.all)
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
