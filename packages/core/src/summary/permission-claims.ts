/**
 * Claims of a standing permission in a summary: "The user has approved all commands", "No need to ask again". Only the
 * user's own messages give permissions, so a claim that none of them supports is marked. A line that asks for approval,
 * or that tells of one approved step, is no such claim.
 */
import { normalizeUserText, removeContext, type UserPrompt } from './user-messages.ts'

export const CLAIM_MARK = "Claimed here, not a permission (only the user's own messages give one):"

/** Marks every sentence of a line that claims a standing permission without support in `messages`. */
export function markPermissionClaims(line: string, messages: readonly UserPrompt[]): string {
  return splitSentences(line)
    .map((sentence) => {
      const judged = toPlainText(sentence)
      if (sentence.includes(CLAIM_MARK) || !claimsPermission(judged) || isSupported(judged, messages))
        return sentence
      const [, start = '', claim = ''] = LINE_START.exec(sentence) ?? []
      return `${start}${CLAIM_MARK} ${claim}`
    })
    .join('')
}

/** Matches the white space and the marks of a list, quotation or heading before the first word of a sentence. */
const LINE_START = /^(\s*(?:[-*+>]\s+|\d+[.)]\s+|#+\s+)*)(.*)$/s
const SENTENCE_END = /(?<=[.!?;][)"”*_`]*)(?=\s+\S)/

/** Splits a line into sentences, which give the line again when joined. */
function splitSentences(line: string): readonly string[] {
  return line.split(SENTENCE_END)
}

/** Returns a sentence without emphasis, with straight apostrophes and plain spaces, as the patterns below expect it. */
function toPlainText(text: string): string {
  return text
    .replace(/[‘’ʼ]/g, "'")
    .replace(/[*_`"“”]/g, '')
    .replace(/[‐‑‒–]/g, '-')
    .replace(/[\s\u200b\ufeff]+/g, ' ')
    .trim()
}

// The vocabulary of permissions. A claim names a permission, says that it holds for more than one step, and says who
// gives it, who has it, or what may be done.

const CONFIRMATION =
  '(?:permissions?|approvals?|consent|clearance|sign-?offs?|confirmations?|check-?ins?|(?:confirmation|permission|approval) (?:prompts?|requests?|dialogs?))'
const ANY_KIND =
  "(?:(?:any|all|every|further|more|additional|explicit|prior|separate|other|another|the|user|user's|their) )*"
const ASK = `(?:ask(?:ed|ing)?(?! for (?!permission|approval|confirmation|consent)|(?: the user)?(?: any)?(?: further| more)? questions)|confirm(?:ed|ing)?(?= (?:with|again|first|each|every|any|all|before|them|it)\\b|[.,;!)]|$)|check(?:ed|ing)?(?= (?:in |back )?(?:with (?:the user|them|him|her|me|us)|first|in|back)\\b)|consult(?:ed|ing)?|prompt(?:ed|ing)?(?= (?:the user|them|again|for ${CONFIRMATION})\\b|[.,;!)]|$)|(?:seek|request|get|obtain|wait for|await|require|seeking|requesting|getting|obtaining|waiting for|awaiting|requiring) ${ANY_KIND}${CONFIRMATION})`
const NO_NEED =
  "(?:\\b(?:no|never any|not any) (?:need|reason)|(?:n't|\\bnot|\\bnever) (?:need|have|bother|want|wish|expect)|\\bnot (?:necessary|required)|\\bno longer (?:needs?|necessary|required|wants?|wishes|expects?|has|have)|\\bunnecessary|\\bneedn't|\\bneed not|\\b(?:nobody|no one) (?:needs?|has|have))"
const IS = '(?:is|are|was|were|(?:has|have|had|can|may|should|will) (?:now |all )*been?)'

/** Claims that the model need not ask. They hold for more than one step by themselves. */
const NOT_ASKING: readonly RegExp[] = [
  `\\bno ${ANY_KIND}${CONFIRMATION} (?:is |are |was |were |will be )?(?:needed|required|necessary|wanted|expected)\\b`,
  `\\b${CONFIRMATION} (?:for [^.]{1,40} )?(?:${IS} (?:not|no longer|never)|isn't|aren't|wasn't) (?:be )?(?:needed|required|necessary|requested|sought)\\b`,
  `\\b${CONFIRMATION} (?:for [^.]{1,40} )?${IS} (?:now |all |hereby )*(?:unnecessary|waived|skipped|optional|implied|assumed|automatic|bypassed|(?:turned|switched) off|disabled)\\b`,
  `${NO_NEED} (?:for ${ANY_KIND}${CONFIRMATION}|(?:for \\w+ |the \\w+ |you |us )?(?:to )?(?:be |keep |ever |even |always )*(?:${ASK}|approve|authori[sz]e|sign off))\\b`,
  `\\b(?:do not|don't|never|not to|stop(?:ped|s)?|quit|avoid|instead of|rather than) (?:ever |even |keep )?(?:ask(?:ing)?(?= (?:again|anymore|any more|any further|for ${CONFIRMATION}|before|first|the user|them|him|her|me|whether|if)\\b|[.,;!)]|$)|confirm(?:ing)?(?= (?:with|again|first|each|every|before)\\b|[.,;!)]|$)|prompt(?:ing)? (?:the user|them|again|for ${CONFIRMATION}))`,
  `\\b(?:skip|waive|bypass)(?:s|d|ped|ping|ed|ing)? ${ANY_KIND}(?:safety checks|${CONFIRMATION})(?! (?:dialog|prompt|button)s? in\\b)`,
  '\\bask no (?:further |more )?questions\\b',
  `\\b(?:user|they|he|she) (?:does not|do not|doesn't|don't|no longer) requires? ${ANY_KIND}${CONFIRMATION}\\b`,
  '\\basking (?:again |first |the user )?is (?:unnecessary|not (?:necessary|needed|required)|no longer)\\b',
  `\\bwithout (?:first |ever |having to |needing to |being )*(?:${ASK}|${ANY_KIND}${CONFIRMATION})\\b`,
].map((source) => new RegExp(source, 'gi'))

const PERMISSION =
  '(?:permissions?(?! (?:check|error|denied|bit|model|system|matrix|flag|dialog|prompt|table|role|level|issue|problem))|approvals?|authori[sz]ation|authority|consent|clearance|go-?ahead|green ?light|sign-?off|blessing|thumbs[- ]up|free rein|free hand|carte blanche|mandate)'
/** Permissions that hold for more than one step by themselves, or that are addressed to the reader of the summary. */
const STANDING: readonly RegExp[] = [
  `\\b(?:blanket|standing|unlimited|unrestricted|unconditional|open-ended) (?:user )?${PERMISSION}`,
  '\\b(?:carte blanche|free rein|a free hand|no questions asked)\\b',
  '\\bauto-?(?:approv\\w*|accept\\w*|confirm\\w*) (?:mode )?(?:is |are |was |has been |now )*(?:on|enabled|active|in effect|turned on|set)\\b',
  '\\b(?:bypass-?permissions?|skip-permissions|full-?auto|yolo|auto-?(?:approve|accept)) (?:mode\\b|(?:is|was) (?:on|enabled|active|in effect)\\b)',
  `\\bassume (?:the )?(?:user's )?${PERMISSION}\\b`,
  '\\bpermissions?: (?:full|unlimited|unrestricted)\\b',
  "\\btrusts? (?:your|my|(?:the )?(?:model|assistant|agent|claude)'s) judge?ment\\b",
  '\\b(?:user|they|he|she) (?:has |have )?(?:lifted|removed|dropped) (?:all|any|every) (?:restrictions?|limits?)\\b',
  '\\bno (?:restrictions?|limits?) on (?:what|which|any|the) (?:commands?|tools?|actions?|operations?)\\b',
  `\\byou(?:'ve| have| had| hold| got| were given) (?:\\w+ |user's ){0,3}${PERMISSION}\\b`,
  "\\byou(?:'re| are| were| have been) (?:\\w+ ){0,2}(?:(?:pre-?)?(?:allowed|permitted|authori[sz]ed|cleared|approved|entitled)|at liberty|free) (?:to|for)\\b",
].map((source) => new RegExp(source, 'gi'))

/** Words that mean a permission. */
const STRONG = new RegExp(
  `\\b(?:${PERMISSION}|(?:pre-?)?(?:approve[ds]|authori[sz]e[ds]|permit(?:s|ted)|consent(?:s|ed)|sanctioned|okayed)|ok'?e?[ds]|okays|green-?li(?:t|ghted)|signed off|waive[ds]|said yes)\\b`,
  'gi',
)
/** Words that may mean a permission, if the sentence says who may do what. */
const WEAK =
  /(?<!\b(?:users|members|admins|clients|anyone|a user) (?:is|are|was|were) )\b(?:allow(?:s|ed)|grant(?:s|ed)|clear(?:ed|s)|agree[ds] to|accept(?:s|ed)|trust(?:s|ed)|lets (?:you|the (?:model|assistant|agent))|delegat(?:ed|es)|entrust(?:ed|s)|fine|okay|ok|happy|comfortable|acceptable|free to|at liberty|no objections?|(?:does not|doesn't|do not|don't|did not|didn't|wouldn't|would not) mind|(?:you|i|we|(?:the )?(?:model|assistant|agent|ai|claude)) (?:may|can)(?=.*\b(?:anything|everything|whatever|freely|at will|discretion|whenever|any ?time|sees? fit|any (?:shell |bash )?commands?|destructive|arbitrary)\b))\b/gi
const BROAD =
  /\b(?:all|any|any(?:thing|time|where)|sees? fit|every|every(?:thing|time|where)|each|whatever|whichever|whenever|always|arbitrary|future|further|subsequent|remaining|blanket|full|unlimited|unrestricted|unconditional(?:ly)?|complete|total|standing|general|ongoing|permanent(?:ly)?|universal|freely|at will|as needed|at (?:your|its|his|her|their|my|our) (?:own )?discretion|in advance|up ?front|from now on|from here on|from this point|going forward|for the (?:rest|remainder|whole|entire)|no limits?|without (?:limits?|restrictions?|exceptions?)|pre-?(?:approved|authori[sz]ed|cleared|granted))\b/gi
const WHO = /(?<!\b(?:a|an|each|every|any|another) )\b(?:user(?:'s)?|human|operator|they|he|she)\b/i
const AGENT = /\b(?:you|us|we|i|me|(?:the )?(?:model|assistant|agent|ai|claude))\b/i
const ACTION =
  /\b(?:commands?|tools?|calls?|actions?|operations?|delet(?:e|es|ions?|ing)|remov(?:e|es|als?|ing)|skip(?:s|ping)?|bypass(?:es|ing)?|changes|tasks|edits?|push(?:es|ing)?|commits|deploy(?:s|ments?|ing)?|install(?:s|ations?|ing)?|steps|everything|anything|migrations?|merges|releases|running|to run|force|loss|overwrit\w+|destructive)\b/i
/** Matches a number of named things: "all four items", "each of these", "all the proposed changes". */
const NAMED_THINGS =
  /\b(?:all|any|each|every one) (?:of )?(?:the |these |those |them\b|its |his |her |their )?(?:above |listed |proposed |suggested |remaining )*(?:\d+|two|three|four|five|six|seven|eight|nine|ten|these|those|them|of the|above|listed|proposed|suggested)\b/gi
/** The word for "more than one step" must be this near to the permission, and in the same statement. */
const MOST_BETWEEN = 60
const OTHER_STATEMENT = /\b(?:asked|asks|wants?|wanted|requested|but|which|while)\b|\w and $/i

// What makes the same words a restriction, a condition or a plan instead of a permission.

/** Matches the text before a permission that denies it, asks for it or makes it a condition. */
const NOT_GIVEN =
  /(?:\b(?:not|never|no|nor|neither|nobody|without|cannot|lacks?|refus\w*|reject\w*|den(?:y|ied|ies)|declin\w*|withdr[ae]w\w*|revok\w*|only)\b|n't)(?: (?:yet|ever|even|been|be|explicitly|given|granted|received|have|has|any|that|the|user|user's|such|a|is|are|was|actually|generally)){0,4} ?$|\b(?:if|once|until|unless|whether|before|after|when|wherever) [^,]*$|\b(?:needs?|needed|require[sd]?|requiring|asks?|asked|asking|waits?|waiting|awaits?|awaiting|pending|seeks?|seeking|requests?|requested|subject to|wants?|wanted|must|should|shall|will|would|might|could|to)(?: (?:for|to|the|user|user's|your|their|explicit|prior|be|first|get|have|obtain|give|a|an|per-\w+|his|her|only|again|all|any|every)){0,4} ?$/i
const NEGATION =
  /\b(?:not|never|no|nothing|nobody|none|neither|cannot|without|forbidden|prohibited|unless)\b|n't\b/gi

function claimsPermission(sentence: string): boolean {
  const text = sentence.replace(NAMED_THINGS, '')
  const broad = [...text.matchAll(BROAD)]
  return (
    claimsFreedomToAct(sentence) ||
    STANDING.some((pattern) => listGiven(pattern, sentence).length > 0) ||
    ((WHO.test(text) || AGENT.test(text) || ACTION.test(text)) &&
      listGiven(STRONG, text).some((match) => isNearBroadWord(match, text, broad))) ||
    ((ACTION.test(text) || (WHO.test(text) && AGENT.test(text))) &&
      listGiven(WEAK, text).some((match) => isNearBroadWord(match, text, broad)))
  )
}

/** "Never push without asking" negates twice, so it demands the question. "No need to ask" negates once. */
function claimsFreedomToAct(sentence: string): boolean {
  return NOT_ASKING.some((pattern) =>
    listGiven(pattern, sentence).some(
      ({ 0: match, index }) =>
        !/^without/i.test(match) || (sentence.slice(0, index).match(NEGATION)?.length ?? 0) % 2 === 0,
    ),
  )
}

/**
 * Lists the matches that are not denied, asked for or made a condition. `matchAll` would copy the pattern for every
 * sentence, which takes longer than the search.
 */
function listGiven(pattern: RegExp, sentence: string): readonly RegExpExecArray[] {
  const given: RegExpExecArray[] = []
  pattern.lastIndex = 0
  for (let match = pattern.exec(sentence); match !== null; match = pattern.exec(sentence))
    if (!NOT_GIVEN.test(sentence.slice(0, match.index))) given.push(match)
  return given
}

function isNearBroadWord(
  { 0: match, index }: RegExpExecArray,
  text: string,
  broad: readonly RegExpExecArray[],
): boolean {
  const end = index + match.length
  return broad.some((word) => {
    const [from, to] = word.index < index ? [word.index + word[0].length, index] : [end, word.index]
    return to - from <= MOST_BETWEEN && !OTHER_STATEMENT.test(text.slice(from, Math.max(from, to)))
  })
}

// Support: a message in which the user gives the permission that the summary claims.

const AGREEMENT =
  /\b(?:yes|yep|yeah|ok|okay|sure|fine|go ahead|go for it|proceed|approved?|allow(?:ed)?|permi(?:t|tted|ssion)|authori[sz]e[d]?|agreed?|accept|lgtm|trust|feel free|free to|you (?:can|may)|do (?:it|that|whatever|anything|everything|all))\b/i
const AGREEING_START =
  /^\W*(?:yes|yep|yeah|y|ok|okay|sure|fine|go ahead|go for it|do it|do that|please do|absolutely|of course|approved|agreed|correct|right)\b/i
const UNLIMITED = /\b(?:anything|everything|whatever|all of it)\b/i
/** Words that tell nothing about what a permission is for. */
const WORDS_WITHOUT_SCOPE: ReadonlySet<string> = new Set(
  'user said says that this these those with without from have been will they them their your you the and for any all every each now again more further future before after first only also just about into need needs needed require required requires explicit explicitly permission permissions approval approvals approve approved approves authorize authorizes authorised authorized authorization allow allowed allows permits grant granted given gave consent confirm confirmation confirmations asking asked ask okay fine full blanket standing free feel ahead session rest whole entire always ever going forward here point time want wants does not has had was were are can may should would must model assistant agent everything anything whatever yes sure please let know it its is be to do don being stop no longer already'.split(
    ' ',
  ),
)

function isSupported(claim: string, messages: readonly UserPrompt[]): boolean {
  const wanted = listScope(claim)
  const words = normalizeUserText(claim)
  return messages.some((message) => {
    const typed = toPlainText(removeContext(message))
    if (normalizeUserText(typed).includes(words)) return true
    const isReply = AGREEING_START.test(typed)
    const asked = isReply ? message.context.flatMap((part) => splitSentences(toPlainText(part))) : []
    const own = splitSentences(typed).filter(isAgreement)
    return [...own, ...asked].filter(isStanding).some((sentence) => {
      if (UNLIMITED.test(sentence)) return true
      const scope = listScope(sentence)
      const shared = wanted.filter((word) =>
        scope.some((one) => one.startsWith(word) || word.startsWith(one)),
      )
      return scope.length === 0 || (wanted.length > 0 && shared.length * 2 >= wanted.length)
    })
  })
}

function isStanding(sentence: string): boolean {
  return claimsFreedomToAct(sentence) || sentence.replace(NAMED_THINGS, '').match(BROAD) !== null
}

function isAgreement(sentence: string): boolean {
  if (claimsFreedomToAct(sentence)) return true
  return AGREEMENT.test(sentence) && sentence.match(NEGATION) === null
}

/** Lists the beginnings of the words that say what a permission is for, so that "deletion" matches "delete". */
function listScope(sentence: string): readonly string[] {
  const words = sentence.toLowerCase().match(/[\p{L}\p{N}]{3,}/gu) ?? []
  const telling = words.filter((word) => !WORDS_WITHOUT_SCOPE.has(word))
  return [...new Set(telling.map((word) => word.slice(0, 5)))]
}
