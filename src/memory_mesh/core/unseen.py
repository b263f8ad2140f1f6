"""Characters that nobody sees, or that make a text look other than it is: where they are, and a text without them."""

import re

# Invisible by the rules of Unicode (default ignorable), and blanks that are no space: zero widths, soft hyphens, direction marks,
# variation selectors, tag characters, fillers. Joiners are judged by what stands around them, below.
_IGNORABLE = (
    r"\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164"
    r"\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
# Private use, halves of surrogate pairs and what is no character mean nothing to a reader, and perhaps something to a model.
_NOBODYS = r"\ud800-\udfff\ue000-\uf8ff\ufdd0-\ufdef\ufffe\uffff\U000f0000-\U0010ffff" + "".join(
    rf"\U{plane:04x}fffe\U{plane:04x}ffff" for plane in range(1, 15)
)
_CONTROL = r"\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f"
# Scripts that cannot be spelled without joiners: Arabic and its neighbours, and those of India.
_JOINING = r"[\u0600-\u061b\u061d-\u0dff]"
_JOINER = rf"(?<!{_JOINING})[\u200c\u200d]|[\u200c\u200d](?!{_JOINING})"

UNSEEN = re.compile(rf"[{_IGNORABLE}{_NOBODYS}{_CONTROL}]|{_JOINER}")
_BREAKS = re.compile("\r\n|[\r\x0b\x0c\x85\u2028\u2029]")

# Characters outside of these are what writers of other scripts and of new emoji need; a Python that does not know them yet
# must not take them away.


def visible(text: str) -> str:
    """The text as a reader sees it. Lines end in one way."""
    return UNSEEN.sub("", _BREAKS.sub("\n", text))
