/**
 * One sentence for each event in which the context was changed or something went wrong. Used by the screen, by resumed sessions, by `-p`
 * and by `tidemark watch`.
 */
import type { EventOf, SessionEvent } from 'tidemark'
import { formatCount, formatTokens } from './format-numbers.ts'
import { toSafeLine } from './text.ts'

/** The text of an event. `good`: a compaction; `quiet`: for information; `warning`: a failure, or more cost than expected. */
interface EventText {
  readonly tone: 'good' | 'quiet' | 'warning'
  readonly text: string
}

/** Returns the text of an event for the user, safe for a terminal; null for an event that is not shown. */
export function describeEvent(event: SessionEvent): EventText | null {
  const [tone, text] = chooseWords(event)
  return text === null ? null : { tone, text: toSafeLine(text) }
}

type Words = readonly [EventText['tone'], string | null]

function chooseWords(event: SessionEvent): Words {
  switch (event.type) {
    case 'compact':
      return ['good', formatCompaction(event.compaction)]
    case 'microcompact':
      return ['quiet', formatClearing(event.clearing.metadata, event.clearing.freedTokens)]
    case 'cache-break':
      return ['warning', event.event.sentence]
    case 'act-paid':
      return ['quiet', event.act.sentence]
    case 'undone':
      return ['quiet', formatUndo(event.kind)]
    case 'compact-failed':
      return ['warning', `Not compacted: ${event.refused.message}`]
    case 'breaker-open': {
      const failures = formatCount(event.failures, 'failure')
      return ['warning', `Automatic compaction is paused after ${failures}: ${event.reason}`]
    }
    case 'media-dropped': {
      const items = formatCount(event.items, 'old image or document is', 'old images and documents are')
      return ['quiet', `${items} no longer sent. /undo restores them.`]
    }
    case 'thinking-dropped': {
      const responses = formatCount(event.responses, 'response')
      return ['quiet', `The thinking of ${responses} is no longer sent: the provider refused it.`]
    }
    case 'summary-dropped':
      return ['quiet', `The prepared summary is not used: ${event.message}`]
    case 'model-switched':
      return ['quiet', formatModelSwitch(event.to)]
    case 'answer-continued':
      return ['quiet', 'The output limit ended the answer; the model was asked to continue it.']
    default:
      return chooseOtherWords(event)
  }
}

function chooseOtherWords(event: SessionEvent): Words {
  switch (event.type) {
    case 'sm-compact-threshold-exceeded': {
      const [tokens, threshold] = [event.tokens, event.threshold].map(formatTokens)
      return [
        'quiet',
        `The notes are not used: with them the context would have ${tokens} tokens, and is compacted from ${threshold} on. A summary is written.`,
      ]
    }
    case 'sm-compact-refused': {
      // The other reasons are not shown: there are no notes yet, or the refusal itself names the reason.
      const isTold = event.reason === 'refused' || event.reason === 'error'
      return ['quiet', isTold ? `The notes are not used: ${event.message}` : null]
    }
    case 'notice':
    case 'hook-said':
    case 'host-history-changed':
    case 'request-passed':
      return ['warning', event.message]
    case 'prompt-truncated':
      return ['warning', `${event.message} ${LARGER_WINDOW}`]
    case 'resume-cost':
      return ['warning', event.sentence]
    case 'hook-failed':
      return ['warning', describeHookFailure(event)]
    case 'veto-overruled':
      return [
        'warning',
        `The hook ${event.hook} does not want a compaction, but the conversation would not fit without it: ${event.reason}`,
      ]
    case 'log-damaged': {
      const { damage } = event
      const places = damage.length === 1 ? 'one place' : `${damage.length} places`
      return ['warning', `The log of this session is damaged in ${places}: ${damage[0]?.why ?? ''}`]
    }
    default:
      return ['quiet', null]
  }
}

/** How the user can get a larger window from a server that drops the beginning of prompts. */
const LARGER_WINDOW =
  'Give it a larger window: with Ollama, `num_ctx` in a Modelfile or OLLAMA_CONTEXT_LENGTH for the server, since its /v1 addresses ignore `num_ctx` in a request.'

/** The name under which the engine reports the hook that asks the user for permission. */
export const PERMISSION_HOOK_NAME = 'permission'

function describeHookFailure({ hook, message }: EventOf<'hook-failed'>): string | null {
  // A permission question that the user aborted is not a failure, and users do not see it as a hook.
  if (hook === PERMISSION_HOOK_NAME && message.endsWith(' was aborted.')) return null
  return message.startsWith(`The hook ${hook} `) ? message : `The hook ${hook} failed: ${message}`
}

/** Returns `The model is now NAME.` */
export function formatModelSwitch(model: string): string {
  return `The model is now ${toSafeLine(model)}.`
}

const UNDONE_NAMES = { compact: 'compaction', clear: 'clearing' } as const

/** Returns `Undone: the context is as it was before the compaction.` */
export function formatUndo(kind: keyof typeof UNDONE_NAMES): string {
  return `Undone: the context is as it was before the ${UNDONE_NAMES[kind]}.`
}

type Summarizer = EventOf<'compact'>['compaction']['summarizer']

/** What stands in place of the compacted records, by who wrote it; continues `Compacted, with …`. */
export const SUMMARY_LABELS: Readonly<Record<Summarizer, string>> = {
  notes: 'the notes of this session',
  model: 'a summary by the model',
  block: 'a summary by the provider',
  local: 'a summary made from the log, without a model',
}

/** The figures of a compaction, from an event or from the record in a log. */
interface CompactionFigures {
  readonly tokensBefore: number
  /** Undefined if the log does not have it. */
  readonly tokensAfter: number | undefined
  readonly summarizer: Summarizer
  readonly cause: string | undefined
}

/** Returns what a compaction did, without a full stop: `Compacted: 40.0k → 12.0k tokens, with a summary by the model`. */
export function formatCompaction({
  tokensBefore,
  tokensAfter,
  summarizer,
  cause,
}: CompactionFigures): string {
  const what = cause === 'prepared' ? 'Swapped in a prepared summary' : 'Compacted'
  const after = tokensAfter === undefined ? '?' : formatTokens(tokensAfter)
  return `${what}: ${formatTokens(tokensBefore)} → ${after} tokens, with ${SUMMARY_LABELS[summarizer]}`
}

/** What a clearing removed from the context. The fields are named as in the clearing's record. */
interface ClearedContent {
  readonly compactedToolIds: readonly string[]
  readonly clearedInputs?: readonly unknown[] | undefined
  readonly clearedMedia?: readonly unknown[] | undefined
  readonly clearedThinking?: readonly unknown[] | undefined
}

/** Returns what a clearing did, without a full stop: `Cleared 3 old tool results: 12.0k tokens freed`. */
export function formatClearing(content: ClearedContent, freedTokens: number): string {
  const { compactedToolIds, clearedInputs = [], clearedMedia = [], clearedThinking = [] } = content
  const parts = [
    [compactedToolIds.length, 'old tool result', 'old tool results'],
    [clearedInputs.length, 'large input of an old tool call', 'large inputs of old tool calls'],
    [clearedMedia.length, 'old image or document', 'old images and documents'],
    [clearedThinking.length, 'response of its thinking', 'responses of their thinking'],
  ] as const
  const named = parts.filter(([count]) => count > 0)
  // Cleared thinking is mentioned only if nothing else was cleared.
  const shown = named.length > 1 ? named.filter(([, one]) => !one.endsWith('thinking')) : named
  const what = shown.map(([count, one, many]) => formatCount(count, one, many)).join(' and ')
  const freed = freedTokens > 0 ? `: ${formatTokens(freedTokens)} tokens freed` : ''
  return `Cleared ${what === '' ? 'old content' : what}${freed}`
}
