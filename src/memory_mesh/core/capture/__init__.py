"""Capture: what is worth keeping of the transcript of a session."""

from memory_mesh.core.capture.report import CaptureReport, JunkFound, NotKept
from memory_mesh.core.capture.transcripts import Transcript, recalled_block

__all__ = ["CaptureReport", "JunkFound", "NotKept", "Transcript", "recalled_block"]
