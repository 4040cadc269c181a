/**
 * The context as API messages: one pass, in order, deterministic and prefix-stable.
 *
 * When a new response begins, all messages before it are final (`frozen`): no later record can change them. Only the
 * messages after them are recomputed, so an update costs what it added.
 */

import {
  type Block,
  isBlankText,
  isBlock,
  isCompactionBlock,
  isServerToolResult,
  isText,
  isToolResult,
} from '../log/block.ts'
import { List, Trie } from '../log/persistent-collections.ts'
import type { KnownRecord, UserRecord } from '../log/record.ts'
import type { View } from './context-view.ts'
import { type Entry, isShown, type Part, partsOf } from './entry.ts'
import type { ApiMessage } from './payload.ts'
import {
  callsOf,
  type Draft,
  isEmpty,
  isSettled,
  isSilent,
  joined,
  missingResult,
  type OpenCall,
  pairTools,
  type Repair,
  withParts,
} from './tool-pairing.ts'

/** A message of a request, with the records its blocks come from. */
export interface FlatMessage {
  readonly message: ApiMessage
  /** For each block the uuid of its record. */
  readonly origins: readonly string[]
  /** Exact JSON texts to send, by index of block. */
  readonly raw?: ReadonlyMap<number, string>
}

export interface Flat {
  /** The entries flattened so far. */
  readonly entries: List<Entry>
  readonly frozen: List<FlatMessage>
  readonly frozenRepairs: List<Repair>
  /** Ids of the tool calls in frozen messages. */
  readonly calls: Trie<number>
  readonly drafts: readonly Draft[]
  /** The messages after the frozen ones, as they would be sent now. */
  readonly tail: readonly FlatMessage[]
  readonly tailRepairs: readonly Repair[]
  /** Calls whose result may still come: client tools, and server tools. */
  readonly waiting: readonly OpenCall[]
  readonly waitingServer: readonly OpenCall[]
}

export const FIRST_PROMPT_TEXT = '[The beginning of this conversation is not in its log.]'

const FIRST_PROMPT: Block = { type: 'text', text: FIRST_PROMPT_TEXT }

const EMPTY: Flat = {
  entries: List.of(),
  frozen: List.of(),
  frozenRepairs: List.of(),
  calls: Trie.empty(),
  drafts: [],
  tail: [],
  tailRepairs: [],
  waiting: [],
  waitingServer: [],
}

/** The messages of the context. Given `from`, the result for an earlier state, only new entries are processed. */
export function flatten(view: Pick<View, 'entries'>, from: Flat = EMPTY): Flat {
  let flat = view.entries.extends(from.entries) ? from : EMPTY
  for (let index = flat.entries.length; index < view.entries.length; index += 1) {
    flat = taken(flat, view.entries.at(index) as Entry)
  }
  const { messages: tail, repairs: tailRepairs, waiting, waitingServer } = finished(flat)
  return { ...flat, tail, tailRepairs, waiting, waitingServer, entries: view.entries }
}

export function messagesOf(flat: Flat): readonly ApiMessage[] {
  return flatMessagesOf(flat).map((item) => item.message)
}

export function flatMessagesOf(flat: Flat): readonly FlatMessage[] {
  return [...flat.frozen.toArray(), ...flat.tail]
}

export function repairsOf(flat: Flat): readonly Repair[] {
  return [...flat.frozenRepairs, ...flat.tailRepairs]
}

function taken(flat: Flat, entry: Entry): Flat {
  if (!isShown(entry)) return flat
  const parts = partsOf(entry)
  const { record } = entry
  // A system message without text may still set the effort.
  const setsEffort = record.type === 'user' && record.message.output_config !== undefined
  if (parts.every(({ block }) => isBlankText(block)) && !setsEffort) {
    // A blank record starts no message, so that its neighbours stay one.
    const [first] = parts
    const { frozenRepairs: repairs } = flat
    if (first === undefined) return flat
    return { ...flat, frozenRepairs: repairs.push({ kind: 'blank-text', origin: first.origin }) }
  }
  if (record.type === 'assistant') return said(flat, entry, record.message.id, parts)
  const draft = userDraft(record, entry, parts)
  const last = flat.drafts.at(-1)
  if (draft.role === 'user' && last?.role === 'user')
    return { ...flat, drafts: [...flat.drafts.slice(0, -1), joined(last, draft)] }
  return { ...flat, drafts: [...opened(flat, draft), draft] }
}

/** A record joins the earlier records of its response if only tool results and attachments lie between them. */
function said(flat: Flat, entry: Entry, response: string, parts: readonly Part[]): Flat {
  const home = sameResponse(flat.drafts, response)
  const draft: Draft = {
    role: 'assistant',
    response,
    parts: List.of(parts),
    whole: wholeOf(entry),
    crossable: false,
  }
  if (home !== -1)
    return { ...flat, drafts: flat.drafts.map((old, index) => (index === home ? joined(old, draft) : old)) }
  const settled = isSettled(flat.drafts) ? frozen(flat) : flat
  return { ...settled, drafts: [...opened(settled, draft), draft] }
}

function sameResponse(drafts: readonly Draft[], response: string): number {
  for (let index = drafts.length - 1; index >= 0; index -= 1) {
    const draft = drafts[index] as Draft
    if (draft.role === 'assistant') return draft.response === response ? index : -1
    if (!draft.crossable) return -1
  }
  return -1
}

function userDraft(record: KnownRecord, entry: Entry, parts: readonly Part[]): Draft {
  const role = record.type === 'user' ? record.message.role : 'user'
  const crossable =
    record.type === 'attachment' || (parts.length > 0 && parts.every((part) => isToolResult(part.block)))
  return { role, response: null, parts: List.of(parts), whole: wholeOf(entry), crossable }
}

/** The message as given; null if parts were cleared. A mid-conversation system message keeps its other fields. */
function wholeOf(entry: Entry): ApiMessage | null {
  const { record } = entry
  if (entry.cleared !== undefined || (record.type !== 'user' && record.type !== 'assistant')) return null
  const { content } = record.message
  if (record.type === 'assistant') return { role: 'assistant', content }
  const { role } = record.message
  return role === 'system' ? { ...record.message, role, content } : { role, content }
}

/** The drafts so far; for a first message that may not be first, a user message to precede it. */
function opened(flat: Flat, draft: Draft): readonly Draft[] {
  if (flat.frozen.length + flat.drafts.length > 0 || draft.role === 'user') return flat.drafts
  const first = draft.parts.at(0)
  if (first === undefined || isCompactionBlock(first.block)) return flat.drafts
  const part = { block: FIRST_PROMPT, origin: first.origin }
  return [{ role: 'user', response: null, parts: List.of([part]), whole: null, crossable: false }]
}

function frozen(flat: Flat): Flat {
  const { messages, repairs, calls } = finished(flat)
  const next = { frozen: flat.frozen, frozenRepairs: flat.frozenRepairs, calls: flat.calls }
  for (const id of calls) next.calls = next.calls.add(id, next.frozen.length)
  for (const message of messages) next.frozen = next.frozen.push(message)
  for (const repair of repairs) next.frozenRepairs = next.frozenRepairs.push(repair)
  return { ...flat, ...next, drafts: [] }
}

interface Finished extends Pick<Flat, 'waiting' | 'waitingServer'> {
  readonly messages: readonly FlatMessage[]
  readonly repairs: readonly Repair[]
  readonly calls: readonly string[]
}

/** The drafts as messages that a provider accepts. */
function finished(flat: Flat): Finished {
  const firsts: Repair[] = []
  const start = flat.drafts[0]?.parts.at(0)
  if (flat.frozen.length === 0 && start?.block === FIRST_PROMPT)
    firsts.push({ kind: 'no-first-prompt', origin: start.origin })
  const plain = withoutBlanks(flat.drafts)
  const isKnownCall = (id: string): boolean => flat.calls.get(id) !== undefined
  const { waiting, waitingServer, ...paired } = pairTools(withWaitingSystem(plain.drafts), isKnownCall)
  const tail = withoutSilentTail(withHomedSystem(paired.drafts))
  const repairs = [...firsts, ...plain.repairs, ...paired.repairs, ...tail.repairs]
  const messages = tail.drafts.map(flatMessageOf)
  return { messages, repairs, waiting, waitingServer, calls: tail.drafts.flatMap(callsOf) }
}

function flatMessageOf(draft: Draft): FlatMessage {
  const parts = draft.parts.toArray()
  const raw = new Map(
    parts.flatMap((part, index) => (part.raw === undefined ? [] : [[index, part.raw] as const])),
  )
  const message = draft.whole ?? { role: draft.role, content: parts.map((part) => part.block) }
  return { message, origins: parts.map((part) => part.origin), ...(raw.size > 0 ? { raw } : {}) }
}

// Repairs of what every provider refuses: blank text, and a last response without content.

interface Mended {
  readonly drafts: readonly Draft[]
  readonly repairs: readonly Repair[]
}

function withoutBlanks(drafts: readonly Draft[]): Mended {
  const repairs: Repair[] = []
  const kept = drafts.map((draft) => {
    const parts = [...draft.parts].flatMap((part) => {
      const plain = withoutBlank(part)
      if (plain[0] !== part) repairs.push({ kind: 'blank-text', origin: part.origin })
      return plain
    })
    return withParts(draft, parts)
  })
  return { drafts: kept.filter((draft) => !isEmpty(draft)), repairs }
}

function isBlank(item: unknown): boolean {
  return isBlock(item) && isBlankText(item)
}

/** Blank text is refused everywhere, inside a tool result too. */
function withoutBlank(part: Part): readonly Part[] {
  const { block, origin } = part
  if (isBlankText(block)) return []
  if (!isToolResult(block) || !Array.isArray(block.content) || !block.content.some(isBlank)) return [part]
  return [{ block: { ...block, content: block.content.filter((item) => !isBlank(item)) }, origin }]
}

/**
 * Thinking alone may not end a request. It is dropped for good when the next response begins, because that response
 * was generated without it.
 */
function withoutSilentTail(drafts: readonly Draft[]): Mended {
  let length = drafts.length
  while (length > 0 && isSilent(drafts[length - 1] as Draft)) length -= 1
  const dropped = drafts.slice(length).flatMap((draft) => [...draft.parts].slice(0, 1))
  return {
    drafts: drafts.slice(0, length),
    repairs: dropped.map((part) => ({ kind: 'silent-tail', origin: part.origin })),
  }
}

// System messages in mid-conversation.

/** A system message stands right before the response: user content that arrives after it goes in front of it. */
function withWaitingSystem(drafts: readonly Draft[]): readonly Draft[] {
  const placed: Draft[] = []
  for (const draft of drafts) {
    const waiting = placed.findLastIndex((earlier) => earlier.role !== 'system') + 1
    const before = placed[waiting - 1]
    if (draft.role !== 'user' || waiting === placed.length) placed.push(draft)
    else if (before?.role === 'user') placed[waiting - 1] = joined(before, draft)
    else placed.splice(waiting, 0, draft)
  }
  return placed
}

/** A system message must follow a user message; elsewhere it becomes a reminder in a user message. */
function withHomedSystem(drafts: readonly Draft[]): readonly Draft[] {
  return drafts.map((draft, index) =>
    draft.role === 'system' && !hasHome(drafts, index) ? asReminder(draft) : draft,
  )
}

function hasHome(drafts: readonly Draft[], index: number): boolean {
  const before = drafts.slice(0, index).findLast((draft) => draft.role !== 'system')
  if (before?.role === 'user') return true
  return before?.role === 'assistant' && isServerToolResult(before.parts.last?.block ?? { type: '' })
}

function asReminder(draft: Draft): Draft {
  const parts = [...draft.parts].map(({ block, origin }) =>
    isText(block)
      ? { block: { type: 'text', text: `<system-reminder>\n${block.text}\n</system-reminder>` }, origin }
      : { block, origin },
  )
  return { ...withParts(draft, parts), role: 'user', whole: null }
}

// Calls that never got a result get one in the log before the next request is sent. If the real result arrives later,
// the bytes already sent stay the same.

/** Client calls of the newest response without a result. Earlier ones were completed when the conversation continued. */
export function openCalls(flat: Flat): readonly OpenCall[] {
  return flat.waiting
}

/** Ids of all calls that wait, server tools included: a cut may not separate them from their result. */
export function waitingIds({ waiting, waitingServer }: Flat): readonly string[] {
  return [...waiting, ...waitingServer].map(({ id }) => id)
}

/** The body of a record with error results for these calls; the caller adds uuid, parent and timestamp. */
export function settlingRecord(calls: readonly OpenCall[]): Pick<UserRecord, 'type' | 'isMeta' | 'message'> {
  const content = calls.map((call) => missingResult(call.id))
  return { type: 'user', isMeta: true, message: { role: 'user', content } }
}
