"""The time of a run on any number of cores, from the times of its jobs."""

from benchmarks.schedule import EACH, START, Step, simulate


def job(name: str, seconds: float, threads: int = 1, after: str = "") -> Step:
    return Step(name, [(seconds, 16)], {2: threads, 16: threads}, after=set(after.split()))


def test_each_part_of_a_job_uses_as_many_cores_as_it_can() -> None:
    parts = [(9.0, 1), (64.0, 16), (24.0, 3)]
    step = Step("score", parts, threads={2: 1, 16: 8})
    assert step.on(2) == (EACH + 97, 1)
    assert step.on(16) == (EACH + 9 + 8 + 8, 8)


def test_jobs_wait_for_inputs_and_for_cores() -> None:
    jobs = [job("read", 10), job("a", 20, after="read"), job("b", 30, after="read")]
    jobs.append(job("end", 4, threads=2, after="a b"))
    steps = {step.name: step for step in jobs}
    seconds, path = simulate(steps, 2)
    # Side by side, a and b take as long as b.
    assert (seconds, path) == (START + 3 * EACH + 10 + 30 + 2, ["read", "b", "end"])
    for step in jobs:
        step.threads[2] = 2
    # Each on both cores, one after another.
    assert simulate(steps, 2)[0] == START + 4 * EACH + (10 + 20 + 30 + 4) / 2
