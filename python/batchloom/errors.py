# SPDX-License-Identifier: Apache-2.0
"""What can go wrong, by what to do next. Messages name object, operation and numbers."""


class Error(Exception):
    """Any error of Batchloom."""


class Invalid(Error):
    """Fix the call, the input or the permission; repeating it will not help."""


class DoesNotFit(Invalid):
    """A sample that no rank, or no group of ranks, has room for."""


class ResumeMissing(Invalid):
    """A group that has run before begins without its checkpoint's state."""


class NotFound(Error):
    """What was named does not exist, or was trimmed."""


class Conflict(Error):
    """Somebody else changed it first: refresh and try again."""


class Fenced(Error):
    """A newer owner exists: stop for good."""


class Unavailable(Error):
    """Wait and try again; also a timeout that has passed."""


class UnknownOutcome(Error):
    """The call may or may not have taken effect."""


class Corruption(Error):
    """Stored bytes are damaged: repeating will not help, and a person should look."""


class Exhausted(Error):
    """A budget, a quota or a disk is full."""


class Cancelled(Error):
    """It was stopped, or closed."""


class Internal(Error):
    """A defect in Batchloom: please report it."""
