"""The package's errors.

Every error has a short stable `code`. Its message is one sentence that says what was expected, what was given and what
to try. The command line prints that sentence and exits with code 2.
"""

# Parts of torch's RuntimeErrors for a lack of memory.
NO_MEMORY = ("can't allocate memory", "Cannot allocate memory", "not enough memory", "out of memory", "bad_alloc")


def in_one_sentence(error: BaseException) -> str | None:
    """The message for an error of this package, of the file system or of memory; None for an unexpected error."""
    if isinstance(error, SynthsieveError):
        return str(error)
    if isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and any(w in str(error) for w in NO_MEMORY)):
        return (
            "out of memory: close other programs and continue (fit: --resume; others: the same command), or start "
            "again with a lower training.batch_unlabeled, training.batch_labeled or augmentation.pool_size "
            "(run: fewer --workers; select: a --memory-limit)"
        )
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror or error}: check the path, its permissions and the disk"
    return None


class SynthsieveWarning(UserWarning):
    """Base of every warning of this package: work continues, but something needs attention."""


class SynthsieveError(Exception):
    """Base of every error that a user can cause or fix; `code` names its kind, such as "missing-column"."""

    def __init__(self, message: str, *, code: str = "") -> None:
        super().__init__(message)
        self.code = code


class ConfigError(SynthsieveError):
    """A setting is unknown, of the wrong type or out of range."""


class DataError(SynthsieveError):
    """A data source, a file or an array has unexpected contents."""


class NothingToDraw(DataError):
    """This run or variant has no data for the requested figure."""


class InputError(SynthsieveError, ValueError):
    """An argument of an estimator cannot be used; also a ValueError, as in scikit-learn."""


class DownloadError(DataError):
    """A download failed, or its checksum is wrong."""


class CheckpointError(SynthsieveError):
    """A run folder or checkpoint is missing, damaged, or of another version or configuration."""


class OldRunError(CheckpointError):
    """A run folder was written by version 0.1."""

    def __init__(self, path: object) -> None:
        super().__init__(
            f"{path} was written by synthsieve 0.1, which this version cannot read: train again, or use synthsieve 0.1",
            code="old-run-folder",
        )


class LostProcessError(SynthsieveError):
    """Another process of the same distributed training ended early."""


class ClusterError(SynthsieveError):
    """A cluster cannot be reached, or lost workers too often."""


class SelectionError(SynthsieveError):
    """The input of a selection is malformed, or no row passes its filter."""


class DivergedChainError(SynthsieveError):
    """A Langevin chain reached a value that is not finite, first after `step`, counted from 1."""

    def __init__(self, step: int, message: str, *, code: str = "diverged-chain") -> None:
        super().__init__(message, code=code)
        self.step = step


class NonFiniteLossError(SynthsieveError):
    """The `term` of the training objective is not finite in `step`, counted from 1."""

    def __init__(self, step: int, term: str, message: str, *, code: str = "non-finite-loss") -> None:
        super().__init__(message, code=code)
        self.step, self.term = step, term
