"""The data model: rows, conditions on rows, records, scope, ids and times."""

# ruff: noqa: I001  (sorted, but several names a line)
# fmt: off
from memory_mesh.core.model.history import AnyMemory, change_id, creation, revise, rewound, since_visible, visible_from
from memory_mesh.core.model.records import (
    MIN_IMPORTANCE, UNKNOWN_IMPORTANCE, Block, Change, ClaimConflict, Head, Link, Memory, MemoryRecord, Meta, Passage,
    QueuedEvent, Receipt, SearchResult, Sighting, Skill, Status, Usage,
)
from memory_mesh.core.model.results import (
    BackedUp, Checked, CheckedPlace, Copied, DamagedRow, EndedSession, Erasure, ErasureCheck, Extraction, Failed, FailedLine,
    FileImport,
    Forgotten, Gone, HealthStatus, Imported, Ingested, Migration, Reembedded, Repaired,
)
from memory_mesh.core.model.rows import (
    BASE, BY_NAME, COLUMNS, CONTENTS, FILTERABLE, INT_MAX, MOVING, REQUIRED, WITH_VECTOR, Column, Hit, Json, Key, Kind, Row,
    Scalar, Sealed, Type, Used, Value, Vector, as_read, batches, checked, copied_json, fault, fields_of,
)
from memory_mesh.core.model.scope import (
    MemoryType, Period, Reach, Reader, in_project, is_valid_in, may_erase, not_expired, of_user, partition, partition_for,
    partitions, reach_of, valid_in, visible, visible_to,
)
from memory_mesh.core.model.times import DAY_MS, GivenClock, GivenTime, Ids, as_clock, iso, millis, parse_time, time_of_id
from memory_mesh.core.model.where import (
    ANYTHING, METADATA, And, Anything, Compare, Filter, In, IsNull, Like, Not, Op, Or, Where, all_of, columns_in, equals, is_list,
    like,
)

__all__ = [
    "ANYTHING", "BASE", "BY_NAME", "COLUMNS", "CONTENTS", "DAY_MS", "FILTERABLE", "INT_MAX", "METADATA", "MIN_IMPORTANCE",
    "MOVING", "REQUIRED", "UNKNOWN_IMPORTANCE", "WITH_VECTOR", "And", "AnyMemory", "Anything", "BackedUp", "Block", "Change",
    "Checked", "CheckedPlace", "ClaimConflict", "Column", "Compare", "Copied", "DamagedRow", "EndedSession", "Erasure",
    "ErasureCheck", "Extraction", "Failed", "FailedLine", "FileImport", "Filter", "Forgotten", "GivenClock", "GivenTime",
    "Gone", "Head", "HealthStatus", "Hit", "Ids", "Imported", "In", "Ingested", "IsNull", "Json", "Key", "Kind", "Like",
    "Link", "Memory", "MemoryRecord", "MemoryType", "Meta", "Migration", "Not", "Op", "Or", "Passage", "Period",
    "QueuedEvent", "Reach", "Reader", "Receipt", "Reembedded", "Repaired", "Row", "Scalar", "Sealed", "SearchResult",
    "Sighting", "Skill", "Status", "Type", "Usage", "Used", "Value", "Vector", "Where", "all_of", "as_clock", "as_read",
    "batches", "change_id", "checked", "columns_in", "copied_json", "creation", "equals", "fault", "fields_of",
    "in_project", "is_list", "is_valid_in", "iso", "like", "may_erase", "millis", "not_expired", "of_user", "parse_time",
    "partition", "partition_for", "partitions", "reach_of", "revise", "rewound", "since_visible", "time_of_id", "valid_in",
    "visible", "visible_from", "visible_to",
]
