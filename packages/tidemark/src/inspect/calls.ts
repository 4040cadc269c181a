/**
 * The API calls of a log. One response on several lines is one call; a response that an earlier file had too
 * (a session resumed or forked takes its beginning along) is one call in all. Our own logs tell of calls beside the
 * conversation too: forks, summaries, replies that said nothing. They were paid for like the others.
 */
import {
  type AssistantRecord,
  type Block,
  blocksOf,
  countOf,
  isKnown,
  isObject,
  isToolUse,
  loggedCall,
  type SessionRecord,
  SYNTHETIC_MODEL,
  type Usage,
} from '@tidemark/core'
import { createRepeatedLines } from '../logs/read-session.ts'
import type { UsageTotals } from './report.ts'

export interface Call {
  readonly key: string
  readonly model: string
  readonly at: string
  /** The side agent that made it; null for the main conversation. */
  readonly agent: string | null
  /** Who asked beside the conversation (`compact`, a fork's name …); null for the conversation itself. */
  readonly source: string | null
  /** An earlier file has it too. */
  readonly isCopy: boolean
  readonly usage: Usage | null
  readonly blocks: readonly Block[]
}

export interface CallPlace {
  /** Keys of the calls that the files before have. */
  readonly elsewhere: ReadonlySet<string>
  /** Whose records these are; the main conversation's where nobody is named. */
  readonly agent?: string
}

/** In the order of the log. */
export function callsOf(records: Iterable<SessionRecord>, place: CallPlace): readonly Call[] {
  const calls = new Map<string, OpenCall>()
  const lines = createRepeatedLines()
  for (const record of records) {
    const beside = loggedCall(record)
    if (beside !== null) takeBeside(calls, beside, place)
    const key = keyOf(record)
    if (key === null || !isAnswer(record)) continue
    const isRepeated = lines.isRepeated(record)
    const known = calls.get(key)
    if (isRepeated && known === undefined) continue
    const call = known ?? begun(record, key, place)
    calls.set(key, call)
    if (!isRepeated) for (const block of blocksOf(record.message.content)) call.blocks.push(block)
    measure(call, record)
  }
  return [...calls.values()]
}

/** One that the conversation tells of too is the same call. */
function takeBeside(calls: Map<string, OpenCall>, { id, ...told }: LoggedCall, place: CallPlace): void {
  const key = `${id}\n`
  if (calls.has(key)) return
  const usage = isPlausible(told.usage) ? told.usage : null
  const isCopy = place.elsewhere.has(key)
  calls.set(key, { ...told, key, usage, isCopy, agent: place.agent ?? null, blocks: [] })
}

type LoggedCall = NonNullable<ReturnType<typeof loggedCall>>

/** What a host writes in the model's place is no answer of a model, error or not. */
function isAnswer(record: SessionRecord): record is AssistantRecord {
  return isKnown(record) && record.type === 'assistant' && record.message.model !== SYNTHETIC_MODEL
}

/** Null for what is no answer. Ids that a gateway gives out twice are told apart by the request. */
export function keyOf(record: SessionRecord): string | null {
  if (!isAnswer(record)) return null
  const { requestId } = record as AssistantRecord & { readonly requestId?: unknown }
  return `${record.message.id}\n${typeof requestId === 'string' ? requestId : ''}`
}

/** A call of which more lines may come. */
interface OpenCall extends Call {
  readonly blocks: Block[]
  usage: Usage | null
}

function begun(record: AssistantRecord, key: string, { elsewhere, agent }: CallPlace): OpenCall {
  const { model } = record.message
  const isCopy = elsewhere.has(key)
  const who = { agent: agent ?? null, source: null }
  return { key, model, at: record.timestamp, ...who, isCopy, usage: null, blocks: [] }
}

/** The lines of a response bear its usage from the start of the stream on; the fullest is the newest. */
function measure(call: OpenCall, { message }: AssistantRecord): void {
  const usage = isPlausible(message.usage) ? message.usage : null
  if (usage !== null && loggedOutput(usage) >= loggedOutput(call.usage)) call.usage = usage
}

const FIGURES = ['input_tokens', 'output_tokens', 'cache_read_input_tokens', 'cache_creation_input_tokens']

/** A log may hold anything. A figure that no counter could show makes the whole of it worthless. */
function isPlausible(usage: Usage | null | undefined): usage is Usage {
  return (
    isObject(usage) &&
    FIGURES.every((field) => Math.abs(Number(usage[field] ?? 0)) <= Number.MAX_SAFE_INTEGER)
  )
}

export function loggedOutput(usage: Usage | null): number {
  return typeof usage?.output_tokens === 'number' ? usage.output_tokens : 0
}

/** How many tools were called: a call whose line stands twice in the log is one. */
export function toolCallsIn(calls: readonly Call[]): number {
  const ids = calls.flatMap(({ blocks }) => blocks.flatMap((block) => (isToolUse(block) ? [block.id] : [])))
  return new Set(ids).size
}

// What calls used, added up.

export const NO_USAGE: UsageTotals = { input: 0, cacheRead: 0, cacheCreation: 0, output: 0 }

export function usageOf(usage: Usage | null): UsageTotals {
  if (usage === null) return NO_USAGE
  return {
    input: countOf(usage.input_tokens),
    cacheRead: countOf(usage.cache_read_input_tokens),
    cacheCreation: countOf(usage.cache_creation_input_tokens),
    output: countOf(usage.output_tokens),
  }
}

export function addUsage(one: UsageTotals, other: UsageTotals): UsageTotals {
  return {
    input: one.input + other.input,
    cacheRead: one.cacheRead + other.cacheRead,
    cacheCreation: one.cacheCreation + other.cacheCreation,
    output: one.output + other.output,
  }
}

/** Share of the prompts that was read from cache, to four places; null where nothing was sent. */
export function hitRateOf({ input, cacheRead, cacheCreation }: UsageTotals): number | null {
  const sent = input + cacheRead + cacheCreation
  return sent === 0 ? null : Math.round((cacheRead / sent) * 1e4) / 1e4
}

export function promptOf({ input, cacheRead, cacheCreation }: UsageTotals): number {
  return input + cacheRead + cacheCreation
}
