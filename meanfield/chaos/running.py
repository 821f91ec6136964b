"""All batches of a study, on several threads, with checkpoints, until Ctrl-C."""

from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

from ..solving.checkpoint import Keeper
from ..solving.progress import Interruption
from .bar import Bar
from .experiment import Experiment
from .ledger import Ledger

__all__ = ["run_batches"]

BLINK = 0.2  # seconds between looks at Ctrl-C


def run_batches(
    experiment: Experiment, ledger: Ledger, keeper: Keeper | None, threads: int, bar: Bar
) -> str:
    """Do what is left; "finished", or "interrupted" after Ctrl-C when running batches have ended.

    What is done is kept in the checkpoint whatever happens.
    """
    pool, status = ThreadPoolExecutor(threads), "finished"
    jobs = {pool.submit(experiment.run, batch): i for i, batch in ledger.left().items()}
    try:
        with Interruption() as interruption:
            while jobs:
                ended, _ = wait(jobs, timeout=BLINK, return_when=FIRST_COMPLETED)
                for job in ended:
                    ledger.enter(jobs[job], job.result())
                    bar.advance(ledger.batches[jobs.pop(job)])
                    if keeper:
                        keeper.save_now_and_then(ledger.snapshot)
                if interruption.requested:
                    status = "interrupted"
                    jobs = {job: number for job, number in jobs.items() if not job.cancel()}
    finally:
        pool.shutdown(cancel_futures=True)
        for job, number in jobs.items():  # what was still running when another one failed
            if not job.cancelled() and job.exception() is None:
                ledger.enter(number, job.result())
        if keeper:
            keeper.save(ledger.snapshot())
    return status if ledger.left() else "finished"
