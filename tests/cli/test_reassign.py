"""`testbed reassign …` from its words to its exit code, against a fake cluster."""

from testbed.cli.main import main
from testbed.reassignment.plan_file import load_plan

PLAN = ["reassign", "plan", "--bootstrap", "fake:9092", "--drain", "3", "--out"]


def test_a_plan_that_cannot_be_written_is_refused_before_the_cluster_is_asked(cluster, capsys):
    assert main([*PLAN, "/dev/null/there/plan.json"]) == 64
    assert "/dev/null/there/plan.json: /dev/null is no folder that can be written to" in capsys.readouterr().err
    assert cluster.made == []


def test_a_plan_is_written_into_a_new_folder(cluster, tmp_path):
    path = tmp_path / "new" / "plan.json"
    assert main([*PLAN, str(path)]) == 0
    assert [sorted(target) for target in load_plan(path).targets.values()] == [[1, 2]]
