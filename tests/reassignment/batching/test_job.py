import threading
from dataclasses import replace

import pytest

from results.contract import durable
from testbed.kafka.types import TopicPartition
from testbed.reassignment.batching.batch import BatchLimits
from testbed.reassignment.batching.job import Job, JobControl, JobError, JobFolder, unpaused
from testbed.reassignment.plan import Plan

PLAN = Plan({TopicPartition("t", 0): (2, 3)})


def test_a_job_is_read_as_it_was_written_and_steered_apart(tmp_path):
    folder = JobFolder(tmp_path)
    job = replace(Job.new("b:9092", "cluster", "incremental", PLAN, "client.properties"), topic_ids={"t": "an id"})
    folder.write(job, JobControl(BatchLimits(1, 2, 3), 1000))
    assert folder.read(job.id) == job
    folder.steer(job.id, lambda _: JobControl(BatchLimits(partitions=9), None, "pause"))
    assert folder.control(job.id) == JobControl(BatchLimits(partitions=9), None, "pause")
    assert folder.of_cluster("cluster") == job
    folder.remove(job.id)
    folder.remove(job.id)
    assert folder.ids() == []


def test_what_is_not_there_or_not_readable_is_named(tmp_path):
    folder = JobFolder(tmp_path)
    with pytest.raises(JobError, match="no stored reassignment 'x'; there are: none"):
        folder.read("x")
    with pytest.raises(JobError, match="no stored reassignment of cluster c"):
        folder.of_cluster("c")
    job = Job.new("b:9092", "c", "batched", PLAN)
    folder.write(job, JobControl())
    (tmp_path / job.id / "control.json").write_text("{")
    with pytest.raises(JobError, match=r"control\.json: cannot be read"):
        folder.control(job.id)
    (tmp_path / job.id / "control.json").write_text('{"schema": 1, "wish": "run", "limits": {"partitions": 0}}')
    with pytest.raises(JobError, match="partitions is 0"):
        folder.control(job.id)
    (tmp_path / job.id / "job.json").write_text('{"schema": 7}')
    with pytest.raises(JobError, match="schema 1"):
        folder.read(job.id)


def test_a_job_that_ends_while_all_are_read_is_left_out(tmp_path, monkeypatch):
    folder = JobFolder(tmp_path)
    ending, other = (Job.new("b:9092", cluster, "batched", PLAN) for cluster in ("a", "b"))
    for job in (ending, other):
        folder.write(job, JobControl())
    read = folder.read

    def ends(job_id):
        folder.remove(ending.id)
        return read(job_id)

    monkeypatch.setattr(folder, "read", ends)
    assert folder.all() == [other]


def test_a_job_ends_also_while_another_process_steers_it(tmp_path):
    folder = JobFolder(tmp_path)
    job = Job.new("b:9092", "c", "batched", PLAN)
    folder.write(job, JobControl())
    (tmp_path / job.id / ".other").write_text("")  # what is being written
    folder.remove(job.id)
    assert folder.ids() == []
    with pytest.raises(JobError, match="no stored reassignment"):
        folder.control(job.id)


def test_several_jobs_of_one_cluster_are_told_apart_by_the_user(tmp_path):
    folder = JobFolder(tmp_path)
    for _ in range(2):
        folder.write(Job.new("b:9092", "c", "batched", PLAN), JobControl())
    with pytest.raises(JobError, match="several"):
        folder.of_cluster("c")


def test_a_cancel_is_not_lost_where_another_command_changes_the_limits_at_the_same_time(tmp_path):
    folder = JobFolder(tmp_path)
    job = Job.new("b:9092", "c", "batched", PLAN)
    folder.write(job, JobControl())
    cancel = threading.Thread(target=lambda: folder.steer(job.id, lambda now: replace(now, wish="cancel")))

    def narrow(now):
        cancel.start()
        with pytest.raises(BlockingIOError), durable.lock(tmp_path / "lock", wait=False):
            pass
        return replace(now, limits=BatchLimits(1))

    assert folder.steer(job.id, narrow).wish == "run"
    cancel.join()
    assert folder.control(job.id) == JobControl(BatchLimits(1), None, "cancel")


@pytest.mark.parametrize("change", [{"wish": "pause"}, {"wish": "run"}, {"limits": BatchLimits(1)}])
def test_a_cancelled_job_takes_no_other_control(tmp_path, change):
    folder = JobFolder(tmp_path)
    job = Job.new("b:9092", "c", "batched", PLAN)
    folder.write(job, JobControl(wish="cancel"))
    with pytest.raises(JobError, match=f"{job.id} is being cancelled"):
        folder.steer(job.id, lambda now: replace(now, **change))
    assert folder.steer(job.id, unpaused) == folder.control(job.id) == JobControl(wish="cancel")


def test_a_job_that_has_ended_is_not_steered(tmp_path):
    folder = JobFolder(tmp_path)
    job = Job.new("b:9092", "c", "batched", PLAN)
    folder.write(job, JobControl())
    folder.remove(job.id)
    with pytest.raises(JobError, match="no stored reassignment"):
        folder.steer(job.id, unpaused)
    assert not (tmp_path / job.id).exists()
