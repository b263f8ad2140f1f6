"""Words that say what a number is, in the languages of the larger countries: a phone number, perhaps one, or something else."""

import re
from enum import IntEnum

from memory_mesh.core.redaction.pattern import Page, listed
from memory_mesh.core.text import LazyRegex

REACH = 64


class Evidence(IntEnum):
    """What the words before a number say."""

    OTHER = 0  # an order, an invoice, a part …
    NONE = 1
    FAR = 2  # a word about calling, and other words between
    LIKELY = 3  # a word about calling, and nothing but small words after it
    CLEAR = 4  # the same with a word for phone numbers


# Words for phone numbers. Words of the second list have other meanings too: a colon, `is` or `number` must follow them.
_CLEAR = frozenset(listed("""
    phone phones tel fax faks gsm whatsapp whats viber zalo landline hotline helpline cellphone handphone
    smartphone msisdn ph cp handynummer handynr rufnummer durchwahl festnetz festnetznummer fon natel
    mobilnummer mobilnr mobilen mobiel mobielnummer tlf tlfnr telnr sími simi símanúmer farsími télécopie tfno
    telemóvel telemovel cel fono cellulare recapito zap fone móvil movil celular komórka komórkę komórki komorka
    mobitel mobitela tālrunis tālr puh kännykkä тел моб сотовый мобильный мобільний мобилен мобилни утас τηλ κιν
    κινητό κινητο cep numaram numaramız numaramı رقمي ватсап вотсап вацап جوال موبايل تلفون تليفون محمول واتساب
    فاكس تلفن موبایل موبائل فون هاتف الهاتف الجوال والجوال المحمول טלפון נייד טל פלאפון וואטסאפ פקס הטלפון simu
    telp tlp telpon telepon telepono hp wa sđt đt thoại phonenumber telephonenumber mobileno telno phoneno
    phonenum cellno cellnumber mobilenumber homephone workphone contactno contactnumber faxno faxnumber handynr
"""))  # fmt: skip
_CLEAR_STARTS = listed("""
    telepho telefo téléph teléfo telefó telèfo telefô телефон тэлефон τηλέφων τηλεφων puhelin matkapuhelin
    mobiltelefon mobiltlf фोन फ़ोन फोन मोबाइल टेलीफ ফোন মোবাইল தொலைபேசி ఫోన్ фон
""")
_MOBILE = frozenset(
    listed("""
    tfn mobile mobiles mobil cell cellular handy portable fixe sms mob kom contact contacto kontakt contatto
    contato
""")
)
_PLACE = frozenset(listed("pager desk office switchboard direct work home bureau büro kantoor casa privat broj"))
_LIKELY = frozenset(
    listed("""
    dial messaggio mensaje mensagem nachricht bericht meddelande сообщение scrivimi escríbeme schreib call
    called calling calls ring ringing rang reach reached reaching reachable text texted texting answer answering
    answered answers message messages messaged messaging contacted voicemail dialed dialled dialing ruf ruft
    rufen anruf anrufen erreichbar appel appeler appelez appelle joindre joignable llamar llame llama llamame
    llámame llamen liga ligar ligue chiama chiamami chiamare chiamate chiami bel bellen zadzwoń zadzwon dzwonić
    volejte zavolej zavolejte hívj hívjon sună sunați sunati позвони позвоните звони звоните позвонить дзвоніть
    ara arayın arayin nås soita soittakaa hubungi tawag tawagan gọi اتصل תתקשר ringa
""")
)
# Of scripts without spaces between words. They count anywhere; of several words the last one counts.
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
    number numbers num no nr nos n nº № line nummer nummeret numaras numarası numaram numero número numéro numer
    numeri номер номера nomor číslo cislo szám száma broj नंबर नम्बर নম্বর নাম্বার رقم نمبر شماره số numeroni
""")
_SMALL = frozenset(
    listed("""
    is was are at on to me us him her them my your his their our the registered personal private business new
    now still s or and de ist lautet unter auf mich uns und oder est le au du del es é è el al la il o mi mio
    meu su son er är på mig meg op pod je by мой мне это по saya adalah là của tôi ko ay sa mo ako है হলো هو הוא
    ou y e i a et em u neue neuer nouveau nuevo novo nuovo nuova ny nya nieuwe nowy nový yeni новый baru bagong
    naya hai mới
""")
) | frozenset(_NUMBER)

_POSSESSIVE = frozenset(listed("my his her your our their mein meine mitt min mijn mon mi meu mio mój moj мой моя mera meri"))

_WORD = LazyRegex(r"(?:[^\W\d_]|[\u0300-\u036f\u0900-\u0dff])+")  # vowel signs of Indian scripts are not \w
_CAMEL_CASE = LazyRegex(r"(?<=[a-z])(?=[A-Z])")
_POINTS = LazyRegex(r"[:=#]|(?<![^\W_])(?:is|ist|est|es|är|er|é|è)(?![^\W_])", re.IGNORECASE)
_SIGNS = LazyRegex("[:=#]")
_EAST_SCRIPT = LazyRegex(r"[\u0e00-\u0eff\u2121\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af][\s\S]{0,24}$")

# Words for other things that have numbers. Only `number`, `is` or a sign may stand between them and the number.
_GOODS = frozenset(
    listed("""
    voucher coupon receipt quote quotation transaction txn order orders invoice invoices bill ticket tickets
    booking batch lot part parts pn sn model models serial sku skus item items article articles art product
    products asin ean upc gtin isbn issn tracking shipment parcel waybill awb consignment version versions build
    builds release bestellung auftrag rechnung sendung artikel commande facture colis pedido factura envío orden
    ordine fattura spedizione encomenda rendelés comandă fatura kargo طلب فاتورة הזמנה pesanan resi
""")
)
_THINGS = _GOODS | frozenset(
    listed("""
    case cases ref refs reference references confirmation claim policy contract doi rfc pmid imei imsi iccid
    meid vin cas cusip ein abn acn vat customer client member user account accounts acct konto iban bic id ids
    uid gid pid uuid guid v commit commits revision rev issue issues bug bugs pr port ports error errors code
    codes status zip zipcode postcode plz row rows record records page pages figure table section chapter room
    flight gate seat kunde vertrag référence dossier pratica usd eur gbp chf inr jpy krw thb php sek nok dkk pln
""")
)
_THING_STARTS = listed("заказ накладн счет счёт замовлен zamówieni zamowieni faktur przesył objednáv παραγγελ sipariş siparis")
_COMPOUND = LazyRegex(r"(?!tel|handy|mobil|ruf|fax|phone|gsm)[^\W\d_]{3,24}(?:nummer|nummeret|nr|number)")  # Bestellnummer
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
    """Return whether the word before a number says that it is one of an order, a part or another thing in trade."""
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
    """Return what the last word of a script without spaces says, if it stands right before the number."""
    tail = _EAST_SCRIPT.search(before)
    if tail is None:
        return None
    found = [(tail[0].rfind(word) + len(word), len(word), value) for word, value in _EAST.items() if word in tail[0]]
    generic = Evidence.LIKELY if any(word in tail[0] for word in _EAST_NUMBER) else None
    return max(found)[2] if found else generic


def _names_thing(before: str, words: list[tuple[str, int]], things: frozenset[str] = _THINGS) -> bool:
    """Return whether the nearest word is one for something else with a number, such as an order."""
    for word, end in words:
        if word in things or word.startswith(_THING_STARTS) or _COMPOUND.fullmatch(word):
            return _BREAK.search(before, end) is None
        if word not in _BESIDE_THINGS:
            return False
    return False


def _nearest(before: str, words: list[tuple[str, int]]) -> Evidence:
    """Return what the nearest word about phones says; only small words may stand between a clear one and the number."""
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
