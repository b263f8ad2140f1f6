"""Capture: what is worth keeping of the transcript of a session."""

from memory_mesh.core.capture.report import CaptureReport, NotKept
from memory_mesh.core.capture.transcripts import Transcript, recalled_block

__all__ = ["CaptureReport", "NotKept", "Transcript", "recalled_block"]
