/**
 * From view to API messages: one pass, in order, deterministic and prefix-stable.
 *
 * When a new response begins, all before it is final (`frozen`): nothing that comes later can change it. Only
 * the messages since are worked out anew at each step, so a step costs what it added.
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
import { IndexMap, List } from '../log/persistent-collections.ts'
import type { KnownRecord, UserRecord } from '../log/record.ts'
import type { View } from './context-view.ts'
import type { Entry } from './entry.ts'
import {
  type Draft,
  type FlatMessage,
  flatMessageOf,
  isEmpty,
  isShown,
  isSilent,
  joined,
  type Part,
  partsOf,
  type Repair,
  withParts,
} from './message-parts.ts'
import type { ApiMessage } from './payload.ts'
import { callsOf, isSettled, missingResult, type OpenCall, pairTools } from './tool-pairing.ts'

export interface Flat {
  /** What has been taken in. */
  readonly entries: List<Entry>
  readonly frozen: List<FlatMessage>
  readonly frozenRepairs: List<Repair>
  /** The tool calls of what is frozen. */
  readonly calls: IndexMap
  readonly drafts: readonly Draft[]
  /** The messages behind the frozen ones, as they would be sent now. */
  readonly tail: readonly FlatMessage[]
  readonly tailRepairs: readonly Repair[]
  /** Calls whose result may still come: the client's, and the server's. */
  readonly waiting: readonly OpenCall[]
  readonly waitingServer: readonly OpenCall[]
}

export const FIRST_PROMPT_TEXT = '[The beginning of this conversation is not in its log.]'

const FIRST_PROMPT: Block = { type: 'text', text: FIRST_PROMPT_TEXT }

const EMPTY: Flat = {
  entries: List.of(),
  frozen: List.of(),
  frozenRepairs: List.of(),
  calls: IndexMap.empty(),
  drafts: [],
  tail: [],
  tailRepairs: [],
  waiting: [],
  waitingServer: [],
}

/** The messages of a view; with `from`, an earlier state of the same view, only what is new is worked out. */
export function flatten(view: Pick<View, 'entries'>, from: Flat = EMPTY): Flat {
  let flat = view.entries.extends(from.entries) ? from : EMPTY
  for (let index = flat.entries.length; index < view.entries.length; index += 1) {
    flat = taken(flat, view.entries.at(index) as Entry)
  }
  const { messages, repairs, waiting, waitingServer } = finished(flat)
  const tail = { tail: messages, tailRepairs: repairs, waiting, waitingServer }
  return { ...flat, ...tail, entries: view.entries }
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
  if (parts.every(({ block }) => isBlankText(block)) && !setsEffort(record)) return blank(flat, parts)
  if (record.type === 'assistant') return said(flat, entry, record.message.id, parts)
  const draft = userDraft(record, entry, parts)
  const last = flat.drafts.at(-1)
  if (draft.role === 'user' && last?.role === 'user')
    return { ...flat, drafts: [...flat.drafts.slice(0, -1), joined(last, draft)] }
  return { ...flat, drafts: [...opened(flat, draft), draft] }
}

/** A record that says nothing begins no message: its neighbours stay one. */
function blank(flat: Flat, parts: readonly Part[]): Flat {
  let { frozenRepairs } = flat
  for (const { origin } of parts.slice(0, 1))
    frozenRepairs = frozenRepairs.push({ kind: 'blank-text', origin })
  return { ...flat, frozenRepairs }
}

/** A system message may say nothing but how hard to think. */
function setsEffort(record: KnownRecord): boolean {
  return record.type === 'user' && record.message.output_config !== undefined
}

/** A response goes with its other records if only tool results and attachments lie between; else it is a new one. */
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

/** The message as it was given. Of a system message in mid-conversation the other fields go along. */
function wholeOf(entry: Entry): ApiMessage | null {
  const { record } = entry
  if (entry.cleared !== undefined || (record.type !== 'user' && record.type !== 'assistant')) return null
  const { content } = record.message
  if (record.type === 'assistant') return { role: 'assistant', content }
  const { role } = record.message
  return role === 'system' ? { ...record.message, role, content } : { role, content }
}

/** A conversation begins with the person, or with a provider's own summary. */
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

/** The drafts as messages a provider takes. */
function finished(flat: Flat): Finished {
  const firsts: Repair[] = []
  const start = flat.drafts[0]?.parts.at(0)
  if (flat.frozen.length === 0 && start?.block === FIRST_PROMPT)
    firsts.push({ kind: 'no-first-prompt', origin: start.origin })
  const plain = withoutBlanks(flat.drafts)
  const known = (id: string): boolean => flat.calls.get(id) !== undefined
  const { waiting, waitingServer, ...paired } = pairTools(withWaitingSystem(plain.drafts), known)
  const tail = withoutSilentTail(withHomedSystem(paired.drafts))
  const repairs = [...firsts, ...plain.repairs, ...paired.repairs, ...tail.repairs]
  const messages = tail.drafts.map(flatMessageOf)
  return { messages, repairs, waiting, waitingServer, calls: tail.drafts.flatMap(callsOf) }
}

// What no provider takes, mended in a draft: blank text, and a response at the end that says nothing.

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

/** Blank text is refused wherever it stands, inside a tool result too. */
function withoutBlank(part: Part): readonly Part[] {
  const { block, origin } = part
  if (isBlankText(block)) return []
  if (!isToolResult(block) || !Array.isArray(block.content) || !block.content.some(isBlank)) return [part]
  return [{ block: { ...block, content: block.content.filter((item) => !isBlank(item)) }, origin }]
}

/**
 * Thinking alone does not end a request. It is dropped for good when the next response begins, since that one
 * was given without it.
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

/** A system message waits for the model's turn: what the person adds meanwhile goes in front of it. */
function withWaitingSystem(drafts: readonly Draft[]): readonly Draft[] {
  const placed: Draft[] = []
  for (const draft of drafts) {
    const waiting = placed.findLastIndex((earlier) => earlier.role !== 'system') + 1
    if (draft.role === 'user' && waiting < placed.length) insertBefore(placed, waiting, draft)
    else placed.push(draft)
  }
  return placed
}

/** It stands behind a user message. Where there is none, it becomes a reminder in one. */
function withHomedSystem(drafts: readonly Draft[]): readonly Draft[] {
  return drafts.map((draft, index) =>
    draft.role === 'system' && !hasHome(drafts, index) ? asReminder(draft) : draft,
  )
}

/** In front of the system messages that wait, joining the user message before them. */
function insertBefore(placed: Draft[], waiting: number, draft: Draft): void {
  const before = placed[waiting - 1]
  if (before?.role === 'user') placed[waiting - 1] = joined(before, draft)
  else placed.splice(waiting, 0, draft)
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

// Calls that never got their answer get one in the log before the next request goes out, so that what was
// sent stays what was sent when the real answer comes after all.

/** Client calls of the newest response that wait. One that the conversation has left behind is answered for good. */
export function openCalls(flat: Flat): readonly OpenCall[] {
  return flat.waiting
}

/** Ids of all calls that wait, the server's included: no cut may part them from the result to come. */
export function waitingIds({ waiting, waitingServer }: Flat): readonly string[] {
  return [...waiting, ...waitingServer].map(({ id }) => id)
}

/** What a record that answers them says; the caller gives it its uuid, parent and time. */
export function settlingRecord(calls: readonly OpenCall[]): Pick<UserRecord, 'type' | 'isMeta' | 'message'> {
  const content = calls.map((call) => missingResult(call.id))
  return { type: 'user', isMeta: true, message: { role: 'user', content } }
}
