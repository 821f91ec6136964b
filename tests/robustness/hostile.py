"""What a hostile file may do, judged: it is read, or refused in one line that names it.

Time of the processor and memory are watched, so that what hangs and what eats memory is seen.
"""

import resource
import signal

import meanfield as mf

SECONDS = 10
MEMORY = 300  # MB that a trial may take more than those before it
LONGEST = 2000  # characters of a message


class TooSlow(BaseException):
    """What nothing catches."""


def too_slow(*_):
    raise TooSlow


def most_memory():
    """The most MB that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def judged(read, *names, also=()):
    """What comes of a call: "read", "refused", or what begins with FAILED.

    `names` are those of which a message has to have one; `also` are errors that may be, too.
    """
    had = most_memory()
    before = signal.signal(signal.SIGPROF, too_slow)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)  # of the processor
    try:
        read()
        outcome = "read"
    except (mf.MeanfieldError, *also) as error:
        outcome = of_message(str(error), names)
    except TooSlow:
        outcome = f"FAILED more than {SECONDS} s"
    except BaseException as error:
        outcome = f"FAILED foreign exception {type(error).__name__}: {str(error)[:200]}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    taken = most_memory() - had
    return f"FAILED {taken:.0f} MB of memory" if taken > MEMORY else outcome


def of_message(said, names):
    """Whether a message is one line that can be printed, and names the file."""
    try:
        said.encode("utf-8")
    except UnicodeEncodeError:
        return f"FAILED a message that cannot be printed: {said!r:.200}"
    if len(said) > LONGEST or not said.isprintable():
        return f"FAILED a message of {len(said)} characters: {said[:200]!r}"
    if names and not any(name in said for name in names):
        return f"FAILED a message without {' or '.join(names)}: {said[:200]}"
    return "refused"
