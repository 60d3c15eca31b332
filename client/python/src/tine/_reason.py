"""The reasons why a call fails: constants for enum Reason of store.proto."""

from __future__ import annotations

from enum import Enum


class Reason(str, Enum):
    """Each equals the string that `tine.reason` returns. store.proto documents them."""

    SESSION_NOT_FOUND = "SESSION_NOT_FOUND"
    MESSAGE_NOT_FOUND = "MESSAGE_NOT_FOUND"
    MEMORY_NOT_FOUND = "MEMORY_NOT_FOUND"
    CALL_NOT_FOUND = "CALL_NOT_FOUND"
    SESSION_DELETED = "SESSION_DELETED"
    SESSION_ARCHIVED = "SESSION_ARCHIVED"
    MESSAGE_SEALED = "MESSAGE_SEALED"
    FORKS_EXIST = "FORKS_EXIST"
    FORK_CHAIN_TOO_DEEP = "FORK_CHAIN_TOO_DEEP"
    SLUG_TAKEN = "SLUG_TAKEN"
    EXTERNAL_TAKEN = "EXTERNAL_TAKEN"
    HEAD_MOVED = "HEAD_MOVED"
    OPERATION_ID_REUSED = "OPERATION_ID_REUSED"
    HISTORY_DIVERGED = "HISTORY_DIVERGED"
    INVALID_ARGUMENT = "INVALID_ARGUMENT"
    INVALID_PART = "INVALID_PART"
    UNKNOWN_PART_KIND = "UNKNOWN_PART_KIND"
    NOT_IN_TREE = "NOT_IN_TREE"
    INVALID_UTF8 = "INVALID_UTF8"
    INVALID_JSON = "INVALID_JSON"
    TOO_LONG = "TOO_LONG"
    STORE_FULL = "STORE_FULL"
    TOO_MANY_IN_FLIGHT = "TOO_MANY_IN_FLIGHT"
    QUEUE_FULL = "QUEUE_FULL"
    RESOURCE_EXHAUSTED = "RESOURCE_EXHAUSTED"
    EVENTS_GONE = "EVENTS_GONE"
    STORE_CHANGED = "STORE_CHANGED"
    UNAUTHENTICATED = "UNAUTHENTICATED"
    UNIMPLEMENTED = "UNIMPLEMENTED"
    DEADLINE_EXCEEDED = "DEADLINE_EXCEEDED"
    UNAVAILABLE = "UNAVAILABLE"
    DATA_LOSS = "DATA_LOSS"

    def __str__(self) -> str:
        return str(self.value)

    def __format__(self, spec: str) -> str:  # Enum.__format__ differs between Python versions
        return format(str(self.value), spec)
