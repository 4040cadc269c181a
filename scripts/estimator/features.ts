/** What a call added, as a row of a linear problem: the counts that the estimator's weights are multiplied with. */
import { type Block, isThinkingBlock } from '../../packages/core/src/log/block.ts'
import {
  CHARACTER_CLASSES,
  CHARACTER_COUNTS_LENGTH,
  countCharacterClasses,
  splitBlockForEstimate,
} from '../../packages/core/src/tokens/estimator.ts'
import { listReminderTokens, type MeasuredCall } from './estimator-error.ts'
import type { RecordedSession } from './sessions.ts'

/** Columns behind the counts of characters and runs. */
export const EXTRA = ['text', 'tool-use', 'field', 'tool-result', 'cipher', 'thinking', 'reminder'] as const
export const WIDTH = CHARACTER_COUNTS_LENGTH + EXTRA.length
export const column = (name: (typeof EXTRA)[number]): number => CHARACTER_COUNTS_LENGTH + EXTRA.indexOf(name)
export const FREE: ReadonlySet<number> = new Set([column('thinking')])

/**
 * Weights that these sessions cannot tell, since such characters hardly occur in them, or never in a row: set by
 * what is common to the tokenizers of the day.
 */
export const ASSUMED: ReadonlyMap<string, number> = new Map([
  ['newline characters', 0.1],
  ['letter characters', 0.6],
  ['letter runs', 0],
  ['symbol characters', 0.25],
  ['wide characters', 1.1],
  ['wide runs', 0],
])

export interface Row {
  readonly features: Float64Array
  readonly growth: number
}

export interface RowOptions {
  readonly stripsThinking: (model: string) => boolean
  readonly reminder: { readonly tools: readonly string[]; readonly every: number }
}

/** One row for each call whose growth is all additions that the log shows. */
export function rowsOf(session: RecordedSession, options: RowOptions): readonly Row[] {
  const reminders = listReminderTokens(session.calls, { ...options.reminder, tokens: 1 })
  return session.calls.flatMap((call, index) => {
    const before = session.calls[index - 1]
    if (before === undefined || !isPlain(call, options)) return []
    const growth = call.context - before.context
    return growth <= 0 ? [] : [{ features: featuresOf(call, reminders[index] ?? 0), growth }]
  })
}

function isPlain(call: MeasuredCall, { stripsThinking }: RowOptions): boolean {
  return call.broken === null && !(call.endsTurn && stripsThinking(call.model)) && !hasMedia(call.heard)
}

function hasMedia(blocks: readonly Block[]): boolean {
  return blocks.some(
    (block) => splitBlockForEstimate(block, 'fields').nestedBlocks.length > 0 || block.type === 'image',
  )
}

function featuresOf(call: MeasuredCall, reminder: number): Float64Array {
  const features = new Float64Array(WIDTH)
  const add = (name: (typeof EXTRA)[number], amount: number): void => {
    features[column(name)] = (features[column(name)] ?? 0) + amount
  }
  for (const block of [...call.said, ...call.heard]) {
    const parts = splitBlockForEstimate(block, 'fields')
    add('field', parts.fields)
    if (isThinkingBlock(block)) {
      add('cipher', parts.signatureLength)
      add('thinking', 1)
      continue
    }
    for (const text of parts.texts) countCharacterClasses(text, features)
    if (parts.kind === 'text' || parts.kind === 'tool-use' || parts.kind === 'tool-result') add(parts.kind, 1)
  }
  add('reminder', reminder)
  return features
}

export const COLUMN_NAMES: readonly string[] = [
  ...CHARACTER_CLASSES.map((name) => `${name} characters`),
  ...CHARACTER_CLASSES.map((name) => `${name} runs`),
  ...EXTRA,
]
