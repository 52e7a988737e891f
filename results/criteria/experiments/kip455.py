"""KIP-455's scenarios: steps, each judged by the states that the controller's log has in its time."""

from results.criteria.registry import register_family
from results.criteria.step_judgement import judge_steps
from results.criteria.step_measures import measure_steps

register_family("kip455-", measure=measure_steps, judge=judge_steps)
