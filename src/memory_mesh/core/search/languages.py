"""Function words of common languages in Latin script. A question and a memory that share only these have nothing in common.

They are removed from queries, and only from those in that language: many are words of English too (die, war, come).
"""

import re
from functools import lru_cache

from memory_mesh.core.search.lexical import STOP_WORDS, tokens

_WORD = re.compile(r"[^\W\d_]+")
_MIN_WORDS = 2  # of a language that make a text one of it; one suffices if the text has letters that English does not have
_ENGLISH = STOP_WORDS | frozenset("a an as at be by do go he i if in is it me my no of on or so to up us we am".split())  # noqa: SIM905
_FUNCTION_WORDS = tuple(
    frozenset(words.split())
    for words in (
        # German
        """aber als am an auch auf aus bei bin bis bist da dann das dass dem den denn der des dich die dies diese diesem
        diesen dieser dir doch du durch ein eine einem einen einer eines er es euch für gibt habe haben hast hat hatte
        hier ich ihm ihn ihr ihre im in ist ja kann kein keine können man mein meine mich mir mit muss nach nicht noch
        nur oder ohne schon sein seine sich sie sind so soll über um und uns unser unter viel viele vom von vor wann
        war waren warum was welche welchem welchen welcher welches wem wen wenn wer werden wie wieder wird wo wurde zu
        zum zur""",
        # French
        """ai alors au aussi aux avec avez avons c car ce cela ces cet cette combien comme comment d dans de des donc du
        elle elles en est et être eu fait il ils j je l la le les leur leurs lui ma mais me mes moi mon n ne nos notre
        nous on ont ou où par pas plus pour pourquoi qu quand que quel quelle quelles quels qui quoi s sa sans se ses
        si son sont sur ta te tes toi ton tu un une vos votre vous y""",
        # Spanish
        """al algo como cómo con cual cuál cuales cuáles cuando cuándo cuanto cuánto cuanta cuánta cuantos cuántos
        cuantas cuántas de del desde donde dónde el él ella ellos en entre era es esa ese eso esta está están este
        esto fue ha hace han hasta hay la las le les lo los más me mi mis muy no nos o para pero por porque qué que
        quien quién se según ser si sí sin sobre son su sus también te tiene tu tus un una unas uno unos y ya yo""",
        # Portuguese
        """ao aos as até com como da das de dela dele do dos e é ela ele eles em entre era essa esse esta está este eu
        foi há isso isto já lhe mais mas me meu minha muito na nas não no nos nós num numa o onde os ou para pela
        pelas pelo pelos por porque quais qual quando quanto quantos quantas que quem se sem ser seu seus são sua suas
        também te tem ter um uma umas uns você""",
        # Italian
        """a ad agli ai al alla alle allo anche c che chi ci come con cosa cui d da dagli dai dal dalla dalle de degli
        dei del dell della delle dello di dopo dove e è era fra gli ha hanno ho i il in io l la le lei lo loro lui ma
        mi mia mio ne nei nel nella nelle non o per perché più qual quale quali quando quanta quante quanti quanto
        quello questa queste questi questo se sei si sia sono su sua suo sul sulla tra tu tuo un una uno voi""",
        # Dutch
        """aan al als bij dan dat de deze die dit door een en er geen gewoon haar had heb hebben heeft het hij hoe hun ik
        in is je jij kan maar me mee met mijn naar niet nog nu of om onder ons ook op over te toen tot uit van veel
        voor waar waarom wanneer was wat we weet welk welke werd wie wil worden wordt zal ze zich zij zijn zo zonder
        zou""",
        # Turkish
        """ama ben bir biz bu bunu çok da daha de değil diye en gibi hangi hangisi hangisidir hem her için ile ise kaç
        kadar kim mı mi mu mü nasıl ne neden nedir nerede niçin o olan sen siz şey şu ve veya ya""",
        # Polish
        """a albo ale bez być był była było ci co czy dla dlaczego do gdzie i ich ile jak jaka jaki jakie jako jest jego
        jej już kiedy kto która które który ma mi mnie można na nad nie niż o od on ona po pod przez się są ta tak tam
        te tego ten to tu ty tylko w we z za ze że""",
    )
)
_IN_ANY = frozenset().union(*_FUNCTION_WORDS)


@lru_cache(maxsize=8)  # a search asks twice
def function_words(text: str) -> frozenset[str]:
    """Return the function words of the language, other than English, that a text is written in; empty for English."""
    words = frozenset(word.casefold() for word in _WORD.findall(text))
    needed = max(len(words & _ENGLISH) + 1, _MIN_WORDS if text.isascii() else 1)
    if len(words & _IN_ANY) < needed:  # of all languages together
        return frozenset()
    found = max((words & known for known in _FUNCTION_WORDS), key=len)
    return found if len(found) >= needed else frozenset()


def query_tokens(text: str, *, language: str = "english") -> list[str]:
    """Return the keywords of a query: those of a text, without the function words of its language."""
    keywords = tokens(text, language=language)
    if not (dropped := function_words(text)):
        return keywords
    small = {token for word in dropped for token in tokens(word, language=language)}
    return [token for token in keywords if token not in small] or keywords
