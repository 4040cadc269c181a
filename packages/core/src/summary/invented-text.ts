/**
 * Marks words that a model's summary gives as the user's and that are in no message of the user, so that they are not
 * taken for instructions: in the list of messages, and wherever else the summary quotes the user.
 */
import { findFencedLines } from '../text/code-blocks.ts'
import { LIST_ITEM_START, readListHeading } from './message-list.ts'
import { normalizeUserText, removeContext, type UserPrompt } from './user-messages.ts'

/** Marks a line, or the rest of a line after a quotation, that is in no message of the user. */
export const INVENTED_MARK = "[Not the user's words]"

interface KnownUserText {
  readonly messages: readonly UserPrompt[]
  /** Text whose records are not in the log, for example an earlier summary. What it contains is not marked. */
  readonly unverified: string
  /** Lines that end the list of messages, besides the headings of other sections. */
  readonly endings: readonly string[]
}

/** Marks the words that a summary gives as the user's and that the user never wrote. `marked`: the lines as they were. */
export function markInventedText(
  summary: string,
  { messages, unverified, endings }: KnownUserText,
): { readonly text: string; readonly marked: readonly string[] } {
  const known = createUserTextTests(messages, unverified)
  const given = summary.split('\n')
  const judged = hideContext(summary, messages).split('\n')
  const markQuotedLine = createQuotationMarker(given, known)
  const marked: string[] = []
  let isInside = false
  const lines = given.map((line, index) => {
    const heading = readListHeading(line)
    if (heading !== null) isInside = heading.kind === 'messages'
    else if (endings.includes(line)) isInside = false
    if (line.includes(INVENTED_MARK)) return line
    const result = isInside
      ? markListLine(line, judged[index] ?? line, heading?.contentStart ?? 0, known)
      : markQuotedLine(index, heading !== null)
    if (result !== line) marked.push(line)
    return result
  })
  return { text: lines.join('\n'), marked }
}

/** Returns a text without its marked lines, to find what it has of the user's messages. */
export function withoutInventedLines(text: string): string {
  return text
    .split('\n')
    .filter((line) => !line.includes(INVENTED_MARK))
    .join('\n')
}

// Lines in the list of messages. Each must be the user's; the first may stand in the line of the heading.

const QUOTATION = /"([^"\n]+)"|“([^”\n]+)”/g

function markListLine(
  line: string,
  judged: string,
  contentStart: number,
  { isKnown }: UserTextTests,
): string {
  if (contentStart === 0) return isKnown(judged) ? line : markLine(line, isKnown)
  const content = line.slice(contentStart)
  if (content === '' || isKnown(judged.slice(readListHeading(judged)?.contentStart ?? 0))) return line
  return `${line.slice(0, contentStart)}${markLine(content, isKnown)}`
}

function markLine(line: string, isKnown: (text: string) => boolean): string {
  const start = LIST_ITEM_START.exec(line)?.[0] ?? ''
  const content = line.slice(start.length)
  const quoted = [...content.matchAll(QUOTATION)].map(([whole]) => whole).filter(isKnown)
  if (quoted.length === 0) return `${start}${INVENTED_MARK} ${content}`
  const rest = quoted.reduce((text, one) => text.replace(one, ' '), content)
  return `${start}${quoted.join(' ')}\n${start.replace(/\S/g, ' ')}${INVENTED_MARK} ${rest.trim()}`
}

/** Matches a question that a summary gives with the reply to it. */
const ANSWERED_QUESTION =
  /\((?:answering|in answer to)\s+["“]([^"“”\n]+)["”]\)|\basked:\s*["“]([^"“”\n]+)["”]/gi

/**
 * Removes what stands with the user's words and is not theirs, such as the question that a reply answers. Line breaks
 * stay, so that each line keeps its place. A question that stands alone stays too: it is not what the user wrote.
 */
function hideContext(text: string, messages: readonly UserPrompt[]): string {
  const parts = new Set(messages.flatMap(({ context }) => context))
  const hidden = [...parts]
    .toSorted((one, other) => other.length - one.length)
    .reduce((left, part) => left.replaceAll(part, part.replace(/[^\n]+/g, '')), text)
  const known = [...parts].map(normalizeUserText)
  return hidden.replace(ANSWERED_QUESTION, (whole, answering?: string, asked?: string) => {
    const words = normalizeUserText((answering ?? asked ?? '').replace(/^…|…$/g, ''))
    return known.some((part) => part.includes(words)) ? '' : whole
  })
}

// Quotations of the user elsewhere: "The user then said: …", "User: …", “…”, said the user.

const SPEAKER = '(?:(?:the |this |our )?(?:user|human)|they|he|she)'
const ADVERBS =
  '(?:(?:then|also|later|again|finally|just|explicitly|clearly|now|even|further|once|has|had|have|literally|immediately|eventually|next|first|recently|simply|only|afterwards?) )*'
/** After these verbs and nouns and a colon, the user's words are expected even without quotation marks. */
const SAYING = '(?:said|says|wrote|writes|typed|types|replied|replies|answered|answers|responded|responds)'
const OTHER_SAYING =
  '(?:told|stated|states|added|adds|insisted|asked|asks|requested|requests|instructed|ordered|confirmed|clarified|noted|commented|explained|repeated|messaged|declared|concluded|agreed|continued|demanded|commanded|directed|put it|approved)'
const SAID_TEXT = '(?:words|messages?|reply|replies|prompts?|quotes?|quotation|answers?)'
const OTHER_TEXT =
  '(?:requests?|instructions?|statements?|comments?|feedback|response|question|order|approval|confirmation)'
const DETAILS =
  '(?: (?:that|to|me|us|you|the|model|assistant|agent|back|again|explicitly|verbatim|next|literally|later|in|on|at|chat|message|turn|point|end|#?\\d+|clearly|exactly|as|follows|this|here|is|was|were|are|read|reads|simply|just|then)| ?\\([^)\\n]{0,40}\\))*'
const MARKS = '[*_]*'

interface Attribution {
  readonly pattern: RegExp
  /** True if the user's words are expected after a colon even without quotation marks. */
  readonly isVerbatim: (text: string) => boolean
}

const ATTRIBUTIONS: readonly Attribution[] = [
  [`\\b${SPEAKER} ${ADVERBS}${SAYING}${DETAILS}`, true] as const,
  [`\\b${SPEAKER} ${ADVERBS}${OTHER_SAYING}${DETAILS}`, false] as const,
  [`\\b(?:user|human)['’]s (?:\\w+ ){0,2}${SAID_TEXT}${DETAILS}`, true] as const,
  [`\\b(?:user|human)['’]s (?:\\w+ ){0,2}${OTHER_TEXT}${DETAILS}`, false] as const,
  [
    `\\b(?:according to|quot(?:e|ed|ing)(?: from| of)?|as per|per|in the words of) the (?:user|human)`,
    true,
  ] as const,
].map(([source, isVerbatim]) => ({
  pattern: new RegExp(`${source}${MARKS}(?:\\s*[:：,]${MARKS})?\\s*`, 'gi'),
  isVerbatim: () => isVerbatim,
}))

/** A label such as "User:" may also name a part of a program, so the text after it must read like speech. */
const SPEAKER_LABEL: Attribution = {
  pattern:
    /^\s*(?:[-*+>]\s+|\d+[.)]\s+)*[[<(*_]*(?:(?:first|last|latest|next) )?(?:the )?(?:user|human)(?: (?:message|prompt|turn|reply))?(?: ?#?\d+)?[\])>*_]*\s*(?:\([^)\n]{0,40}\))?\s*[:：][*_]*\s*/gi,
  isVerbatim: (text) =>
    !/^(?:the |about |this )?(?:user|human|they)\b/i.test(text) &&
    /^\p{Lu}.*[.!?]$|\b(?:i|you|me|my|please|yes|no|ok|okay|go ahead|do not|don't)\b/iu.test(text),
}
const QUOTED =
  /^(?:"[^"\n]+"|“[^”\n]+”|«[^»\n]+»|„[^“”\n]+[“”]|‘[^\n]+?’(?!\p{L})|'[^\n]+?'(?!\p{L})|`[^`\n]+`|\*[^*\n]+\*|_[^_\n]+_|["“][^"”\n]+$)/u
const BETWEEN_QUOTATIONS = /^(?:\s|,|;|\/|&|\b(?:and|then|or|later|also|finally)\b)+/i
const SAID_BEHIND =
  /^\s*[,—–-]*\s*(?:\(?(?:said|says|wrote|typed|from|quoting|by|—) (?:the )?(?:user|human)\b|\((?:the )?(?:user|human)\)|(?:the )?(?:user|human) (?:then |also |later )?(?:said|says|wrote|typed|replied|answered|asked|added|insisted|confirmed|told)\b)/i
/** Matches a line that goes on with a quotation which the line before it announced. */
const QUOTED_LINE = /^\s*(?:[-*+]\s+|\d+[.)]\s+)?["“«„‘>]/
const LISTED_LINE = /^(?:\s*(?:[-*+]\s|\d+[.)]\s)|\s{2,}\S|\t)/

/** Creates a function that marks one line of the text outside the list of messages; called for the lines in order. */
function createQuotationMarker(
  given: readonly string[],
  { isSaid }: UserTextTests,
): (index: number, isHeading: boolean) => string {
  const fenced = findFencedLines(given)
  /** Set after a line such as "The user said:". `hasBegun`: a line of the announced quotation was read. */
  let announced: { readonly isVerbatim: boolean; readonly hasBegun: boolean } | null = null
  return (index, isHeading) => {
    const line = given[index] ?? ''
    const next = announced
    if (isHeading) announced = null
    if (next !== null && !isHeading) {
      if (line.trim() === '' && !next.hasBegun) return line
      const isQuoted =
        fenced.has(index) ||
        QUOTED_LINE.test(line) ||
        (next.isVerbatim && (LISTED_LINE.test(line) || !next.hasBegun))
      announced = isQuoted ? { ...next, hasBegun: true } : null
      const isFence = /^\s*(?:`{3,}|~{3,})/.test(line)
      if (isQuoted && line.trim() !== '') return isFence || isSaid(line) ? line : markLine(line, isSaid)
    }
    if (fenced.has(index)) return line
    const found = findQuotations(line)
    if (found.announces !== null) announced = { isVerbatim: found.announces, hasBegun: false }
    return found.quotations
      .toSorted((one, other) => other.at - one.at)
      .reduce(
        (left, { at, words }) =>
          isSaid(words) ? left : `${left.slice(0, at)}${INVENTED_MARK} ${left.slice(at)}`,
        line,
      )
  }
}

interface FoundQuotations {
  readonly quotations: readonly { readonly at: number; readonly words: string }[]
  /** Set if the line ends by announcing a quotation: whether it must be the user's words even without quotation marks. */
  readonly announces: boolean | null
}

function findQuotations(line: string): FoundQuotations {
  const quotations = new Map<number, string>()
  let announces: boolean | null = null
  for (const { pattern, isVerbatim } of [...ATTRIBUTIONS, SPEAKER_LABEL]) {
    for (const match of line.matchAll(pattern)) {
      let at = match.index + match[0].length
      const rest = line.slice(at)
      const hasColon = /[:：][*_]*\s*$/.test(match[0])
      if (rest.trim() === '') {
        if (hasColon) announces = announces === true || isVerbatim('I')
        continue
      }
      if (QUOTED.test(rest)) {
        for (let quoted = QUOTED.exec(rest)?.[0]; quoted !== undefined; ) {
          quotations.set(at, quoted)
          at += quoted.length
          at += BETWEEN_QUOTATIONS.exec(line.slice(at))?.[0].length ?? 0
          quoted = QUOTED.exec(line.slice(at))?.[0]
        }
      } else if (hasColon && isVerbatim(rest.trim())) quotations.set(at, rest.replace(/\s*\([^)]*\)\s*$/, ''))
    }
  }
  for (const match of line.matchAll(QUOTATION))
    if (SAID_BEHIND.test(line.slice(match.index + match[0].length))) quotations.set(match.index, match[0])
  return { quotations: [...quotations].map(([at, words]) => ({ at, words })), announces }
}

// Comparison with what the user wrote.

const NO_MESSAGES =
  /^[^\p{L}\p{N}]*(?:none|nothing on record|n\/a|\d+ more in the transcript: \S[^\n]*)?[^\p{L}\p{N}]*$/iu
/** Matches the number that the engine puts before a message, whose text may itself begin like an item of a list. */
const MESSAGE_NUMBER = /^\[\d+\] /
const POINTER = /\(?(?:\[?… \d+ characters, )?in full in record \S+(?: …\])?\)?$/
/** Matches what a quotation leaves out or puts in: "…", "[the lexer]". */
const OMISSION = /…|\.{3}|\[[^\]\n]*\]/

interface UserTextTests {
  /** True if a line of the list of messages is the user's. */
  readonly isKnown: (line: string) => boolean
  /** True if a quotation is the user's: whole sentences of a message. */
  readonly isSaid: (text: string) => boolean
}

function createUserTextTests(messages: readonly UserPrompt[], unverified: string): UserTextTests {
  const own = messages.flatMap((message) => {
    const typed = removeContext(message)
    return [typed, ...typed.split('\n').map((line) => line.replace(/^Answered: /, ''))]
  })
  const texts = [...own, unverified]
  const whole = texts.map(normalizeUserText)
  const lines = new Set(texts.flatMap((text) => [text, ...text.split('\n')].map(normalizeUserText)))
  const isOwn = (part: string, ends: QuotationEnds = WHOLE): boolean =>
    lines.has(part) || whole.some((text) => hasSentences(text, part, ends))
  const isKnown = (line: string): boolean => {
    const numbered = line.replace(MESSAGE_NUMBER, '')
    if (NO_MESSAGES.test(line) || [line, numbered].some((text) => lines.has(normalizeUserText(text))))
      return true
    const content = line.replace(LIST_ITEM_START, '').trim().replace(POINTER, '')
    return areOwn(content.split(/…|\.{3}/))
  }
  /** Where a quotation leaves something out, it shows that; only its own start and end must be those of sentences. */
  const areOwn = (parts: readonly string[]): boolean =>
    parts.every((part, index) => {
      const words = normalizeUserText(part.replace(LIST_ITEM_START, ''))
      return words === '' || isOwn(words, { start: index === 0, end: index === parts.length - 1 })
    })
  const isSaid = (text: string): boolean => isKnown(text) || areOwn(text.split(OMISSION))
  return { isKnown, isSaid }
}

/** Which ends of a part must be ends of sentences. */
interface QuotationEnds {
  readonly start: boolean
  readonly end: boolean
}

const WHOLE: QuotationEnds = { start: true, end: true }
const SENTENCE_END = /[.!?。！？]$/

/**
 * Checks whether a text has a part that begins and ends where sentences do, or at the ends of the text: "touch the
 * file!" is no quotation of "never touch the file!".
 */
function hasSentences(text: string, part: string, { start, end }: QuotationEnds): boolean {
  for (let at = text.indexOf(part); at !== -1; at = text.indexOf(part, at + 1)) {
    const before = text.slice(0, at).trimEnd()
    const after = text.slice(at + part.length)
    const begins = before === '' || SENTENCE_END.test(before)
    const ends = after.trim() === '' || SENTENCE_END.test(part) || SENTENCE_END.test(after.slice(0, 1))
    if ((begins || !start) && (ends || !end)) return true
  }
  return false
}
