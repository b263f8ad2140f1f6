"""Capture: what is worth keeping of the transcript of a session."""

from memory_mesh.core.language.capture.extract import (
    CaptureReport,
    Judgement,
    JunkFound,
    NotKept,
    WouldKeep,
)
from memory_mesh.core.language.capture.transcripts import Transcript, recalled_block

__all__ = [
    "CaptureReport",
    "Judgement",
    "JunkFound",
    "NotKept",
    "Transcript",
    "WouldKeep",
    "recalled_block",
]
