"""One base error and its family.

Every message says what was expected, what came and what to try, in one sentence. The command line prints that
sentence and exits with 2.
"""

# What torch's RuntimeErrors say.
NO_MEMORY = ("can't allocate memory", "Cannot allocate memory", "not enough memory", "out of memory", "bad_alloc")


def in_one_sentence(error: BaseException) -> str | None:
    """What the command line says of an error of ours, of the disk or of memory; None for one that nobody foresaw."""
    if isinstance(error, SynthsieveError):
        return str(error)
    if isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and any(w in str(error) for w in NO_MEMORY)):
        return (
            "out of memory; what was written is whole: close other programs and go on (fit: --resume; others: the same "
            "command), or begin anew with a lower learning.batch_unlabeled, learning.batch_labeled or "
            "augmentation.pool_size (run: fewer --workers; select: a --memory-limit)"
        )
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror or error}: check the path, its rights and the disk"
    return None


class SynthsieveError(Exception):
    """Base of every error a user can cause or cure."""


class ConfigError(SynthsieveError):
    """A setting is unknown, of the wrong type or out of range."""


class DataError(SynthsieveError):
    """A source, a file or an array does not hold what it should."""


class NothingToDraw(DataError):
    """A figure was asked for that this run, or this arm, has nothing to show in."""


class InputError(SynthsieveError, ValueError):
    """What was handed to the estimator cannot be used; a ValueError too, as scikit-learn's users expect."""


class DownloadError(DataError):
    """A file could not be fetched whole, or its checksum is wrong."""


class CheckpointError(SynthsieveError):
    """A checkpoint is missing, truncated, foreign or of another configuration."""


class LostProcessError(SynthsieveError):
    """Another process of the same training ended before the work was done."""


class ClusterError(SynthsieveError):
    """A cluster cannot be reached, or lost a worker too often."""


class SelectionError(SynthsieveError):
    """The input of a selection is malformed, or nothing survives it."""


class DivergedChainError(SynthsieveError):
    """A Langevin chain left the finite numbers.

    Attributes:
        step: the step, counted from 1, after which the first non-finite value stood.
    """

    def __init__(self, step: int, message: str) -> None:
        super().__init__(message)
        self.step = step


class NonFiniteLossError(SynthsieveError):
    """A term of the objective is no longer a finite number.

    Attributes:
        step: the training step, counted from 1.
        term: the name of the term.
    """

    def __init__(self, step: int, term: str, message: str) -> None:
        super().__init__(message)
        self.step = step
        self.term = term
