"""KIP-73's scenarios: which criteria judge which. Experiments are judged alike where the KIP asks the same of them."""

from results.criteria.move_judgement import (
    all_restarted,
    binding,
    bound,
    changed_twice,
    conservation,
    control,
    duration,
    first_window,
    isr_kept,
    judged_by,
    kafka,
    long_mean,
    nic_bound,
    settled,
    steady,
    stuck_noticed,
)
from results.criteria.move_measures import measure_move
from results.criteria.registry import register

LIVE = (bound, long_mean, steady, control, kafka, duration, binding)
"""Under load a NIC carries what clients write and read as well: its bytes are not only those of logs."""

for name in ("kip73-one-to-two", "kip73-two-to-one", "kip73-bootstrap"):
    register(name, measure=measure_move, judge=judged_by(facts=(isr_kept,)))
# One replica of each partition: there is no ISR to leave.
register("kip73-two-node", measure=measure_move, judge=judged_by())

for name in ("kip73-two-node-produce", "kip73-one-to-two-produce", "kip73-two-to-one-produce"):
    register(name, measure=measure_move, judge=judged_by(LIVE, (isr_kept,), under_load=True))

register("kip73-mixed-volume", measure=measure_move, judge=judged_by(LIVE, (isr_kept,), under_load=True))
register(
    "kip73-live-change",
    measure=measure_move,
    judge=judged_by((bound, long_mean, settled, control, duration), (changed_twice,)),
)
register(
    "kip73-stuck",
    measure=measure_move,
    judge=judged_by((bound, long_mean, duration), (stuck_noticed, isr_kept), under_load=True),
)
# A broker that leaves takes its replicas out of ISRs, and its metrics with it: neither is judged here.
for name in ("kip73-bounce", "kip73-upgrade"):
    register(name, measure=measure_move, judge=judged_by((bound, long_mean), (all_restarted,)))
# Nothing is held back: control and moving partitions advance alike, and no quota is used up.
register("kip73-nic-bound", measure=measure_move, judge=judged_by((bound, long_mean, kafka, nic_bound)))
# One response is more than a window's worth: whatever is averaged over a window depends on where the window lies.
register(
    "kip73-fetch-size", measure=measure_move, judge=judged_by((first_window, bound, long_mean, control, conservation))
)
