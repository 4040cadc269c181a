/** Whether what a summariser answered is a summary. Anything else is refused with its reason, and the old view stays. */
import { type Block, isCompactionBlock, isServerToolUse, isText, isToolUse } from '../conversation/block.ts'
import { echoesTask, isErrorText, isRefusalText, withToolProtocol } from './bad-answers.ts'
import { type ParsedSummary, parseSummary } from './parse-summary.ts'
import { sectionsIn } from './sections.ts'

export interface SummaryAnswer {
  readonly content: readonly Block[]
  readonly stopReason: string | null
}

export interface AcceptRules {
  /** The text that was asked, to know it when it comes back. */
  readonly prompt: string
  /** Tokens of what the summary is to stand for. */
  readonly replacedTokens: number
  /** It must be smaller than this per cent of that. */
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

export type Verdict =
  | { readonly ok: true; readonly summary: string; readonly tokens: number; readonly block?: Block }
  | { readonly ok: false; readonly reason: AnswerRefusal; readonly message: string }

/** An answer to a fork or a call of its own. */
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

/** An answer in the provider's own block, which goes back byte for byte: it can be refused, never mended. */
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
  // A provider that brings no block says why it stopped, and a normal stop is then no summary.
  if (stopReason === 'end_turn') return 'no-text'
  return stopReason === null ? 'cut-off' : (STOPS.get(stopReason) ?? 'odd-stop')
}

function badText(answer: string, parsed: ParsedSummary, prompt: string): PlainRefusal | null {
  if (echoesTask(answer, prompt)) return 'echo'
  if (withToolProtocol(parsed.text)) return 'tool-protocol'
  if (isErrorText(parsed.text)) return 'error-text'
  return isRefusalText(parsed.text) ? 'refusal-text' : null
}

/** Sections that make a text one of ours, and the length from which an unclosed block passes for one. */
const LEAST = { sections: 3, characters: 200 }

function isStructured({ text, tags }: ParsedSummary): boolean {
  if (tags === 'closed' || sectionsIn(text).length >= LEAST.sections) return true
  return tags === 'open' && text.length >= LEAST.characters
}

/** Words of the host are the host's alone: a summary that holds them would be taken for it. */
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
