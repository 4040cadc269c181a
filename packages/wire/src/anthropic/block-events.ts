/** Frames about one content block: its start, its deltas, its end. */
import {
  type BlockDelta,
  isBlock,
  isObject,
  type JsonObject,
  memberOf,
  type ReplyEvent,
  rawUnlessSurvives,
  survives,
} from '@tidemark/core'
import { given } from '../given.ts'
import { finishBlock } from './finish-block.ts'
import { emit, failBadly, type Step, type StreamState } from './stream-state.ts'

export function takeBlockStart(state: StreamState, data: JsonObject, text: string): Step {
  const { index, content_block: block } = data
  if (typeof index !== 'number' || !isBlock(block)) return failBadly(state, 'a block without index or type')
  if (state.assembly.message === null) return failBadly(state, 'a block before the message')
  if (state.assembly.open.has(index)) return failBadly(state, `block ${index} began twice`)
  const raw = rawMember(text, 'content_block')
  return emit(state, [{ type: 'block-started', index, block, ...given({ raw }) }])
}

export function takeBlockDelta(state: StreamState, data: JsonObject, text: string): Step {
  const { index, delta } = data
  if (typeof index !== 'number' || !isObject(delta))
    return failBadly(state, 'a delta without index or content')
  if (!state.assembly.open.has(index))
    return failBadly(state, `a delta for block ${index}, which is not open`)
  return emit(state, [{ type: 'block-grew', index, delta: readDelta(delta, text) }])
}

export function takeBlockStop(state: StreamState, data: JsonObject): Step {
  const open = typeof data.index === 'number' ? state.assembly.open.get(data.index) : undefined
  if (open === undefined) return failBadly(state, `the end of block ${data.index}, which is not open`)
  return emit(state, [finishBlock(open)])
}

/** The ends of blocks that are still open: some servers leave them out. */
export function blockEnds({ assembly }: StreamState): readonly ReplyEvent[] {
  return [...assembly.open.values()].toSorted((a, b) => a.index - b.index).map(finishBlock)
}

type ReadDelta = (delta: JsonObject, text: string) => BlockDelta | null

const DELTAS: ReadonlyMap<unknown, ReadDelta> = new Map<string, ReadDelta>([
  ['text_delta', ({ text }) => (typeof text === 'string' ? { kind: 'text', text } : null)],
  ['thinking_delta', readThinking],
  [
    'signature_delta',
    ({ signature }) => (typeof signature === 'string' ? { kind: 'signature', signature } : null),
  ],
  [
    'input_json_delta',
    ({ partial_json: json }) => (typeof json === 'string' ? { kind: 'input', json } : null),
  ],
  ['citations_delta', readCitation],
  ['compaction_delta', ({ type: _, ...fields }) => ({ kind: 'fields', fields })],
])

function readDelta(delta: JsonObject, text: string): BlockDelta {
  return DELTAS.get(delta.type)?.(delta, text) ?? { kind: 'other', value: delta }
}

function readThinking({ thinking: text, estimated_tokens: estimate }: JsonObject): BlockDelta | null {
  if (typeof text !== 'string') return null
  return { kind: 'thinking', text, ...(typeof estimate === 'number' ? { estimatedTokens: estimate } : {}) }
}

function readCitation({ citation }: JsonObject, text: string): BlockDelta | null {
  if (citation === undefined) return null
  const delta = rawMember(text, 'delta')
  const raw = delta === undefined ? undefined : rawMember(delta, 'citation')
  return { kind: 'citation', citation, ...given({ raw }) }
}

/** The text of a member of `text`, only where parse and stringify would change it. */
function rawMember(text: string, key: string): string | undefined {
  if (survives(text)) return undefined
  const member = memberOf(text, key)
  return member === undefined ? undefined : rawUnlessSurvives(member)
}
