/** Decides whether a model's response is a usable summary, and extracts the summary. An unusable one is refused with a reason. */

import { type Block, isCompactionBlock, isServerToolUse, isToolUse, joinTextBlocks } from '../log/block.ts'
import type { ReplyStop } from '../log/reply-report.ts'
import { findSectionNumbers } from './summary-prompt.ts'

interface SummaryAnswer {
  readonly content: readonly Block[]
  readonly stop: ReplyStop | null
}

export interface AcceptanceRules {
  /** The summary prompt, needed to recognise a response that only repeats it. */
  readonly prompt: string
  /** Tokens of the records that the summary replaces. */
  readonly replacedTokens: number
  /** The summary must be smaller than this percentage of `replacedTokens`. */
  readonly maximumPercent: number
  readonly countTokens: (text: string) => number
}

export type SummaryRefusalReason = FixedRefusalReason | 'too-large'

type AcceptanceVerdict =
  | { readonly ok: true; readonly summary: string; readonly tokens: number; readonly block?: Block }
  | { readonly ok: false; readonly reason: SummaryRefusalReason; readonly message: string }

/** Checks a model's response to a summary request and extracts the summary, or returns why the response is refused. */
export function acceptSummary(answer: SummaryAnswer, rules: AcceptanceRules): AcceptanceVerdict {
  const stopped = findStopProblem(answer, ['done', 'sequence'])
  if (stopped !== null) return refuseAnswer(stopped)
  const text = joinTextBlocks(answer.content)
  const parsed = extractSummary(text)
  if (parsed === null) return refuseAnswer(isShortMatch(text, ERROR_PATTERNS) ? 'error-text' : 'no-text')
  const wrong = findTextProblem(text, parsed, rules.prompt) ?? (isStructured(parsed) ? null : 'no-structure')
  if (wrong !== null) return refuseAnswer(wrong)
  if (answer.stop === 'sequence' && parsed.tags !== 'closed') return refuseAnswer('cut-off')
  return checkSize(defuseReminderTags(parsed.text), rules)
}

/** Checks a provider's compaction block. The block is sent back byte for byte, so it can be refused but not repaired. */
export function acceptCompactionBlock(answer: SummaryAnswer, rules: AcceptanceRules): AcceptanceVerdict {
  const stopped = findStopProblem(answer, ['compacted'])
  if (stopped !== null) return refuseAnswer(stopped)
  const [block, ...others] = answer.content.filter(isCompactionBlock)
  const text = block !== undefined && others.length === 0 ? block.content : null
  if (block === undefined || typeof text !== 'string' || text.trim() === '') return refuseAnswer('no-text')
  const wrong = findTextProblem(text, extractSummary(text) ?? { text, tags: 'none' }, rules.prompt)
  if (wrong !== null) return refuseAnswer(wrong)
  // A compaction block cannot be changed, so every later request would send its analysis and pay for it.
  if (withoutAnalysis(text) !== text) return refuseAnswer('analysis')
  const verdict = checkSize(text, rules)
  return verdict.ok ? { ...verdict, block } : verdict
}

const STOP_REFUSALS: ReadonlyMap<ReplyStop, FixedRefusalReason> = new Map([
  ['cut', 'cut-off'],
  ['paused', 'cut-off'],
  ['window', 'window-full'],
  ['tools', 'tool-call'],
  ['refused', 'refusal'],
])

function findStopProblem(
  { content, stop }: SummaryAnswer,
  normal: readonly ReplyStop[],
): FixedRefusalReason | null {
  if (content.some((block) => isToolUse(block) || isServerToolUse(block))) return 'tool-call'
  if (stop !== null && normal.includes(stop)) return null
  // A compaction-block request that ends with `done` gave no compaction block. For other summary requests `done` is
  // normal and was handled above.
  if (stop === 'done') return 'no-text'
  return stop === null ? 'cut-off' : (STOP_REFUSALS.get(stop) ?? 'odd-stop')
}

function findTextProblem(answer: string, parsed: ParsedSummary, prompt: string): FixedRefusalReason | null {
  if (isTaskEcho(answer, prompt)) return 'echo'
  if (hasToolProtocol(parsed.text)) return 'tool-protocol'
  if (isShortMatch(parsed.text, ERROR_PATTERNS)) return 'error-text'
  return isShortMatch(parsed.text, REFUSAL_PATTERNS) ? 'refusal-text' : null
}

/** `sections`: fewest section headings of a summary without tags. `characters`: least length of one without a closing tag. */
const STRUCTURE_MINIMUM = { sections: 3, characters: 200 }

function isStructured({ text, tags }: ParsedSummary): boolean {
  if (tags === 'closed' || findSectionNumbers(text).length >= STRUCTURE_MINIMUM.sections) return true
  return tags === 'open' && text.length >= STRUCTURE_MINIMUM.characters
}

/** Replaces the angle brackets of `<system-reminder>` tags (also with a number), so that no text can pass for the host's. */
export function defuseReminderTags(text: string): string {
  return text.replace(/<\s{0,8}(\/?)\s{0,8}(system-reminder(?:-\d+)?)\s{0,8}>/gi, '[$1$2]')
}

function checkSize(
  summary: string,
  { replacedTokens, maximumPercent, countTokens }: AcceptanceRules,
): AcceptanceVerdict {
  const tokens = countTokens(summary)
  if (tokens * 100 < replacedTokens * maximumPercent) return { ok: true, summary, tokens }
  const message = `The summary is not smaller than what it would replace: ${tokens} tokens for ${replacedTokens}.`
  return { ok: false, reason: 'too-large', message }
}

function refuseAnswer(reason: FixedRefusalReason): AcceptanceVerdict & { readonly ok: false } {
  return { ok: false, reason, message: REFUSAL_MESSAGES[reason] }
}

const REFUSAL_MESSAGES = {
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
  analysis: 'The answer has an analysis beside the summary, which would stay in the conversation.',
} as const

type FixedRefusalReason = keyof typeof REFUSAL_MESSAGES

// Detection of responses that are not summaries: a tool call written as text, an error, a refusal, the prompt itself.

/** Patterns of a tool call written as text. They match at the start of a line only; elsewhere a summary may mention one. */
const TOOL_PROTOCOL: readonly RegExp[] = [
  /^\s*<\s*(?:\w+:)?(?:function_calls|invoke\s+name\s*=|parameter\s+name\s*=)/im,
  /^\s*<\s*(?:tool_calls?|tool_use|tool_result)\b[^>]*>/im,
  /^\s*(?:<\|(?:tool|python_tag|tool_calls?_(?:begin|start))[^|]*\|>|\[TOOL_CALLS\])/im,
  /^\s*\{\s*"(?:type"\s*:\s*"tool_use|tool_calls?"|function_call")/m,
]

/** Checks whether a summary contains a tool call written as text. Markup inside Markdown code does not count. */
function hasToolProtocol(summary: string): boolean {
  const prose = summary.replace(/```[\s\S]*?(?:```|$)/g, '').replace(/`[^`\n]*`/g, '')
  return TOOL_PROTOCOL.some((pattern) => pattern.test(prose))
}

/** A text with more characters than this is not taken for an error message or a refusal, however it begins. */
const SHORT_TEXT_CHARACTERS = 600

const ERROR_PATTERNS: readonly RegExp[] = [
  /^(?:(?:api|internal|request|server|connection) error\b|error\s*:)/i,
  /^\{\s*"(?:type"\s*:\s*"error"|error"\s*:)/,
  /^(?:prompt is too long|request timed out|service unavailable|bad gateway|overloaded_error|rate limit (?:exceeded|reached))/i,
  /^overloaded[.!]?$/i,
  /^(?:4\d\d|5\d\d)\b.{0,80}(?:error|overloaded|limit|unavailable|timeout)/i,
]

const REFUSAL_PATTERNS: readonly RegExp[] = [
  /^(?:i['’]?m |i am )?(?:very )?sorry\b/i,
  /^(?:i |we )(?:can['’]?t|cannot|won['’]?t|will not|am unable|am not able|['’]m unable|['’]m not able|must decline|decline)\b/i,
  /^(?:i['’]m (?:unable|not able)|as an ai\b)/i,
  /^(?:there (?:is|was) (?:no|nothing)|no|the) conversation\b.{0,60}(?:to summari[sz]e|is empty|was provided|has (?:not )?(?:started|begun)|yet)/i,
]

function isShortMatch(text: string, patterns: readonly RegExp[]): boolean {
  const body = text.replace(/^\s*summary:\s*/i, '').trim()
  return body.length <= SHORT_TEXT_CHARACTERS && patterns.some((pattern) => pattern.test(body))
}

/** Prompt lines with fewer characters than this do not count as repeated, since a summary may contain them by chance. */
const MIN_ECHO_LINE_CHARACTERS = 40
/**
 * Number of repeated prompt lines from which a response counts as an echo of the prompt. If the prompt has fewer long
 * lines, all of them must be repeated.
 */
const MIN_ECHO_LINES = 3

/** Checks whether a response repeats several long lines of the prompt verbatim. */
function isTaskEcho(answer: string, prompt: string): boolean {
  const text = normalizeWhitespace(answer)
  const lines = new Set(
    prompt
      .split('\n')
      .map(normalizeWhitespace)
      .filter((line) => line.length >= MIN_ECHO_LINE_CHARACTERS),
  )
  const found = [...lines].filter((line) => text.includes(line)).length
  return lines.size > 0 && found >= Math.min(MIN_ECHO_LINES, lines.size)
}

function normalizeWhitespace(text: string): string {
  return text.replace(/\s+/g, ' ').trim().toLowerCase()
}

// Extraction of the summary from a response: drops the analysis and keeps the text inside the summary tags.
// Missing, unclosed, nested or doubled tags do not lose the summary; a response with only an analysis has none.

interface ParsedSummary {
  /** The summary's text under the heading `Summary:`, with runs of blank lines reduced to one. */
  readonly text: string
  /** The summary tags found: `closed` for both, `open` for the opening one only, `none` for neither. */
  readonly tags: 'closed' | 'open' | 'none'
}

/** The line with which every accepted summary begins. */
export const SUMMARY_HEADING = 'Summary:'

const SUMMARY_OPEN = /<[ \t]*summary(?:[ \t][^<>\n]*)?>/i
const SUMMARY_CLOSE = /<[ \t]*\/[ \t]*summary[ \t]*>/i
const ANALYSIS_OPEN = /<[ \t]*analysis(?:[ \t][^<>\n]*)?>/i
const ANALYSIS_CLOSE = /<[ \t]*\/[ \t]*analysis[ \t]*>/i
/** Matches the end of an analysis block that is directly followed by a summary block. */
const ANALYSIS_TO_SUMMARY = /<[ \t]*\/[ \t]*analysis[ \t]*>\s*(?=<[ \t]*summary(?:[ \t][^<>\n]*)?>)/i

/** Extracts the summary from a response's text, without checking its content; returns null if the text contains none. */
export function extractSummary(text: string): ParsedSummary | null {
  const whole = withoutAnalysis(text)
  const tagged = extractTagged(whole)
  const bare = { body: withoutLoneTags(whole), tags: 'none' as const }
  // If more numbered sections are outside the tags than inside, the tags are a quotation or other markup.
  const isOutside =
    tagged !== null && findSectionNumbers(bare.body).length > findSectionNumbers(tagged.body).length
  const found = tagged === null || isOutside ? bare : tagged
  const body = tidyText(found.body)
  return body === '' ? null : { text: `${SUMMARY_HEADING}\n${body}`, tags: found.tags }
}

function withoutAnalysis(text: string): string {
  const seam = ANALYSIS_TO_SUMMARY.exec(text)
  if (seam !== null && !SUMMARY_CLOSE.test(text.slice(0, seam.index)))
    return text.slice(seam.index + seam[0].length)
  const opens = ANALYSIS_OPEN.exec(text)
  if (opens === null) return dropUntilAnalysisClose(text)
  const summary = SUMMARY_OPEN.exec(text)
  // An analysis tag after the opening summary tag is part of the summary's text.
  if (summary !== null && summary.index < opens.index) return text
  return withoutAnalysisBlock(text, opens.index)
}

/** Drops an analysis whose opening tag is missing: returns the text after its closing tag, or all of it without such a tag. */
function dropUntilAnalysisClose(text: string): string {
  const closes = ANALYSIS_CLOSE.exec(text)
  const summary = SUMMARY_OPEN.exec(text)
  if (closes === null || (summary !== null && summary.index < closes.index)) return text
  return text.slice(closes.index + closes[0].length)
}

function withoutAnalysisBlock(text: string, start: number): string {
  const block = text.slice(start)
  const closes = ANALYSIS_CLOSE.exec(block)
  const summary = SUMMARY_OPEN.exec(block)
  const rest = closes === null ? '' : block.slice(closes.index + closes[0].length)
  const holdsSummary =
    summary !== null && !SUMMARY_OPEN.test(rest) && (closes === null || summary.index < closes.index)
  // If the analysis has no closing tag, or has it only inside the summary, the analysis ends where the summary begins.
  if (holdsSummary) return block.slice(summary.index).replace(ANALYSIS_CLOSE, '')
  return `${text.slice(0, start)}\n${rest}`
}

/**
 * Returns the text between the first opening and the last closing summary tag, since a summary may quote both tags;
 * null if there is no opening tag or no text.
 */
function extractTagged(text: string): { readonly body: string; readonly tags: ParsedSummary['tags'] } | null {
  const opens = SUMMARY_OPEN.exec(text)
  if (opens === null) return null
  const behind = text.slice(opens.index + opens[0].length)
  const closes = findLastIndex(behind, SUMMARY_CLOSE)
  if (closes === -1) return { body: withoutLoneTags(behind), tags: 'open' }
  const inside = behind.slice(0, closes)
  return inside.trim() === ''
    ? null
    : { body: withoutLoneTags(withoutAnalysisBetween(inside)), tags: 'closed' }
}

function findLastIndex(text: string, pattern: RegExp): number {
  let last = -1
  for (const match of text.matchAll(new RegExp(pattern, 'gi'))) last = match.index
  return last
}

/** Removes an analysis block between two summary blocks. */
function withoutAnalysisBetween(text: string): string {
  const gap = new RegExp(
    `(${SUMMARY_CLOSE.source})\\s*${ANALYSIS_OPEN.source}[\\s\\S]*?${ANALYSIS_CLOSE.source}\\s*(?=${SUMMARY_OPEN.source})`,
    'gi',
  )
  return text.replace(gap, '$1\n')
}

/** Removes summary tags that are alone on a line or at either end of the text; all other tags count as quotations. */
function withoutLoneTags(text: string): string {
  const lone = new RegExp(`^[ \\t]*(?:${SUMMARY_TAG}[ \\t]*)+$`, 'gim')
  return withoutTagsAtEnd(withoutTagsAtStart(text.replace(lone, '')))
}

const SUMMARY_TAG = `(?:${SUMMARY_OPEN.source}|${SUMMARY_CLOSE.source})`
const TAG_AT_START = new RegExp(`^${SUMMARY_TAG}`, 'i')

function withoutTagsAtStart(text: string): string {
  const rest = text.trimStart()
  const tag = TAG_AT_START.exec(rest)
  return tag === null ? rest : withoutTagsAtStart(rest.slice(tag[0].length))
}

function withoutTagsAtEnd(text: string): string {
  const rest = text.trimEnd()
  const start = rest.endsWith('>') ? rest.lastIndexOf('<') : -1
  const isTag = start !== -1 && TAG_AT_START.exec(rest.slice(start))?.[0].length === rest.length - start
  return isTag ? withoutTagsAtEnd(rest.slice(0, start)) : rest
}

function tidyText(text: string): string {
  const lines = text.replace(/\r\n?/g, '\n').split('\n')
  const body = lines
    .map((line) => line.trimEnd())
    .join('\n')
    .trim()
  return body
    .replace(OWN_HEADING, '')
    .replace(/\n{3,}/g, '\n\n')
    .trim()
}

/** Matches a `Summary:` heading that the model wrote itself. */
const OWN_HEADING = /^(?:#+[ \t]*|\*\*)?summary:(?:\*\*)?(?=\n|$)/i
