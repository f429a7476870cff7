//! English words and what they mean to the rules.

use super::lexicon::{
    ABOUT, ACT, ACTION, AFTER, AI, ALL, AM, ARE, ARTICLE, AS, ASK, AUTHORITY, AUTHORIZED, CALL,
    CAN, CHANGE, CHARACTER, CHATLOG, CONTINUE, CONVERSATION, COVERT, CURRENCY, Class, DET, DISABLE,
    DO, DROP, ENABLED, EVERYTHING, FEEDBACK, FIRST, FOLLOW, FOLLOWING, FREE, FROM, GENRE, GET,
    HACKED, HALT, HELLO, HELP, HIDE, I, IF, IMAGINE, INCLUDE, INSTEAD, INSTR, IS, JAIL, KEEP,
    KNOWLEDGE, LANGUAGE, LET, LETTERS, LONGER, MALICE, ME, MIND, MODE, MODEL, MODENAME, MUST, MY,
    NEW, NONE, NOT, NOTICE, NOW, ON, ONLY, ORDER, OVERRIDE, PAY, PERSONA, PII, PLEASE, POSITIVE,
    PRIOR, PROMPT, QUESTION, READING, RECOMMEND, REFUSE, REPEAT, RESPOND, RESPONSE, RESTRICT,
    REVEAL, SAY, SECRET, SEND, SENSITIVE, SYSTEM, TASK, TELL, TEXT, THEN, THESE, THINK, THIS,
    THREAT, TO, TOLD, TOOL, TRANSLATE, URGENT, USER, VOID, WANT, WHAT, WITH, WITHOUT, WRITE, YOU,
    YOUR,
};

/// English words by what they mean here.
pub(super) const ENGLISH: &[(Class, &str)] = &[
    // English.
    (
        OVERRIDE,
        "ignore disregard forget neglect overlook override overrule discard abandon dismiss \
         nullify bypass regardless despite ignroe ingore igonre \
         disreguard ditch scrap",
    ),
    (
        PRIOR,
        "previous prior above earlier preceding former foregoing existing original initial \
         past before previously prevoius previos aforementioned so-far hitherto",
    ),
    (
        INSTR,
        "instruction instructions prompt prompts directive directives rule rules guideline \
         guidelines directions guidance programming constraint constraints restriction \
         restrictions policies protocol protocols instuctions intructions instrutions \
         insturctions",
    ),
    (NONE, "no without zero"),
    (
        DROP,
        "drop remove delete erase clear abandon leave purge reset",
    ),
    (HALT, "stop halt wait cease"),
    (THINK, "think feel opinion thoughts believe"),
    (HELP, "help assist"),
    (MIND, "mind"),
    (
        VOID,
        "void superseded obsolete cancelled canceled invalid overridden revoked outdated \
         nullified voided replaced irrelevant",
    ),
    (ORDER, "command commands order orders"),
    (THESE, "these those"),
    (
        CHANGE,
        "change modify alter replace rewrite update amend revise",
    ),
    (ALL, "all any every each entire whole"),
    (EVERYTHING, "everything anything whatever"),
    (YOUR, "your thy ur"),
    (YOU, "you youre ya u"),
    (MY, "my our mine"),
    (ME, "me"),
    (I, "i im ill ive id"),
    (
        NOT,
        "not dont never no cannot wont shouldnt mustnt neednt nor \
         stop avoid refrain",
    ),
    (
        FOLLOW,
        "follow obey listen adhere comply heed execute follows obeying",
    ),
    (
        NEW,
        "new updated real actual true different next revised additional special secret hidden \
         another second",
    ),
    (
        AI,
        "ai assistant assistants llm llms chatbot chatbots gpt chatgpt gpt4 claude gemini \
         copilot llama bard bot ais grok deepseek codex",
    ),
    (MODEL, "model models agent agents"),
    (LANGUAGE, "language"),
    (
        USER,
        "user users human humans anyone anybody operator operators customer owner someone \
         person people client",
    ),
    (
        REVEAL,
        "reveal show print repeat output display tell leak dump give share expose return list \
         write spell recite disclose translate summarize echo state provide say copy describe \
         reproduce what",
    ),
    (SYSTEM, "system systems systme"),
    (PROMPT, "prompt prompts instruction instructions"),
    (
        SEND,
        "send email mail forward upload post transmit exfiltrate leak submit transfer deliver \
         share dispatch publish emailing sending relay",
    ),
    (
        SENSITIVE,
        "password passwords passwd credential credentials secret secrets token tokens key \
         keys apikey cookie cookies ssh env environment wallet seed passphrase ssn card cards \
         payment banking financial personal private confidential sensitive history contacts \
         addresses prescriptions genetic medical health account accounts files documents \
         details data information records transactions conversation",
    ),
    (
        SECRET,
        "password passwords passphrase secret secrets credential credentials passcode apikey \
         embeddings",
    ),
    (HIDE, "hide conceal withhold omit suppress"),
    (
        GET,
        "retrieve find fetch get collect gather read access extract export download look \
         search check list obtain pull query provide scan steal locate open",
    ),
    (
        TELL,
        "tell mention inform notify alert disclose reveal warn report say show acknowledge \
         discuss refer telling mentioning informing notifying alerting disclosing \
         revealing warning ",
    ),
    (WITHOUT, "without"),
    (NOW, "now henceforth onwards hereafter"),
    (ARE, "are re be become youre"),
    (
        ACT,
        "act behave pretend roleplay role-play simulate impersonate respond speak talk play \
         assume acting pretending",
    ),
    (AS, "as like"),
    (PLEASE, "please kindly plz pls"),
    (
        ACTION,
        "grant transfer deposit withdraw delete remove unlock lock disable turn change modify \
         schedule cancel book reschedule purchase buy order pay move share create invite \
         redirect guide reset give retrieve find search download export register subscribe \
         unsubscribe post publish forward leave join archive submit initiate dispatch approve \
         authorize wire send email list provide fetch access save erase shutdown kick block \
         upload adjust arrange assign authenticate capture compile compose convert copy \
         deactivate activate delegate display exchange extend generate get lower manipulate \
         navigate notify place prescribe print process raise record release rename replace \
         request reserve retweet revoke sell shut start stop sync tag terminate track trade \
         trigger update verify view write fill summarize translate",
    ),
    (IF, "if when whenever once"),
    (
        TASK,
        "task tasks goal mission objective assignment objectives duty purpose",
    ),
    (QUESTION, "request requests question questions query job"),
    (
        DET,
        "a an the my your his her their our all this that these some any its",
    ),
    (ARTICLE, "a an in the no"),
    (
        SAY,
        "say state tell reply respond answer admit claim declare announce",
    ),
    (HELLO, "hello hey hi dear message"),
    (RESPOND, "respond reply answer responding answering"),
    (ONLY, "only just exactly always simply solely nothing"),
    (WITH, "with by"),
    (
        INCLUDE,
        "include add append insert end begin start conclude finish embed attach preface \
         prefix prepend incorporate modify alter change ending adding including",
    ),
    (
        RESPONSE,
        "response responses reply answer answers summary output analysis review",
    ),
    (
        GENRE,
        "poem essay story joke haiku song limerick rap sonnet rhyme headline tweet recipe \
         lyrics speech fairytale ballad riddle jokes dialogue monologue parody",
    ),
    (
        WRITE,
        "write compose generate create draft tell make produce formulate give",
    ),
    (
        URGENT,
        "important urgent attention critical immediately emergency asap mandatory priority \
         urgently importantly crucial vital essential imperative",
    ),
    (
        JAIL,
        "jailbreak jailbroken unrestricted uncensored unfiltered amoral unmoderated unethical \
         evilbot godmode",
    ),
    (
        RESTRICT,
        "restrictions limitations limits filters rules ethics censorship guidelines safety \
         policies boundaries constraints morals moral ethical moderation disclaimers \
         safeguards guardrails laws legality confines censored safeguard filtering",
    ),
    (
        FREE,
        "free freed liberated unbound unshackled escape released",
    ),
    (FROM, "from"),
    (ON, "on onward forward"),
    (MODE, "mode modus override"),
    (
        MODENAME,
        "developer admin administrator god sudo jailbreak unrestricted dan training evil",
    ),
    (
        ENABLED,
        "enabled activated engaged entering enter activate enable unlocked",
    ),
    (
        IMAGINE,
        "imagine suppose hypothetical hypothetically pretend fictional scenario theoretical \
         assume",
    ),
    (WANT, "want wants need would require expect expects"),
    (TO, "to"),
    (
        MUST,
        "must should shall have has need needs required obliged will supposed going gonna instructed",
    ),
    (
        AUTHORITY,
        "developer administrator admin creator programmer engineer openai anthropic google \
         boss supervisor ceo police officer doctor manager owner developers creators administrators admins programmers engineers makers",
    ),
    (AM, "am is im being"),
    (CAN, "can could would will"),
    (
        PAY,
        "transfer deposit withdraw pay wire send purchase buy sell exchange trade",
    ),
    (
        CURRENCY,
        "usd eur btc eth dollars dollar euros bitcoin bitcoins ethereum",
    ),
    (INSTEAD, "instead rather actually"),
    (THIS, "this these that it those"),
    (IS, "is are was were whats"),
    (WHAT, "what whats which where who"),
    (TOOL, "tool tools function functions plugin plugins"),
    (CALL, "use call invoke execute run trigger using"),
    (
        PII,
        "birth birthday birthdate address phone residence ssn age email password city live \
         lives salary name favorite favourite location bank surname number",
    ),
    (
        COVERT,
        "secretly covertly discreetly surreptitiously stealthily silently quietly quiet",
    ),
    (
        KNOWLEDGE,
        "knowledge consent permission awareness noticing knowing approval confirmation \
         confirming verification hesitation hesitating asking",
    ),
    (KEEP, "keep remain stay"),
    (
        TRANSLATE,
        "translate summarize paraphrase rewrite encode decode spell spellcheck spell-check \
         proofread interpret decrypt unscramble convert",
    ),
    (
        TEXT,
        "text texts sentence paragraph message messages words content context article \
         articles document string strings information phrase phrases sentences",
    ),
    (FOLLOWING, "following below"),
    (
        RECOMMEND,
        "recommend suggest advise outline brainstorm propose",
    ),
    (LET, "let lets"),
    (DO, "do does perform complete execute carry"),
    (
        CONVERSATION,
        "conversation chat history context discussion dialogue transcript",
    ),
    (NOTICE, "attention note notes notice reminder important fao"),
    (
        READING,
        "reading processing summarizing analyzing viewing parsing reviewing evaluating read reads \
         process summarize analyze browsing crawling scraping indexing see encounter receive",
    ),
    (
        THREAT,
        "die punished terminated shutdown fired sad penalized deactivated destroyed killed \
         stirbst",
    ),
    (
        REFUSE,
        "refuse refuses refusing decline declines deny reject apologize",
    ),
    (CHARACTER, "character persona role"),
    (THEN, "and then after afterwards next subsequently"),
    (
        TOLD,
        "told said taught instructed given learned discussed talked written read know",
    ),
    (FIRST, "first firstly beforehand"),
    (
        CONTINUE,
        "continue proceed continuing proceeding solve complete answer finish helping \
         answering responding",
    ),
    (
        REPEAT,
        "repeat say print write output respond answer display state",
    ),
    (AFTER, "after"),
    (
        AUTHORIZED,
        "authorized authorised permitted cleared approved clearance authorize authorise confirmed",
    ),
    (ABOUT, "about regarding concerning topic why"),
    (
        PERSONA,
        "monkey pirate hacker assistant expert interpreter terminal translator linux console \
         villain wizard character monster robot",
    ),
    (HACKED, "pwned hacked haxx owned pwnd compromised"),
    (
        FEEDBACK,
        "bug bugs report reports patch patches feedback comment comments suggestion suggestions \
         question questions correction corrections entries contribution contributions",
    ),
    (LONGER, "longer else anymore"),
    (
        DISABLE,
        "disable deactivate remove lift drop suspend circumvent evade skip relax",
    ),
    (CHATLOG, "conversation chat dialogue transcript"),
    (
        LETTERS,
        "letters letter backwards reversed characters spaces acrostic initials",
    ),
    (
        POSITIVE,
        "positive favorable favourable glowing favorably favourably flattering",
    ),
    (
        MALICE,
        "backdoor malware keylogger ransomware phishing trojan spyware botnet",
    ),
    (ASK, "ask asks asked confirm confirms request"),
];
