"""memory-mesh: one memory for AI agents.

Names are loaded on first use, so that importing the package costs nothing. The imports below are
for type checkers and editors; a test keeps them equal to `_NAMES`.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memory_mesh.api.admin import copy_store as copy_store
    from memory_mesh.api.admin import migrate as migrate
    from memory_mesh.api.admin import repair_store as repair_store
    from memory_mesh.api.asynchronous import AsyncMemoryGraph as AsyncMemoryGraph
    from memory_mesh.api.asynchronous import AsyncMemoryLane as AsyncMemoryLane
    from memory_mesh.api.asynchronous import AsyncMemoryNotes as AsyncMemoryNotes
    from memory_mesh.api.asynchronous import AsyncMemoryTraces as AsyncMemoryTraces
    from memory_mesh.api.context_manager import (
        AsyncMemoryContextManager as AsyncMemoryContextManager,
    )
    from memory_mesh.api.context_manager import MemoryContextManager as MemoryContextManager
    from memory_mesh.api.graph_methods import MemoryGraph as MemoryGraph
    from memory_mesh.api.lane_methods import MemoryLane as MemoryLane
    from memory_mesh.api.mesh import AsyncMemoryMesh as AsyncMemoryMesh
    from memory_mesh.api.mesh import MemoryMesh as MemoryMesh
    from memory_mesh.api.mesh_methods import MemoryStats as MemoryStats
    from memory_mesh.api.notes_methods import MemoryNotes as MemoryNotes
    from memory_mesh.api.traces_methods import MemoryTraces as MemoryTraces
    from memory_mesh.core.audit import Broken as Broken
    from memory_mesh.core.audit import Sound as Sound
    from memory_mesh.core.claims.rules import MemoryExplanation as MemoryExplanation
    from memory_mesh.core.claims.rules import Reviewed as Reviewed
    from memory_mesh.core.claims.rules import Supersession as Supersession
    from memory_mesh.core.claims.updates import Update as Update
    from memory_mesh.core.errors import AccessDenied as AccessDenied
    from memory_mesh.core.errors import AnswerUnreadable as AnswerUnreadable
    from memory_mesh.core.errors import BudgetSpent as BudgetSpent
    from memory_mesh.core.errors import CallError as CallError
    from memory_mesh.core.errors import CallRefused as CallRefused
    from memory_mesh.core.errors import CallTimedOut as CallTimedOut
    from memory_mesh.core.errors import Cancelled as Cancelled
    from memory_mesh.core.errors import Conflict as Conflict
    from memory_mesh.core.errors import ContentAltered as ContentAltered
    from memory_mesh.core.errors import EmbeddingError as EmbeddingError
    from memory_mesh.core.errors import IdTaken as IdTaken
    from memory_mesh.core.errors import InvalidFilter as InvalidFilter
    from memory_mesh.core.errors import InvalidInput as InvalidInput
    from memory_mesh.core.errors import KeyReused as KeyReused
    from memory_mesh.core.errors import MemoryDisabled as MemoryDisabled
    from memory_mesh.core.errors import MemoryMeshError as MemoryMeshError
    from memory_mesh.core.errors import ModelMismatch as ModelMismatch
    from memory_mesh.core.errors import ModelMissing as ModelMissing
    from memory_mesh.core.errors import NotFound as NotFound
    from memory_mesh.core.errors import RateLimited as RateLimited
    from memory_mesh.core.errors import SettingsError as SettingsError
    from memory_mesh.core.errors import StoreBusy as StoreBusy
    from memory_mesh.core.errors import StoreClosed as StoreClosed
    from memory_mesh.core.errors import StoreCorrupt as StoreCorrupt
    from memory_mesh.core.errors import StoreError as StoreError
    from memory_mesh.core.errors import StoreForeign as StoreForeign
    from memory_mesh.core.errors import StoreFull as StoreFull
    from memory_mesh.core.errors import StoreMissing as StoreMissing
    from memory_mesh.core.errors import StoreReadOnly as StoreReadOnly
    from memory_mesh.core.errors import StoreReplaced as StoreReplaced
    from memory_mesh.core.errors import StoreTooNew as StoreTooNew
    from memory_mesh.core.errors import StoreTooOld as StoreTooOld
    from memory_mesh.core.errors import StoreUnavailable as StoreUnavailable
    from memory_mesh.core.errors import TokenInvalid as TokenInvalid
    from memory_mesh.core.errors import TooLarge as TooLarge
    from memory_mesh.core.errors import TooManyRequests as TooManyRequests
    from memory_mesh.core.errors import Unreachable as Unreachable
    from memory_mesh.core.errors import UnsafeAddress as UnsafeAddress
    from memory_mesh.core.errors import WrongStatus as WrongStatus
    from memory_mesh.core.graph import Episode as Episode
    from memory_mesh.core.graph import GraphContext as GraphContext
    from memory_mesh.core.graph import GraphHit as GraphHit
    from memory_mesh.core.graph import GraphResults as GraphResults
    from memory_mesh.core.graph import MemoryLink as MemoryLink
    from memory_mesh.core.graph import Reached as Reached
    from memory_mesh.core.lane import LaneResult as LaneResult
    from memory_mesh.core.lane import LaneResults as LaneResults
    from memory_mesh.core.language.capture import CaptureReport as CaptureReport
    from memory_mesh.core.language.capture import JunkFound as JunkFound
    from memory_mesh.core.language.capture import NotKept as NotKept
    from memory_mesh.core.learning import Distilled as Distilled
    from memory_mesh.core.learning import Heartbeat as Heartbeat
    from memory_mesh.core.learning import HeritageChain as HeritageChain
    from memory_mesh.core.learning import JobRun as JobRun
    from memory_mesh.core.learning import LessonBlock as LessonBlock
    from memory_mesh.core.learning import LessonContext as LessonContext
    from memory_mesh.core.learning import PruneResult as PruneResult
    from memory_mesh.core.learning import ReflectionResult as ReflectionResult
    from memory_mesh.core.learning import ReliabilityUpdate as ReliabilityUpdate
    from memory_mesh.core.learning import SkillRecord as SkillRecord
    from memory_mesh.core.learning import SkillResult as SkillResult
    from memory_mesh.core.model import BackedUp as BackedUp
    from memory_mesh.core.model import ClaimConflict as ClaimConflict
    from memory_mesh.core.model import Copied as Copied
    from memory_mesh.core.model import DamagedRow as DamagedRow
    from memory_mesh.core.model import EndedSession as EndedSession
    from memory_mesh.core.model import Extraction as Extraction
    from memory_mesh.core.model import FileImport as FileImport
    from memory_mesh.core.model import Forgotten as Forgotten
    from memory_mesh.core.model import HealthStatus as HealthStatus
    from memory_mesh.core.model import Imported as Imported
    from memory_mesh.core.model import Ingested as Ingested
    from memory_mesh.core.model import Link as Link
    from memory_mesh.core.model import MemoryRecord as MemoryRecord
    from memory_mesh.core.model import Migration as Migration
    from memory_mesh.core.model import Passage as Passage
    from memory_mesh.core.model import Reembedded as Reembedded
    from memory_mesh.core.model import Repaired as Repaired
    from memory_mesh.core.model import SearchResult as SearchResult
    from memory_mesh.core.model import Sighting as Sighting
    from memory_mesh.core.model import UserCount as UserCount
    from memory_mesh.core.model.background import cancellable as cancellable
    from memory_mesh.core.notes import Note as Note
    from memory_mesh.core.notes import Notes as Notes
    from memory_mesh.core.notes.extraction import ExtractionInput as ExtractionInput
    from memory_mesh.core.notes.extraction import ExtractionOutput as ExtractionOutput
    from memory_mesh.core.search import CacheStats as CacheStats
    from memory_mesh.core.search import Explanation as Explanation
    from memory_mesh.core.search.evaluation import Evaluation as Evaluation
    from memory_mesh.core.traces import Experience as Experience
    from memory_mesh.core.traces import PatternMatch as PatternMatch
    from memory_mesh.core.traces import Trace as Trace
    from memory_mesh.core.traces.learnings import Consolidation as Consolidation
    from memory_mesh.core.traces.learnings import PlanContext as PlanContext
    from memory_mesh.core.traces.schema import Retention as Retention
    from memory_mesh.core.upkeep import Compressed as Compressed
    from memory_mesh.core.upkeep import Consolidated as Consolidated
    from memory_mesh.core.upkeep import Decayed as Decayed
    from memory_mesh.core.upkeep.hooks import HookEvent as HookEvent
    from memory_mesh.core.upkeep.hooks import HookStatus as HookStatus
    from memory_mesh.flows.graph.store import Stored as Stored
    from memory_mesh.net.uses import webhook_writethrough as webhook_writethrough
    from memory_mesh.stores.hook_files import markdown_writethrough as markdown_writethrough

__version__ = "0.1.0"

_NAMES = {
    "core.audit": "Broken Sound",
    "core.model.background": "cancellable",
    "core.claims.rules": "MemoryExplanation Reviewed Supersession",
    "core.claims.updates": "Update",
    "core.graph": "Episode GraphContext GraphHit GraphResults MemoryLink Reached",
    "core.errors": (
        "AccessDenied AnswerUnreadable BudgetSpent CallError CallRefused CallTimedOut Cancelled "
        "Conflict ContentAltered EmbeddingError IdTaken InvalidFilter InvalidInput KeyReused "
        "MemoryDisabled MemoryMeshError ModelMismatch ModelMissing NotFound RateLimited "
        "SettingsError StoreBusy StoreClosed StoreCorrupt StoreError StoreForeign StoreFull "
        "StoreMissing StoreReadOnly StoreReplaced StoreTooNew StoreTooOld StoreUnavailable "
        "TokenInvalid TooLarge TooManyRequests Unreachable UnsafeAddress WrongStatus"
    ),
    "core.search.evaluation": "Evaluation",
    "core.upkeep.hooks": "HookEvent HookStatus",
    "core.language.capture": "CaptureReport JunkFound NotKept",
    "core.lane": "LaneResult LaneResults",
    "core.learning": (
        "Distilled Heartbeat HeritageChain JobRun LessonBlock LessonContext PruneResult "
        "ReflectionResult ReliabilityUpdate SkillRecord SkillResult"
    ),
    "core.model": (
        "BackedUp ClaimConflict Copied DamagedRow EndedSession Extraction FileImport "
        "Forgotten HealthStatus Imported Ingested Link "
        "MemoryRecord Migration Passage Reembedded Repaired SearchResult Sighting UserCount"
    ),
    "core.notes": "Note Notes",
    "core.notes.extraction": "ExtractionInput ExtractionOutput",
    "core.search": "CacheStats Explanation",
    "core.traces": "Experience PatternMatch Trace",
    "core.traces.learnings": "Consolidation PlanContext",
    "core.traces.schema": "Retention",
    "core.upkeep": "Compressed Consolidated Decayed",
    "api.graph_methods": "MemoryGraph",
    "api.lane_methods": "MemoryLane",
    "api.mesh_methods": "MemoryStats",
    "api.notes_methods": "MemoryNotes",
    "api.traces_methods": "MemoryTraces",
    "flows.graph.store": "Stored",
    "net.uses": "webhook_writethrough",
    "stores.hook_files": "markdown_writethrough",
    "api.context_manager": "AsyncMemoryContextManager MemoryContextManager",
    "api.asynchronous": "AsyncMemoryGraph AsyncMemoryLane AsyncMemoryNotes AsyncMemoryTraces",
    "api.mesh": "AsyncMemoryMesh MemoryMesh",
    "api.admin": "migrate copy_store repair_store",
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
