"""The lane: a learning taxonomy with entities, decay and feedback, as in Memory Lane.

`entities` is imported by its path.
"""

from memory_mesh.core.lane.metadata import (
    DEFAULT_COLLECTION,
    DEFAULT_CONFIDENCE,
    NewLaneMemory,
    is_of_lane,
    lane_metadata,
    synced,
)
from memory_mesh.core.lane.scoring import LaneResult, LaneResults, LaneScore

__all__ = [
    "DEFAULT_COLLECTION", "DEFAULT_CONFIDENCE", "LaneResult", "LaneResults", "LaneScore",
    "NewLaneMemory", "is_of_lane", "lane_metadata", "synced",
]  # fmt: skip
