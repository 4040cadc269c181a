/**
 * The transcript of a conversation as a list of items: prompts, answers, tool calls, and one line for each event in which the context
 * changed. It is built from the events of a session or from the records of its log, without knowledge of the terminal. All text is made
 * safe to print when it is added.
 */

import { formatCount } from '@tidemark/terminal/render/format-numbers'
import type { ContentBlock, EventOf, SessionEvent } from 'tidemark'
import {
  isKnownRecord,
  isPrompt,
  isSyntheticError,
  isTextBlock,
  isToolResult,
  isToolUse,
  type KnownRecord,
  REFUSED_CALL_TEXT,
  readToolResultText,
  readUserInputs,
  type SessionRecord,
  toBlocks,
} from 'tidemark/records'
import { listAttachedLabels } from '../agent/attached-files.ts'
import { createEventLine, createModelSwitchLine, createRecordLine, type EventLine } from './event-lines.ts'
import type { DiffLine } from './line-diff.ts'
import { appendScreenText, toScreenText } from './screen-text.ts'

export type TranscriptItem = PromptItem | ModelTextItem | ToolCallItem | EventLineItem

interface ItemCore {
  readonly id: number
  /** Increases with each change, so that a drawing can be reused until then. */
  version: number
  /** True if the item is no longer part of the conversation, for example after /rewind or /clear. */
  isLeft?: boolean
}

export interface PromptItem extends ItemCore {
  readonly kind: 'prompt'
  readonly text: string
  /** uuid of the record, before which `/rewind` can go back. */
  readonly uuid: string
}

/** A text or the thinking of the model. */
export interface ModelTextItem extends ItemCore {
  readonly kind: 'answer' | 'thinking'
  text: string
  /** The end of the text so far, if it may be the beginning of a control sequence. */
  held?: string
  isStreaming: boolean
}

/** A tool call with its result, or a shell command of the user. */
export interface ToolCallItem extends ItemCore {
  readonly kind: 'call'
  readonly callId: string
  readonly name: string
  input: Readonly<Record<string, unknown>>
  state: 'writing' | 'waiting' | 'running' | 'done' | 'failed' | 'refused' | 'interrupted'
  /** The newest text that the running tool reported. */
  progress: string
  result: string | null
  /** The change of a file, compared with the file before the call; null for other calls and for calls from a log. */
  change: readonly DiffLine[] | null
}

/** A line about something that was done to the context, or a notice. */
export interface EventLineItem extends ItemCore {
  readonly kind: 'line'
  readonly line: EventLine
}

interface OwnCall {
  readonly name: string
  readonly input: Readonly<Record<string, string>>
  readonly result: string
  readonly isFailed: boolean
}

export interface Transcript {
  readonly items: readonly TranscriptItem[]
  /** Adds what the screen shows of an event. Returns true if the transcript has changed. */
  apply(event: SessionEvent): boolean
  /** Adds the records of an existing log. Replies that broke off and were withdrawn are left out. */
  replay(records: readonly SessionRecord[]): void
  addLine(line: EventLine): void
  /** Marks prompts that are no longer in the conversation, and the items after them. `prompts`: those still in it. */
  markLeft(prompts: ReadonlySet<string>): void
  /** Adds a shell command that the user ran, with its result. */
  addCall(call: OwnCall): void
  /** Empties the transcript, for another session. */
  clear(): void
}

/** Maximum items that can be drawn again. Older ones are only in the log. */
const MAX_ITEMS = 5_000

type NewItem =
  | Omit<PromptItem, 'id' | 'version'>
  | Omit<ModelTextItem, 'id' | 'version'>
  | Omit<ToolCallItem, 'id' | 'version'>
  | Omit<EventLineItem, 'id' | 'version'>

/** `readChange` returns the change that a call will make to a file. Called before the call runs. */
export function createTranscript(readChange: ReadChange = () => null): Transcript {
  const state = createItems(readChange)
  return {
    get items() {
      return state.items
    },
    apply: (event) => applyEvent(state, event),
    replay(records) {
      const start = state.items.length
      state.replayedModel = null
      const known = records.filter(isKnownRecord)
      const dropped = new Set(
        known.flatMap((record) => (record.type === 'system' ? (record.response ?? []) : [])),
      )
      const isDropped = (record: KnownRecord): boolean =>
        record.type === 'assistant' && dropped.has(record.message.id)
      for (const record of known) if (!isDropped(record)) replayRecord(state, record)
      for (const call of state.calls.values()) settleCall(call, 'interrupted')
      leaveOutOlder(state, start)
    },
    addLine: (line) => void state.add({ kind: 'line', line }),
    markLeft: (prompts) => markLeftItems(state.items, prompts),
    addCall({ name, input, result, isFailed }) {
      const item = toItem({ type: 'tool_use', id: '', name, input }, false)
      const added = item === null ? null : state.add(item)
      if (added?.kind === 'call') endCall(state, added, result, isFailed)
    },
    clear: () => state.clear(),
  }
}

/** Lines about the context are never marked: they report what was done, on any branch. */
function markLeftItems(items: readonly TranscriptItem[], prompts: ReadonlySet<string>): void {
  let isLeft = false
  for (const item of items) {
    if (item.kind === 'prompt') isLeft = !prompts.has(item.uuid)
    if (item.kind === 'line' || (item.isLeft ?? false) === isLeft) continue
    item.isLeft = isLeft
    item.version += 1
  }
}

type ReadChange = (name: string, input: ToolCallItem['input']) => ToolCallItem['change']

/** Maximum items of an existing log that are shown when its session is opened. */
const MAX_REPLAYED = 300

/** Replaces older items from `start` on by a line that says where they are. The newest ones stay. */
function leaveOutOlder({ items }: Items, start: number): void {
  const [first] = items.slice(start)
  const count = items.length - start - MAX_REPLAYED
  if (first === undefined || count <= 0) return
  const text = `${formatCount(count, 'earlier item is', 'earlier items are')} in the log: /history TEXT, /export`
  const line: EventLine = { tone: 'quiet', mark: '…', text, detail: null }
  items.splice(start, count, { id: first.id, version: 0, kind: 'line', line })
}

interface Items {
  readonly readChange: ReadChange
  readonly items: TranscriptItem[]
  /** Calls by id that have no result yet. */
  readonly calls: Map<string, ToolCallItem>
  /** Items of the arriving reply, by the index of their block. */
  readonly streaming: Map<number, TranscriptItem>
  /** The line with the expected cost of a request whose cache has expired, until the cache break is reported or the turn ends. */
  forecast: TranscriptItem | null
  /** The model of the records that were replayed so far. */
  replayedModel: string | null
  add(item: NewItem): TranscriptItem
  remove(items: ReadonlySet<TranscriptItem>): void
  clear(): void
}

function createItems(readChange: ReadChange): Items {
  const items: TranscriptItem[] = []
  const calls = new Map<string, ToolCallItem>()
  const streaming = new Map<number, TranscriptItem>()
  let nextId = 0
  return {
    readChange,
    items,
    calls,
    streaming,
    forecast: null,
    replayedModel: null,
    add(item) {
      const made = { ...item, id: nextId, version: 0 } as TranscriptItem
      nextId += 1
      items.push(made)
      if (made.kind === 'call') calls.set(made.callId, made)
      if (items.length > MAX_ITEMS) items.splice(0, items.length - MAX_ITEMS)
      return made
    },
    remove(gone) {
      const kept = items.filter((item) => !gone.has(item))
      items.splice(0, items.length, ...kept)
    },
    clear() {
      items.length = 0
      calls.clear()
      streaming.clear()
    },
  }
}

function applyEvent(state: Items, event: SessionEvent): boolean {
  const line = createEventLine(event)
  // The actual cost replaces the expected cost of an expired cache.
  if (event.type === 'cache-break' && state.forecast !== null) state.remove(new Set([state.forecast]))
  if (event.type === 'cache-break' || event.type === 'turn-ended') state.forecast = null
  const added = line === null ? null : state.add({ kind: 'line', line })
  if (event.type === 'resume-cost') state.forecast = added
  switch (event.type) {
    case 'reply':
      return applyReply(state, event) || line !== null
    case 'appended':
      return event.records.filter((record) => addPrompt(state, record)).length > 0
    case 'reply-dropped':
      state.remove(new Set(state.streaming.values()))
      state.streaming.clear()
      return true
    case 'tool-started':
      return changeCall(state, event.call, (call) => {
        call.state = 'running'
        call.change = state.readChange(call.name, call.input)
      })
    case 'tool-progress':
      return changeCall(state, event.call, (call) => {
        call.progress = toScreenText(event.text).slice(-PROGRESS_CHARACTERS)
      })
    case 'tool-ended':
      return changeCall(state, event.call, (call) =>
        endCall(state, call, event.result.content, event.result.is_error === true),
      )
    case 'turn-ended':
      state.streaming.clear()
      for (const call of [...state.calls.values()]) settleCall(call, 'interrupted')
      for (const item of state.items) stopStreaming(item)
      return true
    default:
      return line !== null
  }
}

/** Maximum characters of a running tool's reports that are kept. */
const PROGRESS_CHARACTERS = 4_000

function applyReply(state: Items, { event }: EventOf<'reply'>): boolean {
  switch (event.type) {
    case 'reply-started':
      state.streaming.clear()
      return false
    case 'block-started':
      return startBlock(state, event.index, event.block)
    case 'block-grew': {
      const item = state.streaming.get(event.index)
      const { delta } = event
      if (item?.kind !== 'answer' && item?.kind !== 'thinking') return false
      if (delta.kind !== 'text' && delta.kind !== 'thinking') return false
      appendScreenText(item, delta.text)
      item.version += 1
      return true
    }
    case 'block-ended':
      return endBlock(state, event.index, event.block)
    default:
      return false
  }
}

function startBlock(state: Items, index: number, block: ContentBlock): boolean {
  const item = toItem(block, true)
  if (item !== null) state.streaming.set(index, state.add(item))
  return item !== null
}

function toItem(block: ContentBlock, isStreaming: boolean): NewItem | null {
  if (isTextBlock(block)) return { kind: 'answer', text: toScreenText(block.text), isStreaming }
  if (block.type === 'thinking' && typeof block.thinking === 'string')
    return { kind: 'thinking', text: toScreenText(block.thinking), isStreaming }
  if (!isToolUse(block)) return null
  return {
    kind: 'call',
    callId: block.id,
    name: toScreenText(block.name),
    input: toInput(block.input),
    state: isStreaming ? 'writing' : 'waiting',
    progress: '',
    result: null,
    change: null,
  }
}

function endBlock(state: Items, index: number, block: ContentBlock): boolean {
  const item = state.streaming.get(index)
  if (item === undefined) return false
  item.version += 1
  // The items of a reply are remembered until its end, because a reply that breaks off removes all of them.
  if (item.kind === 'call' && isToolUse(block)) {
    item.input = toInput(block.input)
    if (item.state === 'writing') item.state = 'waiting'
  } else {
    // The whole text is now known. It replaces the pieces, in which text may have been held back or mistaken for a sequence.
    const whole = toItem(block, false)
    if (isAnswer(item) && whole !== null && isAnswer(whole)) item.text = whole.text
    stopStreaming(item)
  }
  return true
}

function isAnswer<Item extends { readonly kind: string }>(
  item: Item,
): item is Extract<Item, { readonly text: string; isStreaming: boolean }> {
  return item.kind === 'answer' || item.kind === 'thinking'
}

function stopStreaming(item: TranscriptItem): void {
  if (!isAnswer(item) || !item.isStreaming) return
  item.isStreaming = false
  item.version += 1
}

function toInput(input: unknown): Readonly<Record<string, unknown>> {
  return typeof input === 'object' && input !== null ? (input as Readonly<Record<string, unknown>>) : {}
}

function changeCall(
  state: Items,
  { id }: EventOf<'tool-started'>['call'],
  change: (call: ToolCallItem) => void,
): boolean {
  const call = state.calls.get(id)
  if (call === undefined) return false
  change(call)
  call.version += 1
  return true
}

function endCall(state: Items, call: ToolCallItem, content: unknown, isError: boolean): void {
  call.result = toScreenText(readToolResultText(content))
  const isRefused = isError && call.result.startsWith(REFUSED_CALL_TEXT)
  call.state = isRefused ? 'refused' : isError ? 'failed' : 'done'
  call.progress = ''
  state.calls.delete(call.callId)
}

function settleCall(call: ToolCallItem, end: 'interrupted'): void {
  if (call.result !== null || call.state === end) return
  call.state = end
  call.version += 1
}

/** Adds a prompt of the user. Returns false for any other record. */
function addPrompt(state: Items, record: SessionRecord): boolean {
  if (!isPrompt(record)) return false
  const inputs = readUserInputs(record).filter((input) => input.text !== '')
  if (inputs.length === 0) return false
  const isShell = ({ kind }: (typeof inputs)[number]): boolean => kind === 'shell'
  const text = inputs.flatMap((input) => (isShell(input) ? [] : [input.text])).join('\n')
  const shells = inputs.filter(isShell).map((input) => `with the output of ${input.text}`)
  state.add({ kind: 'prompt', text: toScreenText(text).trim(), uuid: record.uuid })
  const blocks = record.type === 'user' ? toBlocks(record.message.content).filter(isTextBlock) : []
  for (const what of [...listAttachedLabels(blocks).map((label) => `attached ${label}`), ...shells])
    state.add({ kind: 'line', line: { tone: 'quiet', mark: '·', text: toScreenText(what), detail: null } })
  return true
}

function replayRecord(state: Items, record: KnownRecord): void {
  const line = createRecordLine(record) ?? describeModelChange(state, record)
  if (line !== null) state.add({ kind: 'line', line })
  if (record.isSidechain === true || addPrompt(state, record)) return
  if (record.type === 'assistant') {
    if (isSyntheticError(record)) return
    for (const block of toBlocks(record.message.content)) {
      const item = toItem(block, false)
      if (item !== null) state.add(item)
    }
  } else if (record.type === 'user')
    for (const block of toBlocks(record.message.content)) {
      const call = isToolResult(block) ? state.calls.get(block.tool_use_id) : undefined
      if (call !== undefined && isToolResult(block))
        endCall(state, call, block.content, block.is_error === true)
    }
}

/** Returns a line if a new prefix snapshot has another model, because the model was switched. */
function describeModelChange(state: Items, record: KnownRecord): EventLine | null {
  const model = record.type === 'system' ? record.epoch?.model : undefined
  const before = state.replayedModel
  if (model === undefined) return null
  state.replayedModel = model
  return before === null || before === model ? null : createModelSwitchLine(model)
}
