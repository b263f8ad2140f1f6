"""Layer 0, the one gate: nothing is written but what came through here. Redact → scrub → redact.

Redacted first, so that the scrubber's failure leaves nothing raw behind; redacted again, because taking markup away can
uncover what it hid (`bob<b>@</b>example.org`). Where scrubbing fails, or would leave nothing, the redacted text stands.
"""

from dataclasses import dataclass, field

from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.model.columns import Value
from memory_mesh.core.redaction import Redactor
from memory_mesh.core.scrubbing.scrub import MESH_OVERRIDES, ScrubSettings, scrub

# Keys that say whose a memory is. Masking them would make one reader of two, which is worse than an address in an id.
SCOPE_KEYS = frozenset({"user_id", "agent_id", "session_id", "project"})


@dataclass(frozen=True, slots=True)
class Layer0:
    """How texts are cleaned before they are kept; without a redactor nothing is masked."""

    redactor: Redactor | None = field(default_factory=Redactor)
    scrub: ScrubSettings = field(default_factory=lambda: ScrubSettings().merged(MESH_OVERRIDES))

    def content(self, text: str) -> str:
        """A memory's text as it may be kept."""
        redacted = self.line(text)
        try:
            clean = scrub(redacted, self.scrub).text
        except InvalidInput:
            return redacted
        return self.line(clean) if clean.strip() else redacted

    def line(self, text: str) -> str:
        """Any other text as it may be kept: a reason, a query, a line of a log."""
        return self.redactor.redact(text) if self.redactor else text

    def notes(self, metadata: dict[str, Value]) -> dict[str, Value]:
        """Metadata as it may be kept."""
        if self.redactor is None:
            return metadata
        scope = {key: value for key, value in metadata.items() if key in SCOPE_KEYS}
        masked = self.redactor.redact_value({key: value for key, value in metadata.items() if key not in SCOPE_KEYS})
        assert isinstance(masked, dict)  # noqa: S101  (an object stays an object)
        return {**masked, **scope}
