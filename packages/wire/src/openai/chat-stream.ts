/**
 * Decodes the chunks of Chat Completions into reply events, as a pure function `(state, frame) → [state, events]`. A
 * chunk may have pieces of reasoning, text and several calls. Every reply ends with exactly one `reply-ended` or
 * `reply-failed`.
 */
import {
  addReplyEvent,
  type BlockDelta,
  type BlockEnded,
  emptyReplyAssembly,
  type ModelFailure,
  type OpenBlock,
  type ReplyAssembly,
  type ReplyEvent,
  toReply,
} from '@tidemark/core/engine/reply'
import type { Block } from '@tidemark/core/log/block'
import { isJsonObject, type Json, type JsonObject, parseJson } from '@tidemark/core/log/json'
import { createFailure } from '../failure/classify-failure.ts'
import { decodeSseBytes, finishSse, initialSseState, type SseFrame, type SseState } from '../http/sse.ts'
import type { DecodeBodyResult, ReplyDecoder } from '../providers/provider-codec.ts'
import type { Dialect } from './dialects.ts'
import { OPENAI_VENDOR, readOpenaiFailure } from './openai-errors.ts'
import { type DecodedBlock, keepNonObjectArguments, withCallInput } from './output-blocks.ts'
import { readChatReport } from './reply-report.ts'

interface ChatStream {
  readonly sse: SseState
  readonly assembly: ReplyAssembly
  readonly next: number
  /** Index of the open block of each kind: `thinking`, `text`, and `call N` for the provider's call N. */
  readonly blocks: ReadonlyMap<string, number>
  /** Opaque reasoning received so far, unchanged. */
  readonly details: readonly Json[]
  readonly finish: string | null
  readonly usage: JsonObject | null
  readonly isClosed: boolean
}

type ChatStep = readonly [ChatStream, readonly ReplyEvent[]]

const INITIAL: ChatStream = {
  sse: initialSseState,
  assembly: emptyReplyAssembly,
  next: 0,
  blocks: new Map(),
  details: [],
  finish: null,
  usage: null,
  isClosed: false,
}

export function createChatDecoder(dialect: Dialect): ReplyDecoder<ChatStream> {
  return {
    initial: INITIAL,
    step(state, chunk) {
      const [sse, frames] = decodeSseBytes(state.sse, chunk)
      return decodeFrames({ ...state, sse }, frames, dialect)
    },
    finish(state, cause) {
      if (state.isClosed) return []
      if (cause !== undefined) return fail(state, cause)[1]
      const { rest } = finishSse(state.sse)
      const [last, events] = rest === null ? [state, []] : decodeFrames(state, [rest], dialect)
      if (last.isClosed) return events
      // Some servers omit the last line, `[DONE]`.
      if (last.finish !== null) return [...events, ...end(last, dialect)[1]]
      const cut = createFailure('network', 'The connection ended before the reply was complete')
      return [...events, ...fail(last, cut)[1]]
    },
  }
}

function decodeFrames(state: ChatStream, frames: readonly SseFrame[], dialect: Dialect): ChatStep {
  return runSteps(state, frames, (next, frame) => decodeFrame(next, frame, dialect))
}

/** Applies the steps in order, and returns all their events. */
function runSteps<T>(
  state: ChatStream,
  items: readonly T[],
  step: (state: ChatStream, item: T) => ChatStep,
): ChatStep {
  const all: ReplyEvent[] = []
  let next = state
  for (const item of items) {
    const [after, events] = step(next, item)
    next = after
    all.push(...events)
  }
  return [next, all]
}

function decodeFrame(state: ChatStream, frame: SseFrame, dialect: Dialect): ChatStep {
  if (state.isClosed || frame.data === '') return [state, []]
  if (frame.data === '[DONE]') return end(state, dialect)
  const data = parseJson(frame.data)
  if (!isJsonObject(data))
    return fail(state, createFailure('bad-reply', 'The stream has a chunk that is no JSON'))
  if (data.error !== undefined || frame.event === 'error')
    return fail(state, readOpenaiFailure({ body: frame.data }))
  const [begun, first] = start(state, data)
  const [choice] = Array.isArray(data.choices) ? data.choices.filter(isJsonObject) : []
  const known = {
    ...begun,
    finish: typeof choice?.finish_reason === 'string' ? choice.finish_reason : begun.finish,
    usage: isJsonObject(data.usage) ? data.usage : begun.usage,
  }
  if (!isJsonObject(choice?.delta)) return [known, first]
  const [grown, events] = grow(known, choice.delta, dialect)
  return [grown, [...first, ...events]]
}

function start(state: ChatStream, { id, model }: JsonObject): ChatStep {
  if (state.assembly.message !== null) return [state, []]
  const message = { id: String(id), role: 'assistant' as const, model: String(model), content: [] }
  return emit(state, [{ type: 'reply-started', message }])
}

interface Growth {
  readonly key: string
  readonly block: Block
  readonly delta: BlockDelta
}

function grow(state: ChatStream, delta: JsonObject, dialect: Dialect): ChatStep {
  const details = dialect.details === null ? undefined : delta[dialect.details]
  const kept = Array.isArray(details) ? { ...state, details: [...state.details, ...details] } : state
  return runSteps(kept, listGrowth(delta, dialect), (next, { key, block, delta: added }) => {
    const [opened, events] = next.blocks.has(key) ? [next, []] : startBlock(next, key, block)
    const index = opened.blocks.get(key) ?? 0
    const [grown, more] = emit(opened, [{ type: 'block-grew', index, delta: added }])
    return [grown, [...events, ...more]]
  })
}

/** The origin that marks a call of a custom tool, whose input is free text. */
export const CUSTOM_TOOL_ORIGIN: { readonly vendor: string; readonly item: JsonObject } = {
  vendor: OPENAI_VENDOR,
  item: { type: 'custom' },
}

function listGrowth(delta: JsonObject, { reasoning }: Dialect): readonly Growth[] {
  const growth: Growth[] = []
  const thought = reasoning === null ? undefined : delta[reasoning]
  if (typeof thought === 'string' && thought !== '')
    growth.push({
      key: 'thinking',
      block: { type: 'thinking', thinking: '' },
      delta: { kind: 'thinking', text: thought },
    })
  const text = typeof delta.content === 'string' && delta.content !== '' ? delta.content : delta.refusal
  if (typeof text === 'string' && text !== '')
    growth.push({ key: 'text', block: { type: 'text', text: '' }, delta: { kind: 'text', text } })
  for (const call of Array.isArray(delta.tool_calls) ? delta.tool_calls.filter(isJsonObject) : []) {
    const isCustom = isJsonObject(call.custom)
    const fn = isJsonObject(call.custom) ? call.custom : isJsonObject(call.function) ? call.function : {}
    const named = { type: 'tool_use', id: String(call.id), name: String(fn.name), input: {} }
    const block = isCustom ? { ...named, origin: CUSTOM_TOOL_ORIGIN } : named
    const text = isCustom ? fn.input : fn.arguments
    const json = typeof text === 'string' ? text : ''
    growth.push({ key: `call ${String(call.index ?? call.id)}`, block, delta: { kind: 'input', json } })
  }
  return growth
}

function startBlock(state: ChatStream, key: string, block: Block): ChatStep {
  const { next: index } = state
  const opened = { ...state, next: index + 1, blocks: new Map(state.blocks).set(key, index) }
  return emit(opened, [{ type: 'block-started', index, block }])
}

function end(state: ChatStream, dialect: Dialect): ChatStep {
  if (state.assembly.message === null)
    return fail(state, createFailure('bad-reply', 'The stream ended a reply that it never began'))
  const open = [...state.assembly.open.values()].toSorted((a, b) => a.index - b.index)
  const [ended, ends] = emit(
    state,
    open.map((block) => finishBlock(block, state.details, dialect)),
  )
  const { finish, usage } = ended
  const [updated, late] = emit(ended, [
    {
      type: 'reply-updated',
      fields: { finish_reason: finish },
      ...(usage === null ? {} : { usage }),
      report: readChatReport({ usage, finish_reason: finish }),
    },
  ])
  const reply = toReply(updated.assembly)
  const last: readonly ReplyEvent[] = reply === null ? [] : [{ type: 'reply-ended', reply }]
  return [{ ...updated, isClosed: true }, [...ends, ...late, ...last]]
}

function finishBlock(
  { index, block, input }: OpenBlock,
  details: readonly Json[],
  dialect: Dialect,
): BlockEnded {
  if (block.type === 'tool_use') return { type: 'block-ended', index, ...finishCall(block, input) }
  if (block.type !== 'thinking') return { type: 'block-ended', index, block }
  return { type: 'block-ended', index, block: withReasoningOrigin(block, details, dialect) }
}

function finishCall(block: Block, text: string): DecodedBlock {
  if (block.origin === CUSTOM_TOOL_ORIGIN) return { block: { ...block, input: { input: text } } }
  return withCallInput(keepNonObjectArguments(block, text), text)
}

function withReasoningOrigin(block: Block, list: readonly Json[], { name, details }: Dialect): Block {
  const item = details === null || list.length === 0 ? {} : { item: { [details]: list } }
  return { ...block, origin: { vendor: name, ...item } }
}

function emit(state: ChatStream, events: readonly ReplyEvent[]): ChatStep {
  return [{ ...state, assembly: events.reduce(addReplyEvent, state.assembly) }, events]
}

function fail(state: ChatStream, failure: ModelFailure): ChatStep {
  if (state.isClosed) return [state, []]
  const reply = toReply(state.assembly)
  return [{ ...state, isClosed: true }, [{ type: 'reply-failed', failure, reply }]]
}

/** Decodes a completion that is one JSON body, as if it were a stream of one chunk. */
export function decodeChatBody(text: string, dialect: Dialect): DecodeBodyResult {
  const body = parseJson(text)
  const [choice] = isJsonObject(body) && Array.isArray(body.choices) ? body.choices.filter(isJsonObject) : []
  if (!isJsonObject(body) || !isJsonObject(choice?.message))
    return { ok: false, failure: createFailure('bad-reply', 'The response is no completion') }
  const { tool_calls: calls, ...message } = choice.message
  const numbered = Array.isArray(calls)
    ? calls.filter(isJsonObject).map((call, index): JsonObject => ({ ...call, index }))
    : []
  const chunk = { ...body, choices: [{ ...choice, delta: { ...message, tool_calls: numbered } }] }
  const [read] = decodeFrame(INITIAL, { data: JSON.stringify(chunk) }, dialect)
  const last = end(read, dialect)[1].at(-1)
  if (last?.type === 'reply-ended') return { ok: true, reply: last.reply }
  return { ok: false, failure: createFailure('bad-reply', 'The response is no completion') }
}
