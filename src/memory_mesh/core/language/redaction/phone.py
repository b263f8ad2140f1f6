"""Find phone numbers: by their `+`, by separators and libphonenumber, or by a cue word.

A bare run of digits is never enough. Dates, times, versions and prices are not phone numbers, even
near a cue word.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator
from enum import IntEnum
from functools import cache
from typing import Any

from memory_mesh.core.language.redaction.pattern import (
    APART,
    DASHES,
    DIGIT,
    SPACES,
    Page,
    Pattern,
    Span,
    joined,
    listed,
)
from memory_mesh.core.text import LazyRegex

# --- cue words ---
# They say that a number is a phone number, perhaps one, or something else, in the languages of the
# larger countries.

REACH = 64


class Evidence(IntEnum):
    """What the words before a number say."""

    OTHER = 0  # an order, an invoice, a part …
    NONE = 1
    FAR = 2  # a word about calling, and other words between
    LIKELY = 3  # a word about calling, and nothing but small words after it
    CLEAR = 4  # the same with a word for phone numbers


# Words for phone numbers. Words of the second list have other meanings too: a colon, `is` or
# `number` must follow them.
_CLEAR = frozenset(listed("""
    phone phones tel fax faks gsm whatsapp whats viber zalo landline hotline helpline cellphone
    handphone smartphone msisdn ph cp handynummer handynr rufnummer durchwahl festnetz
    festnetznummer fon natel mobilnummer mobilnr mobilen mobiel mobielnummer tlf tlfnr telnr sími
    simi símanúmer farsími télécopie tfno telemóvel telemovel cel fono cellulare recapito zap fone
    móvil movil celular komórka komórkę komórki komorka mobitel mobitela tālrunis tālr puh kännykkä
    тел моб сотовый мобильный мобільний мобилен мобилни утас τηλ κιν κινητό κινητο cep numaram
    numaramız numaramı رقمي ватсап вотсап вацап جوال موبايل تلفون تليفون محمول واتساب فاكس تلفن
    موبایل موبائل فون هاتف الهاتف الجوال والجوال المحمول טלפון נייד טל פלאפון וואטסאפ פקס הטלפון
    simu telp tlp telpon telepon telepono hp wa sđt đt thoại phonenumber telephonenumber mobileno
    telno phoneno phonenum cellno cellnumber mobilenumber homephone workphone contactno
    contactnumber faxno faxnumber handynr
"""))  # fmt: skip
_CLEAR_STARTS = listed("""
    telepho telefo téléph teléfo telefó telèfo telefô телефон тэлефон τηλέφων τηλεφων puhelin
    matkapuhelin mobiltelefon mobiltlf фोन फ़ोन फोन मोबाइल टेलीफ ফোন মোবাইল தொலைபேசி ఫోన్ фон
""")
_MOBILE = frozenset(
    listed("""
    tfn mobile mobiles mobil cell cellular handy portable fixe sms mob kom contact contacto kontakt
    contatto contato
""")
)
_PLACE = frozenset(
    listed("pager desk office switchboard direct work home bureau büro kantoor casa privat broj")
)
_LIKELY = frozenset(
    listed("""
    dial messaggio mensaje mensagem nachricht bericht meddelande сообщение scrivimi escríbeme
    schreib call called calling calls ring ringing rang reach reached reaching reachable text texted
    texting answer answering answered answers message messages messaged messaging contacted
    voicemail dialed dialled dialing ruf ruft rufen anruf anrufen erreichbar appel appeler appelez
    appelle joindre joignable llamar llame llama llamame llámame llamen liga ligar ligue chiama
    chiamami chiamare chiamate chiami bel bellen zadzwoń zadzwon dzwonić volejte zavolej zavolejte
    hívj hívjon sună sunați sunati позвони позвоните звони звоните позвонить дзвоніть ara arayın
    arayin nås soita soittakaa hubungi tawag tawagan gọi اتصل תתקשר ringa
""")
)
# Of scripts without spaces between words. They count anywhere; of several words the last one
# counts.
_EAST = {
    **dict.fromkeys(listed(
        "電話 电话 手机 手機 携帯 座机 座機 传真 傳真 热线 致电 拨打"
        " スマホ ファックス ファクス ℡ 전화 휴대폰 휴대전화 핸드폰 연락처 팩스 폰"
        " โทร เบอร์ มือถือ แฟกซ์ สายด่วน"), Evidence.CLEAR),
    **dict.fromkeys(listed("연락 문자 ติดต่อ 联系 聯繫"), Evidence.LIKELY),
    **dict.fromkeys(listed(
        "订单 訂單 单号 單號 编号 編號 注文番号 注文 品番 型番 会員番号 顧客番号 口座番号"
        " 口座 账号 帳號 卡号 주문번호 주문 송장 운송장 계좌 상품 모델 사번 회원 고객"
        " คำสั่งซื้อ ออเดอร์ พัสดุ บัญชี รหัส 快递 运单 金额 合計 合计 합계"), Evidence.OTHER),
}  # fmt: skip
_EAST_NUMBER = listed("번호 号码 號碼 番号")
# Small words between a word for phone numbers and the number, and words for `number`.
_NUMBER = listed("""
    number numbers num no nr nos n nº № line nummer nummeret numaras numarası numaram numero número
    numéro numer numeri номер номера nomor číslo cislo szám száma broj नंबर नम्बर নম্বর নাম্বার رقم نمبر
    شماره số numeroni
""")
_SMALL = frozenset(
    listed("""
    is was are at on to me us him her them my your his their our the registered personal private
    business new now still s or and de ist lautet unter auf mich uns und oder est le au du del es é
    è el al la il o mi mio meu su son er är på mig meg op pod je by мой мне это по saya adalah là
    của tôi ko ay sa mo ako है হলো هو הוא ou y e i a et em u neue neuer nouveau nuevo novo nuovo
    nuova ny nya nieuwe nowy nový yeni новый baru bagong naya hai mới
""")
) | frozenset(_NUMBER)

_POSSESSIVE = frozenset(
    listed(
        "my his her your our their mein meine mitt min mijn mon mi meu mio mój moj мой моя "
        "mera meri"
    )
)

# Vowel signs of Indian scripts are not \w.
_WORD = LazyRegex(r"(?:[^\W\d_]|[\u0300-\u036f\u0900-\u0dff])+")
_CAMEL_CASE = LazyRegex(r"(?<=[a-z])(?=[A-Z])")
_POINTS = LazyRegex(r"[:=#]|(?<![^\W_])(?:is|ist|est|es|är|er|é|è)(?![^\W_])", re.IGNORECASE)
_SIGNS = LazyRegex("[:=#]")
_EAST_SCRIPT = LazyRegex(
    r"[\u0e00-\u0eff\u2121\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af][\s\S]{0,24}$"
)

# Words for other things that have numbers. Only `number`, `is` or a sign may stand between them and
# the number.
_GOODS = frozenset(
    listed("""
    voucher coupon receipt quote quotation transaction txn order orders invoice invoices bill ticket
    tickets booking batch lot part parts pn sn model models serial sku skus item items article
    articles art product products asin ean upc gtin isbn issn tracking shipment parcel waybill awb
    consignment version versions build builds release bestellung auftrag rechnung sendung artikel
    commande facture colis pedido factura envío orden ordine fattura spedizione encomenda rendelés
    comandă fatura kargo طلب فاتورة הזמנה pesanan resi
""")
)
_THINGS = _GOODS | frozenset(
    listed("""
    case cases ref refs reference references confirmation claim policy contract doi rfc pmid imei
    imsi iccid meid vin cas cusip ein abn acn vat customer client member user account accounts acct
    konto iban bic id ids uid gid pid uuid guid v commit commits revision rev issue issues bug bugs
    pr port ports error errors code codes status zip zipcode postcode plz row rows record records
    page pages figure table section chapter room flight gate seat kunde vertrag référence dossier
    pratica usd eur gbp chf inr jpy krw thb php sek nok dkk pln
""")
)
_THING_STARTS = listed(
    "заказ накладн счет счёт замовлен zamówieni zamowieni faktur przesył objednáv παραγγελ "
    "sipariş siparis"
)
# Bestellnummer
_COMPOUND = LazyRegex(
    r"(?!tel|handy|mobil|ruf|fax|phone|gsm)[^\W\d_]{3,24}(?:nummer|nummeret|nr|number)"
)
_BESIDE_THINGS = frozenset({*_NUMBER, "is", "was", "are", "id", "code", "de", "postal"})
_SIGN_BEFORE = LazyRegex(r"(?:[$€£¥₹₩฿]|(?<![^\W_])[pPsS]/[nN]\.?:?)\s{0,2}$")
_BREAK = LazyRegex(r"[\n!?;,\d]")
_STATE_BEFORE = LazyRegex(r"(?<![^\W_])[A-Z]{2}[,.]?[\s#*/]{1,6}$")
_ZIP = LazyRegex(r"[0-9]{5}-[0-9]{4}(?![\w-])")  # Boston, MA 02110-1301


def evidence_before(page: Page, start: int) -> Evidence:
    """Return what the words before a number say. The nearest word that says something decides."""
    before = page.zeroed[max(0, start - REACH) : start]
    if _ZIP.match(page.text, start) and _STATE_BEFORE.search(before):
        return Evidence.OTHER
    return page.once(_evidence, before)


def _evidence(before: str) -> Evidence:
    if _SIGN_BEFORE.search(before, max(0, len(before) - 8)):
        return Evidence.OTHER
    if not _has_words(before):
        return Evidence.NONE
    east = _last_east(before)
    if east is not None:
        return east
    before = _CAMEL_CASE.sub(" ", before)
    words = [(found[0].casefold(), found.end()) for found in _WORD.finditer(before)][::-1]
    return Evidence.OTHER if _names_thing(before, words) else _nearest(before, words)


def names_goods(page: Page, start: int) -> bool:
    """Return whether the word before a number says that it is one of an order, a part or another
    thing in trade."""
    return page.once(_is_goods, page.zeroed[max(0, start - REACH) : start])


def _is_goods(before: str) -> bool:
    words = [(found[0].casefold(), found.end()) for found in _WORD.finditer(before)][::-1]
    return _names_thing(before, words, _GOODS)


def without_words(page: Page, start: int) -> bool:
    """Return whether no words stand before a number."""
    return not _has_words(page.unmasked[max(0, start - REACH) : start])


def _has_words(text: str) -> bool:
    return text.swapcase() != text if text.isascii() else _WORD.search(text) is not None


def names_phone(word: str) -> bool:
    """Return whether a word is one for phone numbers, or for a place with a phone."""
    low = word.casefold()
    return low in _CLEAR or low in _MOBILE or low in _PLACE or low.startswith(_CLEAR_STARTS)


def _last_east(before: str) -> Evidence | None:
    """Return what the last word of a script without spaces says, if it stands right before the
    number."""
    tail = _EAST_SCRIPT.search(before)
    if tail is None:
        return None
    found = [
        (tail[0].rfind(word) + len(word), len(word), value)
        for word, value in _EAST.items()
        if word in tail[0]
    ]
    generic = Evidence.LIKELY if any(word in tail[0] for word in _EAST_NUMBER) else None
    return max(found)[2] if found else generic


def _names_thing(
    before: str, words: list[tuple[str, int]], things: frozenset[str] = _THINGS
) -> bool:
    """Return whether the nearest word is one for something else with a number, such as an order."""
    for word, end in words:
        if word in things or word.startswith(_THING_STARTS) or _COMPOUND.fullmatch(word):
            return _BREAK.search(before, end) is None
        if word not in _BESIDE_THINGS:
            return False
    return False


def _nearest(before: str, words: list[tuple[str, int]]) -> Evidence:
    """Return what the nearest word about phones says; only small words may stand between a clear
    one and the number."""
    adjacent, numbered, evidence = True, False, Evidence.NONE
    for word, end in words:
        if word in _CLEAR or word.startswith(_CLEAR_STARTS):
            return Evidence.CLEAR if adjacent else max(evidence, Evidence.FAR)
        pointed = adjacent and (numbered or _POINTS.search(before, end) is not None)
        if pointed and (word in _MOBILE or (numbered and word in _POSSESSIVE)):
            return Evidence.CLEAR
        if pointed and word in _PLACE and (numbered or _SIGNS.search(before, end)):
            return Evidence.CLEAR  # but "the office is at 17031 Main St"
        if word in _MOBILE or word in _LIKELY:
            evidence = max(evidence, Evidence.LIKELY if adjacent else Evidence.FAR)
        numbered = numbered or word in _NUMBER
        adjacent = adjacent and (word in _SMALL or word in _MOBILE or word in _PLACE)
    return evidence


# --- numbers ---

_MIN_DIGITS, _MAX_DIGITS, _MAX_GROUPS = 7, 15, 8
_MIN_FAR_DIGITS = 9  # "ring size 52 53 54 55"
_SEP = rf"[{SPACES}{DASHES}./()]"
# A run of enough digits in groups, consumed whole so that the time is linear.
_RUN = LazyRegex(rf"{DIGIT}(?<!{DIGIT}{DIGIT})(?:{_SEP}{{0,3}}+{DIGIT}){{{_MIN_DIGITS - 1},}}+")
_GROUP = LazyRegex(rf"(?:\+\(?|\()?{DIGIT}+")
_EXTENSION = LazyRegex(r"[ ,;]{0,2}(?:x|ext\.?|extension|#)[ .:]{0,2}\d{1,6}(?!\w)", re.IGNORECASE)

_REQUEST = LazyRegex(
    r"(?<![^\W_])(?:call|ring|phone|text|reach|dial|contact|message)(?:ed|ing|s)?\s(?:my\s\w{1,12}|"
    r"\w{1,20})\s(?:on|at|under)\s{1,3}$",
    re.IGNORECASE,
)
_WORD_AFTER = LazyRegex(rf"[\s,({DASHES}]{{1,3}}([^\W\d_]{{2,16}})")
_POINTED = LazyRegex(
    r"(?:(?<![^\W_])(?:at|on|to|under|number|is|auf|unter|au|al|på)|[:=])\s{0,3}$", re.IGNORECASE
)
_THOUSANDS = LazyRegex(rf"\d{{1,3}}(?:[{SPACES}.]\d{{3}}){{2,4}}")
_QUAD = LazyRegex(r"(?!0)\d{1,3}(?:\.(?:0|[1-9]\d{0,2})){3}")  # an IP address or a version
_DECIMALS = LazyRegex(r"\d{1,4}\.\d{1,4}(?:[ -]{1,3}\d{1,4}\.\d{1,4}){1,6}")
_WITH_TRUNK = LazyRegex(r"0[1-9]\d{7,9}")
_GAPS = tuple(" -.")

# Written forms that need no cue word, if libphonenumber accepts the number in one of the regions.
_NANP_FORM = (
    rf"(?:(?:\+|00)?1[{SPACES}{DASHES}.]{{0,2}})?(?:\([2-9]\d\d\) ?|"
    rf"[2-9]\d\d([{DASHES}.]))[2-9]\d\d(?(1)\1|[{DASHES}. ])\d{{4}}"
)
_AREA_FORM = (
    rf"\((?!(?:19|20)\d\d\))0?\d{{1,4}}\)[{SPACES}{DASHES}]?\d{{2,8}}(?:[{SPACES}{DASHES}.]\d{{2,"
    rf"5}}){{0,4}}"
)
_TRUNK_FORM = rf"0[1-9]\d{{0,3}}(?:[{SPACES}{DASHES}./]\d{{2,8}}){{1,5}}"
_NANP, _NATIONAL = LazyRegex(_NANP_FORM), LazyRegex(rf"{_NANP_FORM}|{_AREA_FORM}|{_TRUNK_FORM}")
_FORM = LazyRegex(rf"\+|00|{_NATIONAL.source}")
_TIGHT = LazyRegex(rf"[0-9{DASHES}./()]{{{_MIN_DIGITS + 1}}}")
_REGIONS = listed("GB DE FR IT AU NZ CH AT BE NL SE IE ZA JP IN TR BR KR PT PL TH PH")
# Whether numbers with the code of a country may have so many digits.
_POSSIBLE: dict[tuple[str, int], bool] = {}
# Of numbers
_KINDS = listed(
    "fixed_line mobile toll_free premium_rate shared_cost personal_number voip pager uan voicemail"
)
_WITHOUT_TRUNK = listed("US IT ES IN PL PT GR MX CO CZ SK CL")  # whose numbers start without a 0

_DAY, _MONTH, _YEAR = r"(?:0?[1-9]|[12]\d|3[01])", r"(?:0?[1-9]|1[0-2])", r"(?:1[5-9]|20)\d\d"
_DATE_FORM = (
    rf"(?:{_YEAR}[-./ ]{_MONTH}[-./ ]{_DAY}|{_DAY}[-./ ]{_DAY}[-./ ]{_YEAR}|"
    rf"{_YEAR}[{SPACES}{DASHES}/]{{1,3}}{_YEAR})(?!\d)"
)
_DATE, _DATE_OR_FORM = (
    LazyRegex(_DATE_FORM),
    LazyRegex(rf"{_DATE_FORM}|(?<!\d[-./])(?:{_FORM.source})"),
)
_AMOUNT_AFTER = LazyRegex(
    r"(?i)\s?(?:[$€£¥₹%]|(?:usd|eur|gbp|chf|bytes|kb|mb|gb|ns|us|µs|ms|sec|seconds|rows|tokens|"
    r"years|people|users|times|won|yen|baht|rupees|rupien|euros?|dollars?)(?![^\W_]))"
)


def find_phones(page: Page) -> Iterator[Span]:
    """Judge each run of digit groups once, from left to right."""
    for run in _RUN.finditer(page.text):
        start, end = run.span()
        before = page.text[start - 1 : start]
        if before == "(" or not page.text[start:end].isdigit():
            yield from _phones_in(page, run)
        elif end - start <= _MAX_DIGITS and _is_group(page, start := start - (before == "+"), end):
            yield _whole(page.text, start, end)


def _is_group(page: Page, start: int, end: int) -> bool:
    """Return whether a single group of digits is a phone number."""
    evidence = Evidence.NONE if page.text[start] == "+" else evidence_before(page, start)
    if (
        evidence <= Evidence.NONE
        and page.text[start] != "+"
        and _phone_word_after(page, end) is None
    ):
        return False
    return _starts(page.text, start) and _is_phone(page, start, end, evidence)


def _whole(text: str, start: int, end: int) -> Span:
    """Return the span of a number with its extension and with a bracket that is closed inside
    it."""
    extension = _EXTENSION.match(text, end)
    return start - _opened(text, start, end), extension.end() if extension else end


def _phone_word_after(page: Page, end: int) -> re.Match[str] | None:
    after = _WORD_AFTER.match(page.text, end)
    return after if after and page.once(names_phone, after[1]) else None


def _phones_in(page: Page, run: re.Match[str]) -> Iterator[Span]:
    text = page.text
    head = text[max(0, run.start() - 2) : run.start()]
    opening = len(head) - len(head.rstrip("+("))
    groups = [found.span() for found in _GROUP.finditer(text, run.start() - opening, run.end())]
    at, done = 0, 0
    other = evidence_before(page, run.start()) == Evidence.OTHER
    # From here on no words stand before a group, and up to there none after it: only a written form
    # makes it a phone number.
    alone = run.start() + (1 if without_words(page, run.start()) else REACH)
    last_alone = len(groups) - 1 - (_MAX_GROUPS if _phone_word_after(page, run.end()) else 0)
    while at < len(groups):
        start = groups[at][0]
        in_middle = at <= last_alone and start >= alone
        following = min(_next(text, groups, at), last_alone + 1) if in_middle else at
        if following > at or (other and text[start] not in "+("):
            at = max(following, at + 1)
            continue
        date = _DATE.match(text, start) if start >= done else None
        formless = in_middle and not _has_form(text, start)
        last = (
            _phone_from(page, groups, at) if start >= done and not date and not formless else None
        )
        if last is not None:
            yield _whole(text, start, groups[last][1])
            at = last
        done = date.end() if date else done
        at += 1


def _next(text: str, groups: list[Span], at: int) -> int:
    """Return the first group from this one on with which a date or a written form may start."""
    found = _DATE_OR_FORM.search(text, groups[at][0], groups[-1][1])
    place = found.start() if found else groups[-1][1]
    return at if place == groups[at][0] else bisect_left(groups, (place,), at)


def _has_form(text: str, start: int) -> bool:
    """Return whether a written form may start in the middle of a run of groups. After a group,
    it has no spaces."""
    follows = text[start] != "(" and text[start - 1] in _GAPS and text[start - 2].isdigit()
    return not (follows and not _TIGHT.match(text, start)) and _FORM.match(text, start) is not None


def _phone_from(page: Page, groups: list[Span], first: int) -> int | None:
    """Return the last group of a number that starts with group `first`; the longest match wins."""
    start, digits, ends = groups[first][0], 0, list[int]()
    if not _starts(page.text, start):
        return None
    for at in range(first, min(first + _MAX_GROUPS, len(groups))):
        digits += groups[at][1] - groups[at][0] - (page.text[groups[at][0]] in "+(")
        if digits > _MAX_DIGITS:
            break
        if digits >= _MIN_DIGITS:
            ends.append(at)
    evidence = evidence_before(page, start) if ends else Evidence.NONE
    if (
        evidence == Evidence.NONE
        and page.text[start] not in "+(0"
        and not _NANP.match(page.text, start)
    ):
        # Only a word after it can still make it a phone number.
        ends = [at for at in ends if at == len(groups) - 1]
    return next(
        (at for at in reversed(ends) if _is_phone(page, start, groups[at][1], evidence)), None
    )


def _starts(text: str, start: int) -> bool:
    head = text[max(0, start - 2) : start]
    if head[-1:] in APART:
        return True
    if joined(head[-1:]) or head[-1:] in ("_", "+", "@", "%"):
        return False
    if head[-1:] in (":", "."):
        return not head[0].isdigit()
    return not (len(head) == 2 and head[1] in "-/" and joined(head[0]) and text[start] != "+")


def _is_phone(page: Page, start: int, end: int, evidence: Evidence) -> bool:
    text, number = page.text, page.text[start:end]
    if not _ends(text, end) or number.count("(") + _opened(text, start, end) != number.count(")"):
        return False
    if number[0] == "+":
        return page.once(_international, number, quicker=_is_possible)
    if evidence == Evidence.OTHER or _AMOUNT_AFTER.match(text, end):
        return False
    likely = evidence == Evidence.LIKELY or (
        evidence == Evidence.FAR and sum(map(str.isdigit, number)) >= _MIN_FAR_DIGITS
    )
    return (
        evidence == Evidence.CLEAR
        or (likely and _likely_form(page, start, end))
        or _is_requested(page, start, end, evidence)
    )


def _is_requested(page: Page, start: int, end: int, evidence: Evidence) -> bool:
    """Accept a number that someone is called on, that a word follows, or in a written form that
    libphonenumber knows."""
    text = page.text
    if _formed(page, start, end) or (
        evidence >= Evidence.FAR and _REQUEST.search(text, max(0, start - REACH), start)
    ):
        return True
    after = _phone_word_after(page, end)
    if after is None:
        return False
    return _separated(text[start:end]) or "(" in after[0] or not after[0][0].isspace()


def _likely_form(page: Page, start: int, end: int) -> bool:
    """Accept, near a likely word, separators that do not group thousands, or a trunk 0 and eight
    to ten digits."""
    text, number = page.text, page.text[start:end]
    pointed = _POINTED.search(text, max(0, start - 12), start) is not None
    if not _separated(number):
        known = pointed and len(number) >= 9 and _is_known(page, number)
        return known or _WITH_TRUNK.fullmatch(number) is not None
    if _QUAD.fullmatch(number) or _DECIMALS.fullmatch(number):
        return False
    return not _THOUSANDS.fullmatch(number) or (pointed and _isolated(text, start, end))


def _opened(text: str, start: int, end: int) -> bool:
    """Return whether a bracket before the number is closed inside it, as in `(+33) 6 12 34 56
    78`."""
    return text[start - 1 : start] == "(" and text.count(")", start, end) > text.count(
        "(", start, end
    )


def _formed(page: Page, start: int, end: int) -> bool:
    """Accept a number without a cue word in one of the written forms, if libphonenumber knows
    it."""
    number = page.text[start:end]
    if not _separated(number) or (SPACES in number and not _isolated(page.text, start, end)):
        return False
    known = _in_form(number) and _is_known(page, number)
    return known or (
        number.startswith("00") and page.once(_international, number, quicker=_is_possible)
    )


def _ends(text: str, end: int) -> bool:
    tail = text[end : end + 2]
    if tail[:1] in APART:
        return True
    if joined(tail[:1]) or tail[:1] == "_":
        return _EXTENSION.match(text, end) is not None
    return not (len(tail) == 2 and tail[0] in ".:,/+-" and tail[1].isdigit())


def _isolated(text: str, start: int, end: int) -> bool:
    """Return whether no further digit groups stand before or after: part of a longer number is
    not a phone number."""
    head, tail = text[max(0, start - 2) : start], text[end : end + 2]
    follows = head[:1].isdigit() and head[1:] in _GAPS and text[start] != "("
    return not (follows or (tail[1:].isdigit() and tail[0] in _GAPS))


def _separated(number: str) -> bool:
    return not number.strip("()").isdigit()


def _in_form(number: str) -> bool:
    return _NATIONAL.fullmatch(number) is not None and 9 <= sum(map(str.isdigit, number)) <= 11


def _is_known(page: Page, number: str) -> bool:
    return (
        page.once(_region, number, quicker=lambda value: next(_likely_regions(value), None))
        is not None
    )


def _likely_regions(number: str) -> Iterator[str]:
    """Yield the regions whose patterns in libphonenumber fit the number. To parse and check it
    for all takes far longer."""
    digits = "".join(filter(str.isdigit, number))
    regions = (
        ("US",) if _NANP.fullmatch(number) else _REGIONS if number[0] in "0(" else _WITHOUT_TRUNK
    )
    return (region for region in regions if _of_region(region).fullmatch(digits))


@cache
def _of_region(region: str) -> re.Pattern[str]:
    """Match a call abroad, or a number of the region, perhaps with the code of the country and
    prefixes before it."""
    from phonenumbers import COUNTRY_CODE_TO_REGION_CODE, PhoneMetadata

    own: Any = PhoneMetadata.metadata_for_region(region)
    several = map(PhoneMetadata.metadata_for_region, COUNTRY_CODE_TO_REGION_CODE[own.country_code])
    kinds = (getattr(one, kind) for one in several for kind in _KINDS)
    numbers = "|".join(
        {kind.national_number_pattern for kind in kinds if kind and kind.national_number_pattern}
    )
    # A prefix that is replaced by other digits may be followed by anything.
    number = r"\d+" if own.national_prefix_transform_rule else f"(?:{numbers})"
    prefix = f"(?:{own.country_code})?(?:{own.national_prefix_for_parsing or ''}){{0,2}}"
    return re.compile(rf"(?:{own.international_prefix})\d+|{prefix}{number}")


def _region(number: str) -> str | None:
    """Return the first region in which libphonenumber considers the number valid."""
    # Takes 25 ms, and few texts have a candidate.
    from phonenumbers import NumberParseException, is_valid_number, parse

    for region in _likely_regions(number):
        try:
            if is_valid_number(parse(number, region)):
                return region
        except NumberParseException:
            continue
    return None


def _is_possible(number: str) -> bool:
    """Return the same as `_international` sooner: without a national prefix, country and length
    decide."""
    digits = "".join(filter(str.isdigit, number.lstrip("+0")))
    code = next((digits[:length] for length in (1, 2, 3) if _prefix(digits[:length])), "")
    prefix = _prefix(code)
    found = prefix.match(digits, len(code)) if prefix else None
    if prefix is None or (found and found.end() > len(code)):
        return prefix is not None and _international(number)
    if (code, len(digits)) not in _POSSIBLE:
        _POSSIBLE[code, len(digits)] = _international(number)
    return _POSSIBLE[code, len(digits)]


@cache
def _prefix(code: str) -> re.Pattern[str] | None:
    """Match the national prefix, which some people write after the code of a country. None:
    there is no such code."""
    from phonenumbers import COUNTRY_CODE_TO_REGION_CODE, PhoneMetadata

    regions = COUNTRY_CODE_TO_REGION_CODE.get(int(code)) if code[:1] > "0" else None
    country = (
        PhoneMetadata.metadata_for_region_or_calling_code(int(code), regions[0])
        if regions
        else None
    )
    return re.compile(country.national_prefix_for_parsing or "") if country else None


def _international(number: str) -> bool:
    from phonenumbers import NumberParseException, is_possible_number, parse

    try:
        return is_possible_number(parse("+" + number.lstrip("+0"), None))
    except NumberParseException:
        return False


def _e164(value: str) -> str:
    """Return one spelling for each number: E.164 where libphonenumber knows it, else its digits."""
    from phonenumbers import PhoneNumberFormat, format_number, parse

    extension = _EXTENSION.search(value)
    number = value[: extension.start()] if extension else value
    abroad = number.startswith(("+", "00")) and _is_possible(number)
    region = _region(number) if not abroad and _in_form(number) else None
    if not abroad and region is None:
        return "".join(str(int(char)) for char in number if char.isdigit())
    return format_number(
        parse("+" + number.lstrip("+0") if abroad else number, region), PhoneNumberFormat.E164
    )


PATTERNS = (Pattern("phone", "PHONE", find_phones, digits=_MIN_DIGITS, normal=_e164),)
