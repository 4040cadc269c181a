/** The request of a call of its own: a short system prompt, the stripped conversation, the task as its last words. */

import { roundsOf } from '../context/cut-points.ts'
import type { Entry } from '../context/entry.ts'
import { flatMessagesOf, flatten } from '../context/flatten.ts'
import { type FlatMessage, isShown, partsOf } from '../context/message-parts.ts'
import type { ApiMessage, Payload } from '../context/payload.ts'
import { List } from '../log/append-list.ts'
import {
  type Block,
  blocksOf,
  isBlock,
  isCompactionBlock,
  isMedia,
  isServerToolResult,
  isServerToolUse,
  isText,
  isThinking,
  isToolResult,
  isToolUse,
} from '../log/block.ts'
import { isObject, type JsonObject } from '../log/json.ts'
import { type AttachmentRecord, isCompactBoundary, type KnownRecord, type RawBlock } from '../log/record.ts'
import type { HeadDropPolicy } from '../policy/policy.ts'
import type { Profile } from '../policy/provider-profile.ts'

export interface InputParts {
  /** What the summariser is shown, in the order of the view. */
  readonly entries: readonly Entry[]
  readonly prompt: string
  readonly summariser: Summariser
  /** The tools of the conversation: one stays declared while calls are among the messages. */
  readonly tools: readonly JsonObject[]
  /** Stands in front where the model would speak first; null where nothing went before. */
  readonly marker?: string | null
  /** Calls and results as text, without any tool. */
  readonly asText?: boolean
  /** Tokens that the answer may take, where not as many as usual. */
  readonly outputTokens?: number
}

export interface DirectInput {
  readonly payload: Payload
  /** Exact texts beside the messages, where a block does not survive parse and stringify. */
  readonly raw: readonly (ReadonlyMap<number, string> | undefined)[]
}

export const SUMMARISER_SYSTEM_PROMPT =
  'You write summaries of conversations between a person and an assistant that works with tools. You write text only.'

export function prepareInput(parts: InputParts): DirectInput {
  const { summariser, prompt, tools, asText = false, outputTokens, marker = null } = parts
  const stripped = stripInput(parts.entries, { asText })
  const shown = marker === null ? stripped : withMarker(stripped, marker)
  const task: Entry = { record: metaRecord('summary-task', prompt), index: -1 }
  const all = flatMessagesOf(flatten({ entries: List.of([...shown, task]) }))
  const flat = summariser.profile.roles.consecutive === 'refused' ? oneByOne(all) : all
  const messages = flat.map(({ message }) => message)
  const payload: Payload = {
    model: summariser.model,
    ...answerSettings(summariser, outputTokens),
    system: SUMMARISER_SYSTEM_PROMPT,
    ...toolsFor(messages, tools),
    messages,
  }
  return { payload, raw: flat.map(({ raw }) => raw) }
}

/** Messages of one role in a row as one. */
function oneByOne(messages: readonly FlatMessage[]): readonly FlatMessage[] {
  const joined: FlatMessage[] = []
  for (const message of messages) {
    const last = joined.at(-1)
    if (last?.message.role === message.message.role) joined.splice(-1, 1, together(last, message))
    else joined.push(message)
  }
  return joined
}

function together(one: FlatMessage, other: FlatMessage): FlatMessage {
  const blocks = blocksOf(one.message.content)
  const behind = [...(other.raw ?? [])].map(([index, text]) => [blocks.length + index, text] as const)
  return {
    message: { ...one.message, content: [...blocks, ...blocksOf(other.message.content)] },
    origins: [...one.origins, ...other.origins],
    raw: new Map([...(one.raw ?? []), ...behind]),
  }
}

/** One is enough, and as few as can be keep the model from calling any. */
function toolsFor(messages: readonly ApiMessage[], tools: readonly JsonObject[]): Pick<Payload, 'tools'> {
  const blocks = messages.flatMap((message) => blocksOf(message.content))
  if (!blocks.some((block) => isToolUse(block) || isToolResult(block))) return {}
  const used = new Set(blocks.flatMap((block: Block) => (isToolUse(block) ? [block.name] : [])))
  const plain = tools.filter((tool) => tool.input_schema !== undefined)
  return { tools: [plain.find((tool) => used.has(String(tool.name))) ?? plain[0] ?? NO_TOOL].map(unmarked) }
}

function unmarked({ cache_control: _, defer_loading: __, ...tool }: JsonObject): JsonObject {
  return tool
}

const NO_TOOL: JsonObject = {
  name: 'unavailable',
  description: 'No tool can be called here.',
  input_schema: { type: 'object' },
}

// The conversation as a call of its own shows it to a summariser: no media, no thinking, nothing that comes back by
// itself after the compaction, nothing that only the model which made it can read.

interface StripOptions {
  /** Calls and their results are told as text, so that the request needs no tools at all. */
  readonly asText: boolean
}

/** Never worth summarising: the skill tool names them, and those in use come back. */
const LEFT_OUT: ReadonlySet<string> = new Set(['skill_discovery', 'skill_listing'])

export function stripInput(entries: readonly Entry[], options: StripOptions): readonly Entry[] {
  const batches = compactionBatches(entries)
  return entries.flatMap((entry) => strippedEntry(entry, batches, options))
}

/** What the last compaction brought back stands in its batch, and will be brought back again. */
function compactionBatches(entries: readonly Entry[]): ReadonlySet<string> {
  return new Set(
    entries.flatMap(({ record }) =>
      (isCompactBoundary(record) || record.isCompactSummary === true) && record.batch !== undefined
        ? [record.batch.id]
        : [],
    ),
  )
}

function strippedEntry(entry: Entry, batches: ReadonlySet<string>, options: StripOptions): readonly Entry[] {
  const { record } = entry
  if (record.type === 'attachment') return strippedAttachment(entry, record, batches)
  if (record.type !== 'user' && record.type !== 'assistant') return []
  if (isPlain(entry)) return [entry]
  const changed = strippedRecord(record, entry, options)
  return changed === null ? [] : [{ record: changed, index: entry.index }]
}

/** Nothing but what was said. */
function isPlain({ record, cleared }: Entry): boolean {
  if (cleared !== undefined || (record.type !== 'user' && record.type !== 'assistant')) return false
  return typeof record.message.content === 'string' && record.message.role !== 'system'
}

function strippedAttachment(
  entry: Entry,
  record: AttachmentRecord,
  batches: ReadonlySet<string>,
): readonly Entry[] {
  const { attachment } = record
  if (LEFT_OUT.has(attachment.type ?? '')) return []
  const returns = attachment.context === 'post-compact' || batches.has(record.batch?.id ?? '')
  if (!returns) return [entry]
  const named = attachment.path ?? attachment.filename ?? attachment.planFilePath
  const content = `[brought back after a compaction: ${attachment.type ?? 'unknown'}${typeof named === 'string' ? ` ${named}` : ''}]`
  const { batch: _, ...rest } = record
  return [
    { index: entry.index, record: { ...rest, attachment: { type: attachment.type ?? 'unknown', content } } },
  ]
}

type Said = Extract<KnownRecord, { type: 'user' | 'assistant' }>

/** As the view shows it, clearings applied. Exact texts go along with what stays as it is: no long number is told wrong. */
function strippedRecord(record: Said, entry: Entry, options: StripOptions): Said | null {
  const isSystem = record.message.role === 'system'
  const blocks: Block[] = []
  const rawBlocks: RawBlock[] = []
  for (const { block, raw } of partsOf(entry)) {
    const told = strippedBlock(block, options)
    if (told === null) continue
    if (raw !== undefined && told === block) rawBlocks.push({ index: blocks.length, text: raw })
    blocks.push(isSystem ? asReminder(told) : told)
  }
  return blocks.length === 0 ? null : withContent(record, blocks, rawBlocks)
}

function withContent(record: Said, content: readonly Block[], rawBlocks: readonly RawBlock[]): Said {
  const { rawBlocks: _, ...rest } = record
  const raw = rawBlocks.length > 0 ? { rawBlocks } : {}
  if (rest.type === 'user') return { ...rest, message: { role: 'user', content }, ...raw }
  return { ...rest, message: { ...rest.message, content }, ...raw }
}

/** A system message in mid-conversation is not every provider's, and none of the summariser's. */
function asReminder(block: Block): Block {
  if (!isText(block)) return block
  return { type: 'text', text: `<system-reminder>\n${block.text}\n</system-reminder>` }
}

/** Null for what is left out altogether. */
function strippedBlock(block: Block, { asText }: StripOptions): Block | null {
  if (isText(block)) return plainText(block)
  if (isThinking(block)) return null
  if (isMedia(block)) return text(`[${block.type}]`)
  if (isCompactionBlock(block)) return text(typeof block.content === 'string' ? block.content : UNREADABLE)
  if (isToolUse(block)) return asText ? text(`[call of ${block.name}: ${readable(block.input)}]`) : block
  if (isToolResult(block))
    return asText ? text(`[result: ${resultText(block.content)}]`) : withoutMedia(block)
  if (isServerToolUse(block)) return text(`[call of ${String(block.name)}: ${readable(block.input)}]`)
  if (isServerToolResult(block)) return text(`[result: ${readable(block.content)}]`)
  return text(`[${block.type}: ${readable(block)}]`)
}

const UNREADABLE = '[an earlier summary that cannot be read]'

/** Citations and the like point at what may no longer be there. */
function plainText(block: Block & { readonly text: string }): Block {
  return Object.keys(block).length === 2 ? block : text(block.text)
}

function withoutMedia(block: Block): Block {
  const { content } = block
  if (!Array.isArray(content) || content.every((item) => isBlock(item) && isText(item))) return block
  const told = content.flatMap((item) => (isBlock(item) ? (strippedBlock(item, { asText: true }) ?? []) : []))
  return { ...block, content: told }
}

function resultText(content: unknown): string {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return ''
  const told = content.flatMap((item) => (isBlock(item) ? (strippedBlock(item, { asText: true }) ?? []) : []))
  return told.map((item) => String(item.text ?? '')).join('\n')
}

/** As JSON, without what only its maker can read and without pictures as text. */
function readable(value: unknown): string {
  const told = JSON.stringify(value, (key, held) => (isOpaque(key, held) ? undefined : mediaAsText(held)))
  return told ?? ''
}

function isOpaque(key: string, held: unknown): boolean {
  return (
    key === 'cache_control' ||
    key === 'signature' ||
    (key.startsWith('encrypted_') && typeof held === 'string')
  )
}

function mediaAsText(held: unknown): unknown {
  return isObject(held) && isBlock(held) && isMedia(held) ? `[${held.type}]` : held
}

function text(said: string): Block {
  return { type: 'text', text: said.trim() === '' ? '[empty]' : said }
}

// Who writes a summary on a call of its own, and the settings that keep thinking from eating the answer.

export interface Summariser {
  readonly model: string
  readonly profile: Profile
  /** Context window in tokens; null where nobody knows it. */
  readonly window: number | null
  /** Tokens that a summary may take: 20,000 by policy, less in a small window. */
  readonly outputTokens: number
}

/** Tokens for thinking that cannot be turned off, beside those for the summary. */
const THINKING_ROOM = 8_000
const LOWEST_EFFORT = 'low'

type AnswerSettings = Pick<Payload, 'max_tokens' | 'thinking'> & {
  readonly output_config?: JsonObject
}

/** Thinking off where the model allows it; otherwise at the lowest effort, with room for it. */
export function answerSettings(
  { profile, outputTokens }: Summariser,
  tokens: number = outputTokens,
): AnswerSettings {
  const { modes, whenAbsent, minimumBudget, disabledEfforts } = profile.thinking
  if (whenAbsent === 'disabled') return { max_tokens: within(tokens, profile) }
  if (modes.includes('disabled')) {
    const effort = disabledEfforts === null ? {} : effortOf(disabledEfforts[0] ?? LOWEST_EFFORT, profile)
    return { max_tokens: within(tokens, profile), thinking: { type: 'disabled' }, ...effort }
  }
  const room = Math.max(minimumBudget, Math.min(THINKING_ROOM, tokens))
  const max_tokens = within(tokens + room, profile)
  if (!modes.includes('adaptive') && modes.includes('enabled')) {
    return {
      max_tokens,
      thinking: { type: 'enabled', budget_tokens: Math.min(minimumBudget, max_tokens - 1) },
    }
  }
  return { max_tokens, ...effortOf(LOWEST_EFFORT, profile) }
}

/** Tokens of a window that are not for input. */
export function answerTokens(summariser: Summariser): number {
  return answerSettings(summariser).max_tokens ?? summariser.outputTokens
}

function within(tokens: number, { maxOutput }: Profile): number {
  return maxOutput === null ? tokens : Math.min(tokens, maxOutput)
}

function effortOf(effort: string, { refusedFields }: Profile): { readonly output_config?: JsonObject } {
  const refused = refusedFields.some((path) => path === 'output_config' || path === 'output_config.effort')
  return refused ? {} : { output_config: { effort } }
}

// A prompt that was too long, made shorter from its head: whole rounds go, oldest first. What goes was shown to no
// summariser, so it is handed back for the local extractor to cover.

/** Stands in front where the rest would begin with the model. */
export const TRUNCATION_MARKER = '[earlier conversation truncated for compaction retry]'

interface HeadDropContext {
  /** Tokens that are too many, where the provider said so. */
  readonly over: number | null
  readonly tokensOf: (entry: Entry) => number
  readonly policy: Pick<HeadDropPolicy, 'percentOfRounds' | 'minimumRounds'>
}

interface HeadDrop {
  readonly rest: readonly Entry[]
  readonly dropped: readonly Entry[]
}

/** Null where nothing would be left. At least one round goes, so that no retry is what failed. */
export function dropHead(entries: readonly Entry[], context: HeadDropContext): HeadDrop | null {
  const rounds = roundsOfEntries(withoutMarker(entries))
  const count = roundsToDrop(rounds, context)
  const rest = rounds.slice(count).flat()
  if (!rest.some(isShown)) return null
  return { rest, dropped: rounds.slice(0, count).flat() }
}

function roundsToDrop(rounds: readonly (readonly Entry[])[], context: HeadDropContext): number {
  const { over, tokensOf, policy } = context
  if (over === null || over <= 0)
    return Math.max(policy.minimumRounds, Math.floor((rounds.length * policy.percentOfRounds) / 100))
  let left = over
  const covered = rounds.findIndex((round) => {
    left -= round.reduce((sum, entry) => sum + tokensOf(entry), 0)
    return left <= 0
  })
  return covered === -1 ? rounds.length : covered + 1
}

/** Entries between two neighbouring cuts, each group with something said in it. */
export function roundsOfEntries(entries: readonly Entry[]): readonly (readonly Entry[])[] {
  let at = 0
  return roundsOf(entries.map((entry) => entry.record))
    .filter((round) => round.length > 0)
    .map((round) => {
      at += round.length
      return entries.slice(at - round.length, at)
    })
}

/** Without the marker of an earlier retry: left in, it would be a round of its own and all that is dropped. */
function withoutMarker(entries: readonly Entry[]): readonly Entry[] {
  const first = entries[0]
  return first !== undefined && isMarker(first.record) ? entries.slice(1) : entries
}

/** With `text` in front, where the model would speak first. */
export function withMarker(entries: readonly Entry[], text: string): readonly Entry[] {
  const first = entries.find(isShown)
  if (first?.record.type !== 'assistant') return entries
  return [{ record: metaRecord('truncation-marker', text), index: -1 }, ...entries]
}

function isMarker(record: KnownRecord): boolean {
  return record.type === 'user' && record.isMeta === true && record.message.content === TRUNCATION_MARKER
}

/** A record that is only ever sent, never stored. */
export function metaRecord(uuid: string, text: string): KnownRecord {
  return {
    type: 'user',
    uuid,
    parentUuid: null,
    timestamp: '',
    sessionId: '',
    isMeta: true,
    message: { role: 'user', content: text },
  }
}
