"""Numbers of passports, driving licences and identity cards, which have no check sum in common: only after their name."""

import re
from collections.abc import Iterator

from memory_mesh.core.redaction.pattern import Page, Pattern, Span, compact, joined, stems_of
from memory_mesh.core.text import LazyRegex

_STEMS = stems_of("""
    passport passeport pasaport passaport reisepass paspoort passnummer paszport driver driving führerschein fuhrerschein permis
    licencia_de patente cnh rijbewijs prawo_jazdy personalausweis ausweisn carta_d carte_d identity 护照 護照
    パスポート 旅券 여권
""")
_NAMES = (
    r"(?:passe?port|pasaporte?|passaport[eo]|reisepass|paspoort|pass(?=nummer)|paszportu?)"
    r"|driver['’]?s?['’]?[\s_-]?licen[cs]e|driving[\s_-]licen[cs]e|f(?:ü|u)hrerschein|permis\sde\sconduire|licencia\sde\sconduc\w{2,4}"
    r"|patente(?:\sdi\sguida)?|cnh|rijbewijs|prawo\sjazdy|personalausweis|ausweis|cart[ae]\sd['’]identit[àaé]|identity\scard"
    r"|护照|護照|パスポート|旅券|여권"
)
_DENSE = re.compile(rb"00000|0A0|0AAA?0|000[ -]0|00 00 00")
_LINK = r"no|nr|num|number|nummer|num[eé]ro|número|номер|id|is|was|ist|est|es|è|é|号码?|號碼?|番号|번호|は|是|는|n°|nº|№"
_NUMBERED = LazyRegex(
    rf"(?i:{_NAMES})(?![a-z](?!ummer))(?:[\s:=#.\"'(’_-]{{0,3}}(?i:{_LINK})(?![A-Za-z])){{0,3}}[\s:=#.\"'(’_-]{{0,4}}"
    r"((?!(?:19|20)[0-9]{2}[- ][0-9]{2}[- ])(?=(?:[A-Za-z -]{0,6}[0-9]){5})[A-Z0-9](?:[ -]?[A-Z0-9]){5,18})(?![A-Za-z0-9])"
)


def _documents(page: Page) -> Iterator[Span]:
    """Match letters and at least five digits after the name of a document and words such as `number` or `is`."""
    text = page.text
    for found in filter(None, (_NUMBERED.match(text, place) for place in page.places(_STEMS))):
        if not joined(text[found.start() - 1 : found.start()]):
            yield found.span(1)


def _may_have(page: Page) -> bool:
    return _DENSE.search(page.shape) is not None and page.holds(_STEMS)


DOCUMENTS = (Pattern("identity_document", "NATIONAL_ID", _documents, digits=5, when=_may_have, normal=compact),)
