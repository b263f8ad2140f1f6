"""Characters that nobody sees, or that make a text look other than it is: where they are, and a text without them."""

import re

# Invisible by the rules of Unicode (default ignorable), and blanks that are no space: zero widths, soft hyphens, direction marks,
# variation selectors, tag characters, fillers. Those that some writers cannot do without are judged by their place, below.
_IGNORABLE = (
    r"\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164"
    r"\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
# Private use, halves of surrogate pairs and what is no character mean nothing to a reader, and perhaps something to a model.
_NOBODYS = r"\ud800-\udfff\ue000-\uf8ff\ufdd0-\ufdef\ufffe\uffff\U000f0000-\U0010ffff" + "".join(
    rf"\U{plane:04x}fffe\U{plane:04x}ffff" for plane in range(1, 15)
)
_CONTROL = r"\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f"

# Scripts that cannot be spelled without joiners: Arabic and its neighbours, and those of India. One may end a word, too.
_JOINING = r"[\u0600-\u061b\u061d-\u0dff]"
# Signs that are drawn in colour, or several of them as one picture: a couple, a profession.
_PICTURE = r"[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u27bf\u2900-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
# England, Scotland and Wales. Any other row of tag characters behind a black flag would be a text that nobody sees.
_FLAGS = ["\U0001f3f4" + "".join(chr(0xE0000 + ord(char)) for char in f"{name}\x7f") for name in ("gbeng", "gbsct", "gbwls")]
# A character is kept for what is right before it, which is kept itself. So cleaning a clean text changes nothing.
_KEPT = (
    rf"(?<={_JOINING}[\u200c\u200d])",
    rf"(?<=[0-9A-Za-z]\u200c){_JOINING}",  # a foreign word with an ending
    rf"(?<={_PICTURE}\u200d){_PICTURE}",
    rf"(?<={_PICTURE}\ufe0f\u200d){_PICTURE}",
    rf"(?<={_PICTURE}[\ufe0e\ufe0f])",
    r"(?<=[0-9#*]\ufe0f)\u20e3",  # a key with a digit on it
    r"(?<=[\u1820-\u18aa][\u180b-\u180f])",  # the forms of Mongolian letters
    *(f"(?<={flag[:at]}){flag[at:]}" for flag in _FLAGS for at in range(2, len(flag) + 1)),
)

UNSEEN = re.compile(f"[{_IGNORABLE}{_NOBODYS}{_CONTROL}](?!{'|'.join(_KEPT)})")
_BREAKS = re.compile("\r\n|[\r\x0b\x0c\x85\u2028\u2029]")

# Characters outside of these are what writers of other scripts and of new emoji need; a Python that does not know them yet
# must not take them away.


def visible(text: str) -> str:
    """The text as a reader sees it. Lines end in one way."""
    return UNSEEN.sub("", _BREAKS.sub("\n", text))
