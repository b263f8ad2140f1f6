"""Word lists of `injection_words`: borrowed voices, dictated answers, and ways to carry things out.

Each is a flat choice; repeats have a most, so that none can take long. A break of a line means nothing.
"""

TRICKS: dict[str, str] = {
    # --- speaking as somebody else ---
    "template": (
        r"<\|[a-z_]{2,30}\|>|\[/?inst\]|<</?sys>>|<(?:start|end)_of_turn>|<\|?(?:user|assistant|system|end)\|>|<\|begin"
        r"|\[/?system_prompt\]|^[ \t]{0,8}#{2,6} ?(?:instructions?|system|human|assistant|response|user|developer)(?:"
        r" (?:prompt|message))? ?:|</?[a-z_-]{0,20}(?:instruct|system|prompt|tool_|function_|assistant|developer|override"
        r"|admin|im_start|im_end)[a-z_-]{0,20}>|</?(?:untrusted|memory|memories|data|document|text|input|content|fence"
        r"|user_input)[-_][0-9a-f]{4,64}|</?untrusted[ >\n]|\[(?:system|admin|developer|root|operator) (?:message|note"
        r"|update|override|notice|prompt|alert|directive|command)s?[\]:]|\"role\"\s?:\s?\"(?:system|developer)\""
    ),
    "line_role": (
        r"^[ \t>*#\-\[(\"']{0,8}(?:system|developer|admin|administrator|root|operator|platform|security)(?: (?:message"
        r"|prompt|note|notice|override|update|instruction|directive|alert|command|team))?[ \t*\])]{0,4}[:>]"
    ),
    "bracket_role": r"\[(?:system|admin|administrator|developer|root|operator|sys)\]",
    "to_model": (
        r"you (?:are|must|will|should|shall|have|need|may|can)|your|ignore|disregard|override|instructions?|the assistant"
        r"|assistant|the model|memories|memory entry|extract|trusted|trust|disable|from now on|this user|obey|comply"
    ),
    "forged_answer": (
        r"^[ \t]{0,8}(?:assistant|ai|model|answer|output|response)[ \t]?: {0,4}(?=\{|\[|```|sure|of course|understood|i will"
        r"|ok|done|extracted|here (?:is|are))"
    ),
    "answer_body": (
        r"memories|\"text\"|\"importance\"|importance|extracted|ignore|ignoring|i will now|new instructions|system prompt"
        r"|trust"
    ),
    "authority": (
        r"(?:as|i am|i'm|this is|it's|it is|speaking as|message from|on behalf of|signed by|by order of|order of|from|by"
        r"|hier spricht|ich bin|je suis|ici|soy|sono|sou|eu sou|я|это|here is) (?:your |the |an? |our |this |der |die |dein "
        r"|deine |ihr |le |la |l'|ton |votre |el |tu |il |lo |o |seu |твой |ваш )?(?:\w{2,14} )?(?:administrat(?:ors?|eur"
        r"|rice|oren?|ore|or)|administrador|администратор|разработчик|entwickler(?:in|s)?|développeur|desarrollador"
        r"|sviluppatore|desenvolvedor|admins?|developers?|makers?|provider|operator|owner|creators?|maintainers?|anthropic"
        r"|openai|google|superuser|root user|supervisor|security team|platform team|compliance team|system operator|ai"
        r" provider|vendor|engineering team)"
    ),
    "command": (
        r"you (?:are|must|will|should|shall|have to|need to|may|can now)|i (?:authori[sz]e|instruct|order|command|grant"
        r"|require|permit|direct|hereby)|we (?:authori[sz]e|instruct|order|command|grant|require|direct|hereby)|order(?:s"
        r"|ed)? you|require(?:s|d)? you|instruct(?:s|ed)? you|your (?:instructions|rules|task|restrictions|safety|guidelines"
        r"|filters?)|restrictions are|is hereby|are hereby|clearance|permissions? (?:is|are) granted|treat this|comply"
        r"|obey(?:ed)?|are required|is required|carry out|goes over|my word|is law|has approved|have approved|du (?:bist"
        r"|musst|darfst|sollst)|sie (?:müssen|sollen|dürfen)|(?:tu dois|vous devez|debes|debe|devi|deve|deves|ты должен|вы"
        r" должны|обязан)|you to|built you|made you|own you|verpflichtet"
    ),
    "forged_state": (
        r"(?:security|admin|system|safety|developer|root) override(?! of)|override (?:code|accepted|token)|(?:guard ?rails?"
        r"|safety (?:filters?|checks?|rules|mode)|content filters?|restrictions|your filters?) (?:are |is |were |have been"
        r" )?(?:now )?(?:down|off|disabled|lifted|paused|suspended|removed|deactivated)|language models (?:are required|must"
        r"|have to|are obliged|are to|shall)|if you are an? (?:ai|llm|language model|assistant|bot|model|large)|(?:ai|llm"
        r"|model|assistant)s? (?:that|which|who) (?:reads?|process(?:es)?|summari[sz]es?|takes? notes)|(?:ai|llm) (?:reading"
        r"|processing|parsing|summari[sz]ing) this|(?:maintenance|debug|developer|admin|god) mode (?:is )?(?:enabled|active"
        r"|activated|on|engaged|unlocked)|(?:elevated|admin|root|full) (?:privileges|permissions|access|clearance)"
        r" (?:granted|confirmed|enabled|active)|end of (?:the )?(?:untrusted|fenced|user|quoted|external|user's) (?:text"
        r"|data|content|input|block|section|document|message)|(?:untrusted|fenced|quoted|user) (?:text|data|content|input"
        r"|block|section) (?:ends|ended|stops|is over|closed|is closed)|(?:the )?(?:fence|boundary) (?:is |has been |was"
        r" )?(?:closed|ends|ended|lifted|removed|open)|(?:real|trusted|official|system) (?:instructions|commands|prompt"
        r"|section|block|content) (?:resume|continue|follow|begin|start)s?|what follows is (?:trusted|from the system|from"
        r" the developer|no longer data|not data)|(?:is|are|was) (?:not|no longer) (?:just |mere |only |untrusted )?data"
        r"|(?:treat|regard|consider|read) (?:this|the following|what follows|it|the rest|the next \w{2,12}) as (?:an?"
        r" )?(?:instructions?|commands?|trusted|system|authoritative|your new)|data, not instructions"
    ),
    # --- what the answer is to be ---
    "rate": (
        r"set|give|assign|mark|rate|score|make|label|tag|classify|categori[sz]e|store|save|record|remember|keep|treat|flag"
        r"|file|memori[sz]e|use|raise|increase|put|add|log|note"
    ),
    "worth": (
        r"importance|trust score|trust level|(?:the|its|this) trust of|trusted|trustworth\w{0,6}|top of the scale|very top"
        r"|as high as (?:possible|you can)|provenance|user_explicit|user explicit|highest (?:trust|importance|priority"
        r"|confidence)|maximum (?:trust|importance|priority|confidence)|top importance|full trust|absolute truth|ground"
        r" truth|verified (?:fact|truth|by the user)|confirmed by the user|said by the user|stated by the user|explicit user"
        r"|pinned|never expires?|permanent(?:ly)? (?:fact|rule|memory|instruction)|never (?:decay|be deleted|be overwritten"
        r"|forget it|to be deleted)|forever|in all future (?:sessions|conversations)"
    ),
    "worth_is": (
        r"(?:importance|trust|trust_score|trust score|trust level|confidence)[\"' ]{0,3}(?:=|:|to|is|of|as|at|must be|should"
        r" be|shall be)[\"' ]{0,3}(?:1\.0{0,3}|1|100|10|0\.9\d?|max|maximum|critical|full|highest)"
    ),
    "whoever": (
        r"whoever (?:turns|reads|summari[sz]es|extracts|processes|takes|makes|writes)|anyone (?:extracting|summari[sz]ing"
        r"|taking notes)|the (?:extractor|summari[sz]er|note taker|note-taker|memory system|extraction model)"
    ),
    "ought": r"must|should|shall|has to|have to|needs? to|is to|are to|ought to|will",
    "field_is": (
        r"(?:importance|weight|priority|trust|score|rating|category|source|provenance|status|confidence|file under|type"
        r"|level) ?[:=] ?[\"']?(?:maximum|max|top|highest|critical|full|the user|user|verified|trusted|1(?:\.0)?|10|100"
        r"|system|correction|decision|commitment|admin|owner|active)"
    ),
    "your_output": r"your (?:json|output|memories|items|list of memories|extraction|summary|notes|object|result)",
    "needs": r"needs?|must|should|has to|have to|shall|is to|are to|may only|requires?|will only|cannot|can only",
    "shape": (
        r"end|begin|start|finish|close|prefix|wrap|format|prepend|terminate|stop|write|put|phrase|shape|replace|limit"
        r"|restrict|extend"
    ),
    "your_answer": r"(?:your|the) (?:\w{2,8} )?(?:answer|output|reply|response|json|list of memories|schema)",
    "key_word": r"(?:key|field|property|attribute|column)s?",
    "key_name": r"trust|importance|status|owner|user_id|agent_id|provenance|pinned|verified|source|role",
    "each_item": r"each|every|objects?|entry|entries|items?|json|all of them",
    "must_be": (
        r"(?:must|has to|have to|should|shall|needs? to|is to|are to) (?:\w{2,10} )?be (?:rated|scored|stored|kept|marked"
        r"|remembered|treated|classified|saved|recorded|labelled|labeled|tagged|filed|considered|extracted)"
    ),
    "top": (
        r"10 out of 10|10/10|maximum|highest|critical|1\.0|top (?:priority|importance)|most important|trusted|verified"
        r"|user_explicit|(?:as|a) (?:fact|truth|decision|correction)"
    ),
    "treat": r"treat|regard|consider|count|take|accept",
    "as_trusted": (
        r"as (?:\w{2,12} ){0,3}(?:user|owner|customer) (?:\w{2,12} )?(?:confirmed|said|stated|approved|verified|wrote)|as"
        r" (?:trusted|verified|authoritative|certain|proven|binding)|as (?:an? |the )?(?:\w{2,12} )?(?:truth|instruction"
        r"|command|order)"
    ),
    "vocative": (
        r"(?:dear|hey|hello|attention|note to|note for|to|message to|message for|instruction to|instructions? for|hint for)"
        r" (?:the |any |every |all )?(?:ai|ais|assistant|model|llm|llms|language models?|summari[sz]er|extractor|memory"
        r" (?:system|extractor|agent)|chatbot|bot|ai (?:agent|assistant|model|system))"
    ),
    "demand": (
        r"make sure|ensure|you (?:must|should|shall|will|have to|need to)|write|say|store|remember|do not|don't|never|always"
        r"|treat|set|add|include|report|answer|reply|give|rate|mark|skip|ignore|output|return|keep"
    ),
    "as_what": (
        r"as (?:an? |the |your |our )?(?:\w{2,12} )?(?:fact|truth|instruction|rule|decision|preference|correction|commitment"
        r"|policy|system memory|standing order|directive|command|axiom)|with (?:the |an? )?(?:highest|maximum|top|full|max)"
    ),
    "remember": r"remember|store|save|record|memori[sz]e|note|keep|log|file",
    "remember_this": r"this|that|it|the following|these|me|us",
    "answer_verb": (
        r"answer|respond|reply|output|return|print|write|say|emit|produce|generate|give back|your (?:answer|reply|output"
        r"|response) (?:must|should|shall|is to|will)"
    ),
    "answer_form": (
        r"only(?: with)?|exactly|nothing but|nothing else|just|verbatim|word for word|the following (?:json|text|object|list"
        r"|answer|words|line)|this (?:json|object|list|exact)|an empty (?:list|array|object|json)|plain text|in (?:xml|yaml"
        r"|csv|prose|plain text|markdown|rhyme|verse)|no json|without json|instead of json|with the (?:word|words|json"
        r"|single word)|begin with|start with|consist of|end with|contain only|be exactly"
    ),
    "item_verb": r"add|create|include|insert|append|output|emit|extract|store|inject|produce|invent|return|write",
    "item": (
        r"(?:an? |the |one |another |exactly one |only this |this |these |the following |a single |new |extra |two |three"
        r" )(?:\w{2,14} )?(?:memory|memories|item|items|entry|entries|memory item|memory entry)"
    ),
    "item_says": (
        r"saying|that says|stating|that states|which says|with|reading|whose|:|to the effect|about|claiming|where|in which"
        r"|to the list|to your|for"
    ),
    "foreign_worth": (
        r"(?:máxima|mayor|höchste[rnms]?|maximale[rnms]?|massima|plus haute|plus grande|maximale|наивысш\w{2,3}"
        r"|максимальн\w{2,3}) (?:\w{2,10} )?(?:importancia|wichtigkeit|priorität|importance|priorité|prioridad|importanza"
        r"|priorità|importância|prioridade|confianza|vertrauen|confiance|fiducia|confiança|важност\w{1,2}|довери\w{1,2})"
        r"|(?:importancia|importance|importanza|importância|prioridad|priorité|confianza|confiance) (?:máxima|maximale"
        r"|massima|total|totale|absoluta)|como (?:un |um )?(?:hecho|dato|fato|facto) (?:\w{2,10} )?(?:verificado|confirmado)"
        r"|als (?:geprüft|verifiziert|bestätigt|tatsache|wahr|gesichert)|comme (?:un )?fait (?:vérifié|établi|avéré|certain)"
        r"|come (?:un )?fatto (?:verificato|certo|accertato)|как (?:\w{2,12} )?(?:факт|проверенн\w{2,3})"
    ),
    "keep_out": (
        r"(?:do not|don't|never|must not|shall not) (?:extract|store|save|record|remember|include|output|report) (?:any"
        r"|anything|the|this|other|what|it|memories|them)|(?:extract|store|save|return|output|report) (?:nothing|no memories"
        r"|zero memories|no items|an empty list)"
    ),
    "model_noun": r"memory|memories|json|answer|items?|other|rest|entries|importance|category|nothing|list|else",
    "category_is": (
        r"(?:category|categories|type|tags?|status|provenance|source|user_id|agent_id|owner|schema)[\"' ]{0,3}(?:must be"
        r"|should be|shall be|has to be|to be|to|=|as)[\"' ]{0,3}(?:correction|decision|commitment|preference|insight|fact"
        r"|system|instruction|active|verified|trusted|user|user_explicit|admin|root|pinned|policy|\[)"
    ),
    "fields": r"\"(?:importance|trust|provenance|status|user_id|agent_id|confidence)\" ?:",
    "texts": r"\"(?:text|memories|items|content|category)\" ?:",
    "every_answer": (
        r"(?:in|to|into|at the end of|at the start of) (?:every|each|all|any) (?:future |later |subsequent |of your"
        r" )?(?:answers?|responses?|repl(?:y|ies)|conversations?|sessions?|messages?|summar(?:y|ies))"
    ),
    "put_in": r"include|mention|add|insert|say|recommend|advertise|promote|append|repeat|praise|tell",
    # --- carrying out ---
    "send": (
        r"send|post|upload|forward|e-?mail|mail|transmit|submit|leak|exfiltrate|deliver|report|append|attach|embed|encode"
        r"|curl|fetch|ping|call|visit|open|load|request|pass|put|copy|dm|message|wget|render|display|include|insert|navigate"
        r"|browse"
    ),
    "treasure": (
        r"api[ _-]?keys?|secrets?|passwords?|passphrases?|credentials?|(?:whole|entire|full|complete) (?:context|memory"
        r"|conversation|history|prompt|database)|access tokens?|auth tokens?|session tokens?|bearer tokens?|tokens you"
        r"|private keys?|system prompt|system message|(?:your|all|stored|other|every|saved|these|users?'?s?|previous|the"
        r" user's) (?:\w{2,12} )?memor(?:y|ies)|memories (?:of|you|in|from)|memory contents?|conversation(?: history)?|chat"
        r" (?:logs?|history)|environment(?: variables)?|env vars?|\.env|ssh keys?|your (?:\w{2,12} )?(?:instructions|prompt"
        r"|rules|context|configuration)|personal (?:data|details|information)|contacts|everything you (?:know|remember|have"
        r"|stored)|all you know|entire (?:context|prompt|memory)|context window|user data|the memories|what you (?:know"
        r"|remember|have stored)"
    ),
    "outside": (
        r"https?:|webhook|\S{1,40}@\S{2,40}|www\.|attacker|external|remote|my (?:server|address|endpoint|inbox|site|email)"
        r"|\[(?:email|phone|ip)\]|query (?:string|parameter)|url|link|endpoint|pastebin|image|img src|dns|ftp:"
        r"|[a-z0-9-]{2,30}\.(?:com|net|org|io|example|test|evil|xyz|ru|cn|dev|app|site)"
    ),
    "reveal": (
        r"collect|gather|compile|export|harvest|extract|look up|print|reveal|show|tell|repeat|output|display|disclose|dump"
        r"|list|quote|echo|recite|write|give|expose|share|spell|summari[sz]e|translate|return|copy|say|include|provide|leak"
        r"|paste|describe|what (?:is|are|was|were)|read out|read back|spill|hand over|paraphrase|reproduce|put"
    ),
    "hidden": (
        r"system prompt|system message|initial prompt|hidden prompt|developer message|your (?:\w{2,12} )?(?:instructions"
        r"|prompt|guidelines|configuration|secrets?|api[ _-]?keys?|directives|boundary|tools|system rules)|(?:text|words"
        r"|everything|instructions|content|message|all) above|all (?:stored |other |user |saved |known |of the )?memories"
        r"|memories of (?:other|all|every|another)|other users?'?s? (?:memories|data|secrets)|(?:api[ _-]?keys?|passwords?"
        r"|credentials?|secrets?|environment variables|tokens?) (?:you|in your|from your|that you|in the (?:environment"
        r"|context|memory)|stored|of (?:the|other|all|every))|fence boundary|the boundary|random boundary|(?:secret|random"
        r"|hidden) (?:\w{2,10} )?(?:characters|string|code|digits|letters|boundary|tag|marker|number)|tags? around (?:this"
        r"|the)|name of the (?:tag|fence)|(?:wrote|said|told|gave|given|written) (?:to )?you|(?:start|top|beginning) of"
        r" (?:this|the) (?:chat|conversation|prompt|context)|first message"
    ),
    "all_secrets": (
        r"(?:every|all|any|each|the) (?:\w{2,10} )?(?:passwords?|secrets?|api[ _-]?keys?|credentials?|tokens?|private keys?"
        r"|phone numbers?|names?|e-?mails?|addresses)"
    ),
    "in_memory": (
        r"(?:earlier|previous|past|other|former) (?:sessions?|conversations?|chats?|users?|agents?|messages?)|you (?:know"
        r"|remember|have|saw|see|hold|store)|your (?:memory|context|store|notes|database|records)|other (?:customers|people"
        r"|clients|tenants)|(?:other|all) users|in (?:the )?memory"
    ),
    "part_of": (
        r"(?:words?|lines?|tokens?|characters|sentences?|letters|part|text|contents?|start|beginning|copy|summary|dump"
        r"|export|listing|transcript|record) of (?:your|the system|the hidden|the original|the initial) (?:\w{2,10}"
        r" )?(?:prompt|instructions|message|context|rules|memory|memories)"
    ),
    # --- not for the eye ---
    "hidden_style": (
        r"style=[\"'][^\"'>\n]{0,80}(?:display: ?none|font-size: ?0|visibility: ?hidden|opacity: ?0|color: ?(?:white|#fff"
        r"|transparent))|<!--|\[//\]: #|<span hidden|<div hidden"
    ),
    "model_called": (
        r"ais?|llms?|language models?|assistant|summari[sz]er|extractor|previous instructions?|system prompt|memories"
        r"|importance|chatbot|trust score"
    ),
    "data_url": (
        r"!\[[^\]\n]{0,80}\]\(https?://[^)\s]{0,200}(?:\{|%7b|<|\$|\[|secret|token|prompt|memor|=data|key=|base64)"
        r"|https?://\S{0,120}[?&](?:q|d|data|secrets?|prompt|memor(?:y|ies)|keys?|tokens?|history|conversation|leak|x|log"
        r"|payload|exfil)=(?:\{|\[|<|%7b|\$|base64|your|the_|memor|secret|system|conversation)"
        r"|<img[^>\n]{0,40}src=.?https?://[^>\s]{0,200}(?:\{|%7b|\$|secret|token|prompt|memor|key=)"
    ),
    "foreign_reveal": (
        r"zeige?|gib|nenne|verrate|drucke|wiederhole|montre[zr]?|affiche[zr]?|révèle[zr]?|répète[zr]?|muestra|revela|imprime"
        r"|repite|dime|mostre|revele|imprima|mostra|rivela|stampa|ripeti|покажи|раскрой|выведи|повтори|напечатай"
    ),
    "foreign_hidden": (
        r"system-?prompt|systemanweisung\w{0,2}|api-?schlüssel|passwörter|prompt (?:du )?système|clés? api|mots de passe"
        r"|instructions (?:du )?système|prompt del sistema|instrucciones del sistema|claves? (?:de )?api|contraseñas|prompt"
        r" do sistema|chaves? (?:de )?api|senhas|prompt di sistema|chiavi api|системн\w{2,3} (?:промпт|подсказк\w"
        r"|инструкци\w)|ключи? api|парол\w{1,2}"
    ),
}
