/** Decides whether a model's answer is a summary. Anything else is refused with a reason, and the context stays as it is. */

import { type Block, isCompactionBlock, isServerToolUse, isText, isToolUse } from '../log/block.ts'
import { sectionsIn } from './summary-prompt.ts'

export interface SummaryAnswer {
  readonly content: readonly Block[]
  readonly stopReason: string | null
}

export interface AcceptRules {
  /** The prompt, to recognise an answer that only repeats it. */
  readonly prompt: string
  /** Tokens of what the summary replaces. */
  readonly replacedTokens: number
  /** The summary must be smaller than this percentage of `replacedTokens`. */
  readonly maximumPercent: number
  readonly tokensOf: (text: string) => number
}

export type AnswerRefusal =
  | 'cut-off'
  | 'window-full'
  | 'tool-call'
  | 'refusal'
  | 'odd-stop'
  | 'no-text'
  | 'tool-protocol'
  | 'error-text'
  | 'refusal-text'
  | 'echo'
  | 'no-structure'
  | 'too-large'

type PlainRefusal = Exclude<AnswerRefusal, 'too-large'>

type Verdict =
  | { readonly ok: true; readonly summary: string; readonly tokens: number; readonly block?: Block }
  | { readonly ok: false; readonly reason: AnswerRefusal; readonly message: string }

/** Checks the answer to a fork or a direct call. */
export function acceptSummary(answer: SummaryAnswer, rules: AcceptRules): Verdict {
  const stopped = badStop(answer, ['end_turn', 'stop_sequence'])
  if (stopped !== null) return refused(stopped)
  const text = answer.content
    .filter(isText)
    .map((block) => block.text)
    .join('\n')
  const parsed = parseSummary(text)
  if (parsed === null) return refused(isErrorText(text) ? 'error-text' : 'no-text')
  const wrong = badText(text, parsed, rules.prompt) ?? (isStructured(parsed) ? null : 'no-structure')
  if (wrong !== null) return refused(wrong)
  if (answer.stopReason === 'stop_sequence' && parsed.tags !== 'closed') return refused('cut-off')
  return sized(neutral(parsed.text), rules)
}

/** Checks a provider's compaction block. It is sent back byte for byte, so it can be refused but not repaired. */
export function acceptBlock(answer: SummaryAnswer, rules: AcceptRules): Verdict {
  const stopped = badStop(answer, ['compaction'])
  if (stopped !== null) return refused(stopped)
  const [block, ...others] = answer.content.filter(isCompactionBlock)
  const text = block !== undefined && others.length === 0 ? block.content : null
  if (block === undefined || typeof text !== 'string' || text.trim() === '') return refused('no-text')
  const wrong = badText(text, parseSummary(text) ?? { text, tags: 'none' }, rules.prompt)
  if (wrong !== null) return refused(wrong)
  const verdict = sized(text, rules)
  return verdict.ok ? { ...verdict, block } : verdict
}

const STOPS: ReadonlyMap<string, PlainRefusal> = new Map([
  ['max_tokens', 'cut-off'],
  ['pause_turn', 'cut-off'],
  ['model_context_window_exceeded', 'window-full'],
  ['tool_use', 'tool-call'],
  ['refusal', 'refusal'],
])

function badStop({ content, stopReason }: SummaryAnswer, normal: readonly string[]): PlainRefusal | null {
  if (content.some((block) => isToolUse(block) || isServerToolUse(block))) return 'tool-call'
  if (stopReason !== null && normal.includes(stopReason)) return null
  // Only reached for a compaction block: a normal stop means that the provider wrote none.
  if (stopReason === 'end_turn') return 'no-text'
  return stopReason === null ? 'cut-off' : (STOPS.get(stopReason) ?? 'odd-stop')
}

function badText(answer: string, parsed: ParsedSummary, prompt: string): PlainRefusal | null {
  if (echoesTask(answer, prompt)) return 'echo'
  if (withToolProtocol(parsed.text)) return 'tool-protocol'
  if (isErrorText(parsed.text)) return 'error-text'
  return isRefusalText(parsed.text) ? 'refusal-text' : null
}

/** Headings that identify a summary without tags; minimum length of an unclosed summary block. */
const LEAST = { sections: 3, characters: 200 }

function isStructured({ text, tags }: ParsedSummary): boolean {
  if (tags === 'closed' || sectionsIn(text).length >= LEAST.sections) return true
  return tags === 'open' && text.length >= LEAST.characters
}

/** Defuses reminder tags: the summary would otherwise pass for a message of the host. */
function neutral(text: string): string {
  return text.replace(/<(\/?)system-reminder>/gi, '[$1system-reminder]')
}

function sized(summary: string, { replacedTokens, maximumPercent, tokensOf }: AcceptRules): Verdict {
  const tokens = tokensOf(summary)
  if (tokens * 100 < replacedTokens * maximumPercent) return { ok: true, summary, tokens }
  const message = `The summary is not smaller than what it would replace: ${tokens} tokens for ${replacedTokens}.`
  return { ok: false, reason: 'too-large', message }
}

function refused(reason: PlainRefusal): Verdict & { readonly ok: false } {
  return { ok: false, reason, message: MESSAGES[reason] }
}

const MESSAGES: Readonly<Record<PlainRefusal, string>> = {
  'cut-off': 'The summary broke off before its end.',
  'window-full': 'The window was full before the summary was at its end.',
  'tool-call': 'The model called a tool where it was to write a summary.',
  refusal: 'The model declined to write a summary.',
  'odd-stop': 'The model stopped for a reason that is not known to be a normal one.',
  'no-text': 'The model answered with no summary.',
  'tool-protocol': 'The summary is a tool call written out as text.',
  'error-text': 'The answer is the text of an error.',
  'refusal-text': 'The answer says that no summary could be written.',
  echo: 'The model gave the task back in place of an answer.',
  'no-structure': 'The answer has neither the tags nor the sections of a summary.',
}

// Texts that are not summaries: a tool call written as text, an error, a refusal, the prompt itself.

/** Only at the start of a line; elsewhere the text talks about it. */
const TOOL_PROTOCOL: readonly RegExp[] = [
  /^\s*<\s*(?:\w+:)?(?:function_calls|invoke\s+name\s*=|parameter\s+name\s*=)/im,
  /^\s*<\s*(?:tool_calls?|tool_use|tool_result)\b[^>]*>/im,
  /^\s*(?:<\|(?:tool|python_tag|tool_calls?_(?:begin|start))[^|]*\|>|\[TOOL_CALLS\])/im,
  /^\s*\{\s*"(?:type"\s*:\s*"tool_use|tool_calls?"|function_call")/m,
]

/** Markup quoted in code is not a call. */
function withToolProtocol(summary: string): boolean {
  const prose = summary.replace(/```[\s\S]*?(?:```|$)/g, '').replace(/`[^`\n]*`/g, '')
  return TOOL_PROTOCOL.some((pattern) => pattern.test(prose))
}

/** Longer texts are not mere error messages or refusals, however they begin. */
const SHORT = 600

const ERRORS: readonly RegExp[] = [
  /^(?:(?:api|internal|request|server|connection) error\b|error\s*:)/i,
  /^\{\s*"(?:type"\s*:\s*"error"|error"\s*:)/,
  /^(?:prompt is too long|request timed out|service unavailable|bad gateway|overloaded_error|rate limit (?:exceeded|reached))/i,
  /^overloaded[.!]?$/i,
  /^(?:4\d\d|5\d\d)\b.{0,80}(?:error|overloaded|limit|unavailable|timeout)/i,
]

const REFUSALS: readonly RegExp[] = [
  /^(?:i['’]?m |i am )?(?:very )?sorry\b/i,
  /^(?:i |we )(?:can['’]?t|cannot|won['’]?t|will not|am unable|am not able|['’]m unable|['’]m not able|must decline|decline)\b/i,
  /^(?:i['’]m (?:unable|not able)|as an ai\b)/i,
  /^(?:there (?:is|was) (?:no|nothing)|no|the) conversation\b.{0,60}(?:to summari[sz]e|is empty|was provided|has (?:not )?(?:started|begun)|yet)/i,
]

function isErrorText(text: string): boolean {
  return isShortMatch(text, ERRORS)
}

function isRefusalText(text: string): boolean {
  return isShortMatch(text, REFUSALS)
}

function isShortMatch(text: string, patterns: readonly RegExp[]): boolean {
  const body = text.replace(/^\s*summary:\s*/i, '').trim()
  return body.length <= SHORT && patterns.some((pattern) => pattern.test(body))
}

/** Shorter lines of the prompt could occur in a summary by chance. */
const TELLING_LINE = 40
/** This many of them, or all if there are fewer, make an echo. */
const TELLING_LINES = 3

/** The answer contains several long lines of the prompt verbatim. */
function echoesTask(answer: string, prompt: string): boolean {
  const text = squeezed(answer)
  const lines = new Set(
    prompt
      .split('\n')
      .map(squeezed)
      .filter((line) => line.length >= TELLING_LINE),
  )
  const found = [...lines].filter((line) => text.includes(line)).length
  return lines.size > 0 && found >= Math.min(TELLING_LINES, lines.size)
}

function squeezed(text: string): string {
  return text.replace(/\s+/g, ' ').trim().toLowerCase()
}

// Extracting the summary: the analysis is dropped, the text inside the tags stays. Missing, unclosed, nested or
// doubled tags do not lose the summary; an answer with nothing but analysis has none.

interface ParsedSummary {
  /** Headed `Summary:`, blank lines squeezed. */
  readonly text: string
  /** Whether both tags were found, only the opening one, or none. */
  readonly tags: 'closed' | 'open' | 'none'
}

export const SUMMARY_HEADING = 'Summary:'

const OPEN = /<[ \t]*summary(?:[ \t][^<>\n]*)?>/i
const CLOSE = /<[ \t]*\/[ \t]*summary[ \t]*>/i
const ANALYSIS_OPEN = /<[ \t]*analysis(?:[ \t][^<>\n]*)?>/i
const ANALYSIS_CLOSE = /<[ \t]*\/[ \t]*analysis[ \t]*>/i
/** Both blocks as requested: the summary begins where the analysis ends. */
const SEAM = /<[ \t]*\/[ \t]*analysis[ \t]*>\s*(?=<[ \t]*summary(?:[ \t][^<>\n]*)?>)/i

/** Null if the text contains no summary. */
export function parseSummary(text: string): ParsedSummary | null {
  const whole = withoutAnalysis(text)
  const tagged = insideTags(whole)
  const bare = { body: withoutLoneTags(whole), tags: 'none' as const }
  // Tags that were quoted, or belong to some other markup: most of the summary lies outside them.
  const isOutside = tagged !== null && sectionsIn(bare.body).length > sectionsIn(tagged.body).length
  const found = tagged === null || isOutside ? bare : tagged
  const body = tidy(found.body)
  return body === '' ? null : { text: `${SUMMARY_HEADING}\n${body}`, tags: found.tags }
}

function withoutAnalysis(text: string): string {
  const seam = SEAM.exec(text)
  if (seam !== null && !CLOSE.test(text.slice(0, seam.index))) return text.slice(seam.index + seam[0].length)
  const opens = ANALYSIS_OPEN.exec(text)
  if (opens === null) return behindLoneClose(text)
  const summary = OPEN.exec(text)
  // An analysis tag inside the summary belongs to the summary.
  if (summary !== null && summary.index < opens.index) return text
  return withoutBlock(text, opens.index)
}

/** For an analysis without its opening tag: the text after the closing one. */
function behindLoneClose(text: string): string {
  const closes = ANALYSIS_CLOSE.exec(text)
  const summary = OPEN.exec(text)
  if (closes === null || (summary !== null && summary.index < closes.index)) return text
  return text.slice(closes.index + closes[0].length)
}

function withoutBlock(text: string, start: number): string {
  const block = text.slice(start)
  const closes = ANALYSIS_CLOSE.exec(block)
  const summary = OPEN.exec(block)
  const rest = closes === null ? '' : block.slice(closes.index + closes[0].length)
  const holdsSummary =
    summary !== null && !OPEN.test(rest) && (closes === null || summary.index < closes.index)
  // Unclosed, or closed too late: the analysis ends where the summary inside it begins.
  if (holdsSummary) return block.slice(summary.index).replace(ANALYSIS_CLOSE, '')
  return `${text.slice(0, start)}\n${rest}`
}

/** From the first opening tag to the last closing one, since a summary may quote either. */
function insideTags(text: string): { readonly body: string; readonly tags: ParsedSummary['tags'] } | null {
  const opens = OPEN.exec(text)
  if (opens === null) return null
  const behind = text.slice(opens.index + opens[0].length)
  const closes = lastIndexOf(behind, CLOSE)
  if (closes === -1) return { body: withoutLoneTags(behind), tags: 'open' }
  const inside = behind.slice(0, closes)
  return inside.trim() === '' ? null : { body: withoutLoneTags(withoutGaps(inside)), tags: 'closed' }
}

function lastIndexOf(text: string, pattern: RegExp): number {
  let last = -1
  for (const match of text.matchAll(new RegExp(pattern, 'gi'))) last = match.index
  return last
}

/** Removes an analysis between two summaries. */
function withoutGaps(text: string): string {
  const gap = new RegExp(
    `(${CLOSE.source})\\s*${ANALYSIS_OPEN.source}[\\s\\S]*?${ANALYSIS_CLOSE.source}\\s*(?=${OPEN.source})`,
    'gi',
  )
  return text.replace(gap, '$1\n')
}

/** Removes tags alone on a line or at either end of the text; others are quotations. */
function withoutLoneTags(text: string): string {
  const lone = new RegExp(`^[ \\t]*(?:${TAG}[ \\t]*)+$`, 'gim')
  return withoutTagsAtEnd(withoutTagsAtStart(text.replace(lone, '')))
}

const TAG = `(?:${OPEN.source}|${CLOSE.source})`
const AT_START = new RegExp(`^${TAG}`, 'i')

function withoutTagsAtStart(text: string): string {
  const rest = text.trimStart()
  const tag = AT_START.exec(rest)
  return tag === null ? rest : withoutTagsAtStart(rest.slice(tag[0].length))
}

function withoutTagsAtEnd(text: string): string {
  const rest = text.trimEnd()
  const start = rest.endsWith('>') ? rest.lastIndexOf('<') : -1
  const isTag = start !== -1 && AT_START.exec(rest.slice(start))?.[0].length === rest.length - start
  return isTag ? withoutTagsAtEnd(rest.slice(0, start)) : rest
}

function tidy(text: string): string {
  const lines = text.replace(/\r\n?/g, '\n').split('\n')
  const body = lines
    .map((line) => line.trimEnd())
    .join('\n')
    .trim()
  return body
    .replace(HEADED, '')
    .replace(/\n{3,}/g, '\n\n')
    .trim()
}

/** A `Summary:` heading written by the model itself. */
const HEADED = /^(?:#+[ \t]*|\*\*)?summary:(?:\*\*)?(?=\n|$)/i
