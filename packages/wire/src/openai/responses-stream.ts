/**
 * Decodes the event stream of the Responses API into reply events, as a pure function `(state, frame) → [state,
 * events]`. A block starts when its item begins and ends with the complete item. Every reply ends with exactly one
 * `reply-ended` or `reply-failed`.
 */
import {
  addReplyEvent,
  type BlockDelta,
  emptyReplyAssembly,
  type ModelFailure,
  type ReplyAssembly,
  type ReplyEvent,
  toReply,
} from '@tidemark/core/engine/reply'
import type { Block } from '@tidemark/core/log/block'
import { isJsonObject, type JsonObject, parseJson } from '@tidemark/core/log/json'
import { createFailure } from '../failure/classify-failure.ts'
import { decodeSseBytes, finishSse, initialSseState, type SseFrame, type SseState } from '../http/sse.ts'
import type { DecodeBodyResult, ReplyDecoder } from '../providers/provider-codec.ts'
import { readOpenaiFailure } from './openai-errors.ts'
import { type DecodedBlock, decodeOutputItem } from './output-blocks.ts'
import { readResponsesReport } from './reply-report.ts'

interface ResponseStream {
  readonly sse: SseState
  readonly assembly: ReplyAssembly
  /** Index of the next block of the reply. */
  readonly next: number
  /** Index of the block for a content part, keyed by the item's index in the output and the part's index in the item. */
  readonly blocks: ReadonlyMap<string, number>
  /** True if the provider stores the response. */
  readonly isStored: boolean
  readonly isClosed: boolean
}

type StreamStep = readonly [ResponseStream, readonly ReplyEvent[]]

const INITIAL: ResponseStream = {
  sse: initialSseState,
  assembly: emptyReplyAssembly,
  next: 0,
  blocks: new Map(),
  isStored: false,
  isClosed: false,
}

/** `account`: name of the account to which encrypted items are bound. */
export function createResponsesDecoder(account?: string): ReplyDecoder<ResponseStream> {
  return {
    initial: INITIAL,
    step(state, chunk) {
      const [sse, frames] = decodeSseBytes(state.sse, chunk)
      return decodeFrames({ ...state, sse }, frames, account)
    },
    finish(state, cause) {
      if (cause !== undefined) return fail(state, cause)[1]
      const { rest } = finishSse(state.sse)
      const [last, events] = rest === null ? [state, []] : decodeFrames(state, [rest], account)
      const cut = createFailure('network', 'The connection ended before the reply was complete')
      return [...events, ...fail(last, cut)[1]]
    },
  }
}

function decodeFrames(state: ResponseStream, frames: readonly SseFrame[], account?: string): StreamStep {
  const all: ReplyEvent[] = []
  let next = state
  for (const frame of frames) {
    const [after, events] = decodeFrame(next, frame, account)
    next = after
    all.push(...events)
  }
  return [next, all]
}

function decodeFrame(state: ResponseStream, frame: SseFrame, account?: string): StreamStep {
  if (state.isClosed || frame.data === '' || frame.data === '[DONE]') return [state, []]
  const data = parseJson(frame.data)
  if (!isJsonObject(data))
    return fail(state, createFailure('bad-reply', 'The stream has an event that is no JSON'))
  const { type, response } = data
  switch (type) {
    case 'response.created':
      return isJsonObject(response) ? start(state, response) : [state, []]
    case 'response.output_item.added':
      return startItem(state, data)
    case 'response.content_part.added':
      return startPart(state, data)
    case 'response.output_item.done':
      return endItem(state, data, account)
    case 'response.completed':
    case 'response.incomplete':
      return isJsonObject(response) ? end(state, response) : [state, []]
    case 'response.failed':
    case 'error':
      return fail(state, readOpenaiFailure({ body: frame.data }))
    default:
      return grow(state, data)
  }
}

function start(state: ResponseStream, response: JsonObject): StreamStep {
  if (state.assembly.message !== null) return [state, []]
  const { id, model } = response
  if (typeof id !== 'string' || typeof model !== 'string')
    return fail(state, createFailure('bad-reply', 'A response without id or model'))
  const begun = { ...state, isStored: response.store !== false }
  return emit(begun, [{ type: 'reply-started', message: { id, role: 'assistant', model, content: [] } }])
}

/** Starts the block of an item whose content is streamed. Other items are read when they are complete. */
function startItem(state: ResponseStream, { output_index: at, item }: JsonObject): StreamStep {
  if (!isJsonObject(item)) return [state, []]
  const { type, call_id: id, name } = item
  if (type === 'reasoning') return startBlock(state, `${at}`, { type: 'thinking', thinking: '' })
  if (type !== 'function_call') return [state, []]
  return startBlock(state, `${at}`, { type: 'tool_use', id: String(id), name: String(name), input: {} })
}

function startPart(state: ResponseStream, { output_index: at, content_index: part }: JsonObject): StreamStep {
  // Content parts of a reasoning item belong to the block of that item.
  if (state.blocks.has(`${at}`)) return [state, []]
  return startBlock(state, `${at}.${part}`, { type: 'text', text: '' })
}

function startBlock(state: ResponseStream, key: string, block: Block): StreamStep {
  const { next: index } = state
  const opened = { ...state, next: index + 1, blocks: new Map(state.blocks).set(key, index) }
  return emit(opened, [{ type: 'block-started', index, block }])
}

function grow(state: ResponseStream, data: JsonObject): StreamStep {
  const { type, output_index: at, content_index: part, delta } = data
  if (typeof delta !== 'string') return [state, []]
  const found = readGrowth(String(type), delta)
  if (found === null) return [state, []]
  const index = state.blocks.get(found.kind === 'text' ? `${at}.${part}` : `${at}`)
  return index === undefined ? [state, []] : emit(state, [{ type: 'block-grew', index, delta: found }])
}

function readGrowth(type: string, text: string): BlockDelta | null {
  switch (type) {
    case 'response.output_text.delta':
    case 'response.refusal.delta':
      return { kind: 'text', text }
    case 'response.reasoning_summary_text.delta':
    case 'response.reasoning_text.delta':
      return { kind: 'thinking', text }
    case 'response.function_call_arguments.delta':
      return { kind: 'input', json: text }
    default:
      return null
  }
}

function endItem(
  state: ResponseStream,
  { output_index: at, item }: JsonObject,
  account?: string,
): StreamStep {
  if (!isJsonObject(item)) return [state, []]
  let next = state
  const all: ReplyEvent[] = []
  const source = { account, isStored: state.isStored }
  for (const [part, decoded] of decodeOutputItem(item, source).entries()) {
    const [after, events] = endBlock(next, item.type === 'message' ? `${at}.${part}` : `${at}`, decoded)
    next = after
    all.push(...events)
  }
  return [next, all]
}

function endBlock(state: ResponseStream, key: string, decoded: DecodedBlock): StreamStep {
  const known = state.blocks.get(key)
  const [opened, events] = known === undefined ? startBlock(state, key, decoded.block) : [state, []]
  const index = opened.blocks.get(key) ?? 0
  const [ended, more] = emit(opened, [{ type: 'block-ended', index, ...decoded }])
  return [ended, [...events, ...more]]
}

function end(state: ResponseStream, response: JsonObject): StreamStep {
  const [begun, first] = start(state, response)
  if (begun.isClosed) return [begun, first]
  const [updated, late] = emit(begun, [toFinalUpdate(response)])
  const reply = toReply(updated.assembly)
  const ended: readonly ReplyEvent[] = reply === null ? [] : [{ type: 'reply-ended', reply }]
  return [{ ...updated, isClosed: true }, [...first, ...late, ...ended]]
}

function toFinalUpdate(response: JsonObject): ReplyEvent {
  const { usage, status, prompt_cache_diagnostics: report } = response
  const fields = {
    status: status ?? null,
    ...(report === undefined ? {} : { prompt_cache_diagnostics: report }),
  }
  return {
    type: 'reply-updated',
    fields,
    ...(isJsonObject(usage) ? { usage } : {}),
    report: readResponsesReport(response),
  }
}

function emit(state: ResponseStream, events: readonly ReplyEvent[]): StreamStep {
  return [{ ...state, assembly: events.reduce(addReplyEvent, state.assembly) }, events]
}

function fail(state: ResponseStream, failure: ModelFailure): StreamStep {
  if (state.isClosed) return [state, []]
  const reply = toReply(state.assembly)
  return [{ ...state, isClosed: true }, [{ type: 'reply-failed', failure, reply }]]
}

/** Decodes a response that is one JSON body. */
export function decodeResponsesBody(text: string, account?: string): DecodeBodyResult {
  const body = parseJson(text)
  if (!isJsonObject(body) || !Array.isArray(body.output))
    return { ok: false, failure: createFailure('bad-reply', 'The response is no response object') }
  if (body.status === 'failed') return { ok: false, failure: readOpenaiFailure({ body: text }) }
  let [state] = start(INITIAL, body)
  for (const [at, item] of body.output.entries())
    [state] = endItem(state, { output_index: at, item }, account)
  const [, events] = end(state, body)
  const last = events.at(-1)
  if (last?.type === 'reply-ended') return { ok: true, reply: last.reply }
  return { ok: false, failure: createFailure('bad-reply', 'A response without id or model') }
}
