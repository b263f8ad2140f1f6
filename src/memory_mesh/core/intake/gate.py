"""Layer 0: every text passes here before it is stored. Redact → scrub → redact.

Redaction runs first, so that a failure of the scrubber exposes nothing, and again afterwards,
because removing markup can uncover what it hid (`bob<b>@</b>example.org`). A text about markup
keeps its tags, unless they hide what must be masked. If scrubbing fails or leaves nothing, the
redacted text is stored.
"""

import json
from dataclasses import dataclass, field, replace
from html import unescape

from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.language.redaction import Redactor
from memory_mesh.core.language.scrubbing import (
    MESH_OVERRIDES,
    ScrubSettings,
    cleaned,
    has_valid_chunk,
    joined_words,
    without_tags,
)
from memory_mesh.core.model import Value
from memory_mesh.core.text import PERSONAL_KINDS

# Keys that define the scope of a memory. Masking them would merge two readers, which is worse than
# an address in an id.
SCOPE_KEYS = frozenset({"user_id", "agent_id", "session_id", "project"})
_MAX_ROUNDS = 12


@dataclass(frozen=True, slots=True)
class Layer0:
    """Cleans texts before they are stored. Without a redactor nothing is masked."""

    redactor: Redactor | None = field(default_factory=Redactor)
    scrub: ScrubSettings = field(default_factory=lambda: ScrubSettings().merged(MESH_OVERRIDES))

    def for_secrets(self) -> "Layer0":
        """Return a gate that masks secrets, and no personal data and no names."""
        if self.redactor is None:
            return self
        mode, key, off = self.redactor.mode, self.redactor.key, self.redactor.off
        return replace(self, redactor=Redactor(mode, key, off=off | PERSONAL_KINDS))

    def clean_content(self, text: str) -> str:
        """Return a memory's text, redacted and scrubbed."""
        return self._cleaned(self.redact(text))

    def _cleaned(self, redacted: str) -> str:
        clean = self._scrubbed(redacted)
        for _ in range(_MAX_ROUNDS):
            if (bare := self._without_hiding_tags(clean)) == clean:
                return clean
            clean = self._scrubbed(self.redact(bare))
        return "[REDACTED]"  # only a text built for this needs so many rounds

    def _scrubbed(self, redacted: str) -> str:
        try:
            scrubbed = cleaned(redacted, self.scrub)
        except InvalidInput:
            return redacted
        if scrubbed.strip() and not has_valid_chunk(scrubbed, self.scrub):
            rules = self.scrub.validation
            raise InvalidInput(
                f"the text is rejected: it has {len(scrubbed):,} characters",
                expected=f"{rules.min_length} to {rules.max_length:,} characters "
                "(scrub.validation)",
            )
        is_changed = scrubbed != redacted and scrubbed.strip()
        return self.redact(scrubbed) if is_changed else redacted

    def _without_hiding_tags(self, text: str) -> str:
        """Return the text; without its tags if they hide what must be masked, also in comments,
        scripts and attributes."""
        if (
            "<" not in text
            or self.redactor is None
            or not (self.scrub.enabled and self.scrub.structural.strip_html)
        ):
            return text
        bare = _without_all_tags(text)
        hides = any(
            self.redact(view) != view
            for view in {bare, joined_words(text), unescape(text)} - {text}
        )
        return self.redact(bare) if hides else text

    def redact(self, text: str) -> str:
        """Return any other text redacted: a reason, a query, a line of a log."""
        return self.redactor.redact(text) if self.redactor else text

    def redact_markup(self, text: str) -> str:
        """Return a Markdown text redacted. It keeps its markup, unless that hides what must be
        masked."""
        redacted = self.redact(text)
        try:
            bare = self._cleaned(redacted)
        except InvalidInput:  # too short or too long for a memory
            bare = self._without_hiding_tags(redacted)
        return redacted if self.count((text, redacted)) == self.count((text, bare)) else bare

    def count(self, *cleaned: tuple[Value, Value]) -> dict[str, int]:
        """Return how many values of each kind were masked, from pairs of a value before and
        after it was cleaned."""
        changed = [pair for pair in cleaned if pair[0] != pair[1]]
        if self.redactor is None or not changed:
            return {}
        before, after = (
            json.dumps(values, ensure_ascii=False) for values in zip(*changed, strict=True)
        )
        return self.redactor.count(before, after)

    def clean_metadata(self, metadata: dict[str, Value]) -> dict[str, Value]:
        """Return metadata redacted, except for the scope keys."""
        if self.redactor is None:
            return metadata
        masked = self.redactor.redact_value(
            {key: value for key, value in metadata.items() if key not in SCOPE_KEYS}
        )
        assert isinstance(masked, dict)  # noqa: S101  (an object stays an object)
        clean = masked | {key: value for key, value in metadata.items() if key in SCOPE_KEYS}
        # In the order in which they were given.
        return {key: clean[key] for key in metadata if key in clean} | clean


def _without_all_tags(text: str) -> str:
    """Return the text without its tags, and without those that removing them makes."""
    for _ in range(_MAX_ROUNDS):
        if (bare := without_tags(text)) == text:
            break
        text = bare
    return text
