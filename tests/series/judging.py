"""A night of a whole block, as the tests of the judge ask for it."""

from results.series.judge import SeriesJudgement


def judge_night(judge, block, noise, family=None):
    """Return a judgement for each series of the block; without a change for those that are too short."""
    found = [SeriesJudgement(int(count)) for count in block.counts]
    for look in judge.look(block, noise, family):
        changes = judge.changes(look)
        for place, at in enumerate(look.members):
            found[int(at)] = look.judgement(place, changes.get(place))
    return found
