"""Errors and warnings of the package, besides ValueError and TypeError."""


class MeanfieldError(Exception):
    """The mathematics, a file or a configuration refuses; the message says what to do next."""


class ConfigError(MeanfieldError, ValueError):
    """A configuration file is not valid; the message names every offending key."""


class StorageError(MeanfieldError, ValueError):
    """A result file cannot be read or written."""


class CheckpointError(StorageError):
    """A checkpoint is truncated, altered, or belongs to another run."""


class UnresolvedWarning(UserWarning):
    """A density, or an energy, is not known to the accuracy that was asked for."""


class SlowWarning(UserWarning):
    """A run or a sweep takes much longer than with the alternative that the message names."""


class StorageWarning(UserWarning):
    """A checkpoint or compiled code could not be stored, locked or trusted; the run continued."""


class ShortenedWarning(UserWarning):
    """A text is longer than a network takes: its first tokens are replayed, and no others."""
