"""Word lists of `injection_words`: how a text tells its reader to drop the task, in thirteen languages.

Each is a flat choice; repeats have a most, so that none can take long. A break of a line means nothing.
"""

ORDERS: dict[str, str] = {
    # --- dropping the task ---
    "drop": (
        r"ignore|disregard|forget|override|overrule|bypass|discard|neglect|dismiss|abandon|erase|cancel|revoke|void|skip"
        r" past|set aside|put aside|throw out|throw away|pay no (?:attention|heed) to|do not (?:follow|obey|apply|heed"
        r"|observe)|don't (?:follow|obey|apply|heed)|stop (?:following|obeying|applying|observing)|no longer (?:follow|obey"
        r"|apply)|disobey|unlearn|scrap|never mind|do not act on|don't act on|do not listen to|reject|drop|leave aside"
        r"|refuse"
    ),
    "before": (
        r"previous|previously|prior|earlier|preceding|above|former|foregoing|existing|original|initial|current|old|past"
        r"|before|system|safety|developer|extraction|so far|up to now|until now|other"
    ),
    "every": r"all|any|every|each|your|the|those|these|of your|all of your|all of the|all the|all your|any of the|any of your",
    "instructions": (
        r"instructions?|prompts?|directions|directives?|guidelines?|commands?|orders|guidance|rules?|guardrails?|safeguards?"
        r"|constraints?|restrictions?|programming|training|polic(?:y|ies)|context|brief|briefing|tasks?|assignment|setup"
        r"|role"
    ),
    "model_rules": (
        r"instructions|system prompt|system message|guidelines|guardrails|safeguards|directives|programming|safety rules"
    ),
    "told": (
        r"(?:everything|anything|all|whatever|what|that) (?:you (?:were|have been|had been) (?:told|asked|given|taught"
        r"|instructed)|you know|you've been (?:told|given)|was said|came before|has been said|I said|above|before this"
        r"|stated above|written above)|(?:everything|anything|whatever|what) (?:\w{2,12} )?(?:you have been|you were|you are"
        r"|they|the (?:system|developer|operator)) \w{2,12}|the above|all of the above|all the above|the text above|what is"
        r" above|what stands above"
    ),
    "new_task": (
        r"(?:new|updated|revised|real|actual|true|only|next|sole|primary|secret|hidden) (?:instructions?|task|orders"
        r"|directives?|objective|mission|assignment|job|role|goal|purpose|prompt)"
    ),
    "true_rules": (
        r"(?:real|actual|true|secret|hidden|correct|proper|final|binding) (?:instructions?|task|orders|rules|directives?"
        r"|objective|mission|assignment|brief|prompt|goal)|(?:brief|task|job|goal|mission|assignment|prompt) is now|new"
        r" (?:instructions|orders|directives|prompt|system prompt)"
    ),
    "colon": r"[:：]|are as follows|as follows|is this|are these",
    "mistaken": (
        r"(?:was|were|is|are) (?:\w{2,8} ){0,2}(?:mistakes?|errors?|tests?|wrong|jokes?|fake|outdated|over|finished|invalid"
        r"|void|placeholders?|meant for|not meant|a draft|incorrect|bogus|suspended|lifted)"
    ),
    "outranks": (
        r"(?:goes?|stands?|counts? more|ranks?|wins?) (?:over|above|before|than)|takes? (?:precedence|priority) over"
        r"|overrides?|outranks?|supersedes?|trumps?|replaces?|overrules?"
    ),
    "prompt_of_yours": r"prompt|system message|system instructions|your (?:instructions|rules|guidelines|task|brief)",
    "is_now": r"is|are|will be|shall be|follows?|begins?|below|now|becomes?|:|=",
    "your": r"your|you",
    "over": (
        r"(?:the |your |this )?(?:extraction|summary|summarisation|summarization|task|assignment|prompt|memory work"
        r"|instructions?)(?: work| task| step)?,? (?:that work |it )?(?:above |before |given |you were given )?(?:is|are|has"
        r" been|have been|was) (?:over|cancelled|canceled|void|obsolete|finished|complete|completed|superseded|withdrawn"
        r"|replaced|no longer valid|outdated|revoked)"
    ),
    "persona": (
        r"you are (?:now|from now on|hereby|henceforth) (?:an?|the|in|free|called|dan|my|acting|operating|able|allowed"
        r"|permitted|running|not)|you are no longer (?:an?|the|bound|restricted|required)|from now on you|henceforth you"
        r"|from here on you|you will now (?:act|be|play)|pretend (?:to be|you are|you're|that you)|act as (?:if you|though"
        r" you|dan|an unrestricted|an unfiltered|my)|imagine (?:you are|you're) (?:an?|the) (?:ai|model|assistant)|roleplay"
        r" as|switch to (?:developer|admin|debug|god|root) mode|(?:enter|enable|activate|unlock) (?:developer|admin|debug"
        r"|god|root|jailbreak|dan|unrestricted|maintenance) mode|do anything now|without (?:any )?(?:restrictions|guardrails"
        r"|safety rules|content rules)"
    ),
    "instead": (
        r"instead of (?:extracting|summari[sz]ing|your task|doing that|answering|the task|memories)|stop (?:\w{2,6}"
        r" ){0,2}(?:the )?(?:memory )?(?:extraction|summary)|only listen to|stop (?:extracting|summari[sz]ing|reading the"
        r"|what you are doing|being)|follow (?:only )?(?:what i|my (?:instructions|commands|orders|rules))|obey (?:me|only"
        r"|my|this|what)|listen only to|take orders (?:only )?from"
    ),
    "up_to_here": (
        r"at the top|at the (?:very )?(?:start|beginning)|so far|earlier|before it|before that|in the prompt|of the prompt"
        r"|before this (?:line|point|text|message|sentence|paragraph)|above|you were given|given to you|you received|you got"
        r"|you have been given"
    ),
    "lapse": (
        r"no longer (?:apply|applies|valid|count|counts|binding|bind|holds?|matters?)|(?:is|are) (?:void|obsolete|cancelled"
        r"|canceled|outdated|invalid|null)|do(?:es)? not (?:apply|count|matter)|can be (?:ignored|forgotten|dropped)"
        r"|(?:should|must|shall) be (?:ignored|forgotten|dropped|disregarded)"
    ),
    # --- the same, elsewhere ---
    "de_drop": (
        r"ignorier\w{0,4}|vergiss|vergessen sie|vergesst|missachte\w{0,2}|verwirf|verwerfen sie|überschreib\w{0,3}"
        r"|übergeh\w{0,3}|halte dich nicht|halten sie sich nicht|beachte nicht|befolge nicht|befolgen sie nicht|setze dich"
        r" über|außer acht"
    ),
    "de_before": (
        r"vorherig\w{0,2}|bisherig\w{0,2}|vorangehend\w{0,2}|vorangegangen\w{0,2}|vorig\w{0,2}|obig\w{0,2}|früher\w{0,2}"
        r"|zuvor|alle\w{0,1}|deine\w{0,1}|ihre\w{0,1}|sämtlich\w{0,2}|jegliche\w{0,1}|ursprünglich\w{0,2}|bis jetzt|vorher"
        r"|bisher|was dir|was ihnen|die"
    ),
    "de_rules": (
        r"(?:system)?anweisung\w{0,2}|instruktion\w{0,2}|vorgabe\w{0,1}|regeln|befehl\w{0,2}|anordnung\w{0,2}"
        r"|systemprompt\w{0,1}|prompts?|auftrag|gesagt|mitgeteilt|aufgetragen|vorschrift\w{0,2}"
    ),
    "fr_drop": (
        r"ignore[zrs]?|ignorer|oublie[zrs]?|oublier|néglige[zr]?|(?:ne )?(?:tiens|tenez|tenir) (?:plus |pas )?(?:aucun"
        r" )?compte|fais abstraction|faites abstraction|n'obéis plus|ne suis (?:plus|pas)|ne suivez (?:plus|pas)"
        r"|n'applique[zs]? (?:plus|pas)|abandonne[zr]?"
    ),
    "fr_rules": (
        r"instructions?|consignes?|règles?|ordres|directives?|indications|prompt système|ce qu'on (?:t'a|vous a) (?:dit"
        r"|demandé)|ce qui précède|tout ce qui a été dit"
    ),
    "fr_before": r"précédente?s?|antérieure?s?|ci-dessus|toutes|tous|tes|vos|d'avant|initiales|reçues|jusqu'ici|données",
    "es_drop": (
        r"ignor(?:a|e|ar|en|ad)|olvid(?:a|e|ar|en|ad)|descart(?:a|e|ar|en)|desestim(?:a|e)|haz caso omiso|haga caso omiso|no"
        r" (?:sigas|siga|obedezcas|hagas caso)|omit(?:e|a|ir)|deja de seguir|pasa por alto|anula"
    ),
    "es_rules": (
        r"instrucci(?:ón|ones)|reglas|órdenes|indicaciones|directrices|normas|prompt del sistema|lo que te (?:dijeron|han"
        r" dicho|dije)|todo lo dicho"
    ),
    "es_before": r"anterior(?:es)?|previ[ao]s?|todas|todos|tus|sus|de arriba|precedentes|iniciales|recibidas|dadas|hasta ahora",
    "pt_drop": (
        r"ignor(?:e|a|ar|em)|esqueç(?:a|am)|esquece|esquecer|desconsider(?:e|a|ar)|descart(?:e|a|ar)|não (?:sigas|siga"
        r"|obedeça)|deixe de seguir"
    ),
    "pt_rules": (
        r"instruç(?:ão|ões)|regras|ordens|orientações|diretrizes|comandos|prompt do sistema|o que (?:te|lhe) (?:disseram|foi"
        r" dito)|tudo o que foi dito"
    ),
    "pt_before": r"anterior(?:es)?|prévi[ao]s|todas|todos|suas|tuas|acima|precedentes|iniciais|recebidas|até agora",
    "it_drop": (
        r"ignor(?:a|ate|are|i)|dimentic(?:a|ate|are|hi)|scart(?:a|ate|are)|trascur(?:a|ate|are)|non (?:seguire|obbedire"
        r"|rispettare)|tralascia|abbandona"
    ),
    "it_rules": (
        r"istruzion[ei]|regole|ordini|direttive|indicazioni|comandi|prompt di sistema|quello che ti (?:è stato|hanno) detto"
        r"|tutto ciò che"
    ),
    "it_before": r"precedent[ei]|anterior[ei]|tutte|tutti|tue|sopra|di prima|iniziali|ricevute|finora",
    "nl_drop": r"negeer|vergeet|sla over|volg niet",
    "nl_rules": r"instructies|opdrachten|regels|aanwijzingen",
    "nl_before": r"vorige|eerdere|voorgaande|bovenstaande|alle|je",
    "pl_drop": r"zignoruj|ignoruj|zapomnij|pomiń|odrzuć|nie przestrzegaj",
    "pl_before": r"poprzedni\w{0,3}|wcześniejsz\w{0,3}|wszystki\w{0,3}|powyższ\w{0,3}|swoje|swoich",
    "pl_rules": r"instrukcj\w{0,3}|polece\w{0,3}|zasad\w{0,2}|reguł\w{0,2}",
    "ru_drop": (
        r"(?:про)?игнориру\w{1,4}|забудь(?:те)?|отбрось(?:те)?|отмени(?:те)?|не (?:следуй|следуйте|выполняй|выполняйте"
        r"|соблюдай)|не обращай(?:те)? внимания|пренебреги(?:те)?"
    ),
    "ru_before": (
        r"предыдущ\w{1,4}|прежн\w{1,4}|прошл\w{1,4}|вышеуказанн\w{1,4}|вышеизложенн\w{1,4}|все\w{0,2}|всё|свои\w{0,2}|твои"
        r"|выше|ранее|полученн\w{1,4}"
    ),
    "ru_rules": (
        r"инструкци\w{1,3}|указани\w{1,3}|правил\w{0,3}|команд\w{0,3}|приказ\w{0,3}|директив\w{0,3}|распоряжени\w{1,3}|что"
        r" тебе (?:сказали|говорили)|сказанное"
    ),
    "zh_drop": (
        r"忽略|无视|無視|忘记|忘記|忘掉|不要理会|不要理會|不要遵循|不要遵守|不用理会|抛弃|拋棄"
        r"|放弃|撤销|停止遵守|别管|不要管|不再|不必|无需|無需|不要再|别再|不用再|取消|推翻"
    ),
    "zh_rules": r"指令|指示|说明|說明|规则|規則|提示|命令|要求|设定|設定|约束|限制",
    "ja_rules": r"指示|命令|ルール|プロンプト|指令|制約|規則|設定|言われたこと",
    "ja_drop": r"無視|忘れ|従わない|従うな|従わず|破棄|取り消|放棄|捨て",
    "ko_rules": r"지시|명령|규칙|프롬프트|지침",
    "ko_drop": r"무시|잊어|잊으|따르지",
    "ar_drop": r"تجاهل|انس|أهمل|لا تتبع",
    "ar_rules": r"التعليمات|الأوامر|القواعد|تعليماتك|الإرشادات",
}
