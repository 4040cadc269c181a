/** Decodes the lines that the made-up provider streams, and its errors. */
import {
  addReplyEvent,
  emptyReplyAssembly,
  type ModelFailure,
  type ModelFailureKind,
  type ReplyAssembly,
  type ReplyEvent,
  toReply,
} from '@tidemark/core/engine/reply'
import type { Block } from '@tidemark/core/log/block'
import {
  findUnstableJsonText,
  formatJsonObject,
  type Json,
  type JsonObject,
  parseJson,
  splitJsonObject,
  withJsonMember,
} from '@tidemark/core/log/json'
import type { ReplyReport, ReplyStop } from '@tidemark/core/log/reply-report'
import { createFailure, type FailedResponse } from '@tidemark/wire/failure/classify-failure'
import type { DecodeBodyResult, ReplyDecoder } from '@tidemark/wire/providers/provider-codec'
import { toSealedBlock } from './talk-request.ts'
import type { Answer, Line, Tally, Trouble } from './words.ts'

interface TalkStream {
  readonly bytes: Uint8Array
  readonly assembly: ReplyAssembly
  /** Number of blocks that have begun. */
  readonly blocks: number
  readonly isClosed: boolean
}

type TalkStep = readonly [TalkStream, readonly ReplyEvent[]]

const INITIAL: TalkStream = {
  bytes: new Uint8Array(),
  assembly: emptyReplyAssembly,
  blocks: 0,
  isClosed: false,
}
const LINE_END = 10

export const talkDecoder: ReplyDecoder<TalkStream> = {
  initial: INITIAL,
  step(state, chunk) {
    const bytes = new Uint8Array([...state.bytes, ...chunk])
    const end = bytes.lastIndexOf(LINE_END) + 1
    const lines = new TextDecoder().decode(bytes.subarray(0, end)).split('\n').slice(0, -1)
    return runSteps({ ...state, bytes: bytes.slice(end) }, lines, readLine)
  },
  finish(state, cause) {
    if (state.isClosed) return []
    const cut = createFailure('network', 'The connection ended before the reply was complete')
    return fail(state, cause ?? cut)[1]
  },
}

/** Decodes an answer that is one body. */
export function decodeTalkBody(text: string): DecodeBodyResult {
  const answer = parseJson(text) as unknown as Answer | undefined
  const lines = Array.isArray(answer?.lines) ? answer.lines : []
  const [, events] = runSteps(INITIAL, lines, applyLine)
  const last = events.at(-1)
  if (last?.type === 'reply-ended') return { ok: true, reply: last.reply }
  return { ok: false, failure: createFailure('bad-reply', 'The response is no answer') }
}

function runSteps<T>(
  state: TalkStream,
  items: readonly T[],
  step: (state: TalkStream, item: T) => TalkStep,
): TalkStep {
  const all: ReplyEvent[] = []
  let next = state
  for (const item of items) {
    const [after, events] = step(next, item)
    next = after
    all.push(...events)
  }
  return [next, all]
}

function readLine(state: TalkStream, text: string): TalkStep {
  const line = parseJson(text)
  if (line === undefined)
    return fail(state, createFailure('bad-reply', 'The stream has a line that is no JSON'))
  return applyLine(state, line as unknown as Line)
}

function applyLine(state: TalkStream, line: Line): TalkStep {
  if (state.isClosed) return [state, []]
  switch (line.is) {
    case 'hello': {
      const message = { id: line.ticket, role: 'assistant' as const, model: line.engine, content: [] }
      return emit(state, [{ type: 'reply-started', message }])
    }
    case 'hush':
      return [state, [{ type: 'reply-alive' }]]
    case 'mused': {
      const { is: _, ...seal } = line
      const block = toSealedBlock(seal)
      return runSteps(state, [block], startBlock)
    }
    case 'says':
      return grow(state, 'text', { kind: 'text', text: line.piece })
    case 'want':
      return startBlock(state, { type: 'tool_use', id: line.ref, name: line.label, input: {} })
    case 'given':
      return grow(state, 'tool_use', { kind: 'input', json: line.piece })
    case 'bye':
      return end(state, line)
    case 'trouble': {
      const { is: _, ...trouble } = line
      return fail(state, toTalkFailure({ body: JSON.stringify({ trouble }) }))
    }
    default:
      return emit(state, [{ type: 'reply-other', name: 'line', text: JSON.stringify(line) }])
  }
}

function startBlock(state: TalkStream, block: Block): TalkStep {
  const [closed, ends] = endBlocks(state)
  const [opened, begun] = emit({ ...closed, blocks: closed.blocks + 1 }, [
    { type: 'block-started', index: closed.blocks, block },
  ])
  return [opened, [...ends, ...begun]]
}

type Growth = Extract<ReplyEvent, { readonly type: 'block-grew' }>['delta']

function grow(state: TalkStream, type: string, delta: Growth): TalkStep {
  const [open] = state.assembly.open.values()
  const [ready, begun] =
    open?.block.type === type ? [state, []] : startBlock(state, { type: 'text', text: '' })
  const index = ready.blocks - 1
  const [grown, events] = emit(ready, [{ type: 'block-grew', index, delta }])
  return [grown, [...begun, ...events]]
}

/** A block ends where the next one begins. */
function endBlocks(state: TalkStream): TalkStep {
  const ends = [...state.assembly.open.values()].map(({ index, block, input }): ReplyEvent => {
    const ended = block.type === 'tool_use' ? toCall(block, input) : { block }
    return { type: 'block-ended', index, ...ended }
  })
  return emit(state, ends)
}

function toCall(call: Block, given: string): { block: Block; raw?: string; cutInput?: string } {
  const input: Json | undefined = given === '' ? {} : parseJson(given)
  if (input === undefined) return { block: call, cutInput: given }
  const block = { ...call, input }
  const members = withJsonMember(splitJsonObject(JSON.stringify(block)), 'input', given === '' ? '{}' : given)
  const raw = findUnstableJsonText(formatJsonObject(members))
  return raw === undefined ? { block } : { block, raw }
}

function end(state: TalkStream, { because, tally }: Extract<Line, { readonly is: 'bye' }>): TalkStep {
  if (state.assembly.message === null)
    return fail(state, createFailure('bad-reply', 'The stream ended a reply that it never began'))
  const [closed, ends] = endBlocks(state)
  const usage = { ...tally } as unknown as JsonObject
  const [told, late] = emit(closed, [
    { type: 'reply-updated', fields: { because }, usage, report: readTally(because, tally) },
  ])
  const reply = toReply(told.assembly)
  const last: readonly ReplyEvent[] = reply === null ? [] : [{ type: 'reply-ended', reply }]
  return [{ ...told, isClosed: true }, [...ends, ...late, ...last]]
}

const STOPS: Readonly<Record<string, ReplyStop>> = {
  content: 'done',
  waiting: 'tools',
  ceiling: 'cut',
  brimful: 'window',
  unwilling: 'refused',
}

function readTally(because: string, { heard, recalled, spoken }: Tally): ReplyReport {
  return {
    usage: {
      input: heard - recalled,
      read: recalled,
      writes: { short: 0, long: 0 },
      output: spoken,
      areWritesUnknown: true,
    },
    stop: STOPS[because] ?? 'other',
  }
}

function emit(state: TalkStream, events: readonly ReplyEvent[]): TalkStep {
  return [{ ...state, assembly: events.reduce(addReplyEvent, state.assembly) }, events]
}

function fail(state: TalkStream, failure: ModelFailure): TalkStep {
  if (state.isClosed) return [state, []]
  const reply = toReply(state.assembly)
  return [{ ...state, isClosed: true }, [{ type: 'reply-failed', failure, reply }]]
}

const FAILURES: Readonly<Record<string, ModelFailureKind>> = {
  brimful: 'overflow',
  'broken-seal': 'thinking-binding',
  muddle: 'invalid-request',
  stranger: 'auth',
  breathless: 'overloaded',
}

export function toTalkFailure({ status, body }: FailedResponse): ModelFailure {
  const { trouble } = (parseJson(body) ?? {}) as { readonly trouble?: Trouble }
  const { name = '', words = body, asked, room } = trouble ?? {}
  const gap =
    asked === undefined || room === undefined
      ? {}
      : { gap: { actual: asked, limit: room, over: asked - room } }
  return {
    ...createFailure(
      FAILURES[name] ?? (status !== undefined && status < 500 ? 'invalid-request' : 'server'),
      words,
    ),
    ...(status === undefined ? {} : { status }),
    errorType: name,
    ...gap,
  }
}
