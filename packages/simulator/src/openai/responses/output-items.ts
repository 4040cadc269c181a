/** Converts the blocks that a script generated to the output items of a response. */

import type { IdGenerator } from '../../protocol/clock-and-ids.ts'
import { type Block, isObject, readTextField } from '../../protocol/messages-request.ts'
import { countTextTokens } from '../../protocol/tokenizer.ts'
import type { JsonFields } from '../openai-shape.ts'
import type { ToolView } from '../script-view.ts'
import type { ItemSealer } from './sealed-items.ts'

export interface GeneratedBlocks {
  readonly blocks: readonly Block[]
  /** Calls whose input was cut off: index of the block, and the incomplete text. */
  readonly cutInputs: readonly { readonly index: number; readonly text: string }[]
  /** True if the output ended before the model was finished. */
  readonly isCut: boolean
  readonly isRefusal: boolean
}

interface OutputContext {
  readonly ids: IdGenerator
  readonly sealer: ItemSealer
  readonly organization: string
  readonly tools: ToolView
  /** True if the request asked for summaries of the reasoning. */
  readonly hasSummaries: boolean
}

/** Creates one output item for each block, with its own id. */
export function createOutputItems(generated: GeneratedBlocks, context: OutputContext): readonly JsonFields[] {
  const { blocks, cutInputs, isCut } = generated
  return blocks.map((block, index) => {
    const isLast = index === blocks.length - 1
    const status = isCut && isLast ? 'incomplete' : 'completed'
    const cut = cutInputs.find((each) => each.index === index)?.text
    return createItem(block, { status, cut, isRefusal: generated.isRefusal }, context)
  })
}

interface ItemState {
  readonly status: 'completed' | 'incomplete'
  readonly cut: string | undefined
  readonly isRefusal: boolean
}

function createItem(block: Block, { status, cut, isRefusal }: ItemState, context: OutputContext): JsonFields {
  const { ids, tools } = context
  switch (block.type) {
    case 'text': {
      const text = readTextField(block, 'text')
      const part = isRefusal
        ? { type: 'refusal', refusal: text }
        : { type: 'output_text', text, annotations: [], logprobs: [] }
      return { id: ids.next('msg'), type: 'message', status, role: 'assistant', content: [part] }
    }
    case 'thinking':
    case 'redacted_thinking':
      return createReasoning(block, context)
    case 'tool_use': {
      const name = readTextField(block, 'name')
      const call = { call_id: readTextField(block, 'id'), name, ...readNamespace(name, tools) }
      if (tools.custom.has(name))
        return {
          id: ids.next('ctc'),
          type: 'custom_tool_call',
          ...call,
          input: cut ?? readFreeText(block.input),
        }
      const text = cut ?? JSON.stringify(block.input ?? {})
      return { id: ids.next('fc'), type: 'function_call', status, ...call, arguments: text }
    }
    default:
      return { id: ids.next('item'), ...block }
  }
}

function readNamespace(name: string, { namespaces }: ToolView): JsonFields {
  const namespace = namespaces.get(name)
  return namespace === undefined ? {} : { namespace }
}

/** Returns the text input of a custom tool: the field `input`, or the script's whole input as JSON. */
function readFreeText(input: unknown): string {
  if (isObject(input) && typeof input.input === 'string') return input.input
  return typeof input === 'string' ? input : JSON.stringify(input ?? {})
}

function createReasoning(
  block: Block,
  { ids, sealer, organization, hasSummaries }: OutputContext,
): JsonFields {
  const text = readTextField(block, block.type === 'thinking' ? 'thinking' : 'data')
  const id = ids.next('rs')
  const sealed = sealer.seal({ kind: 'reasoning', text, tokens: countTextTokens(text) }, organization, id)
  const summary = hasSummaries && text !== '' ? [{ type: 'summary_text', text }] : []
  return { id, type: 'reasoning', summary, encrypted_content: sealed }
}

/** Creates the item of a compaction: a summary that only the provider can read. */
export function createCompactionItem(
  text: string,
  { ids, sealer, organization }: Pick<OutputContext, 'ids' | 'sealer' | 'organization'>,
): JsonFields {
  const id = ids.next('cmp')
  const sealed = sealer.seal({ kind: 'compaction', text, tokens: countTextTokens(text) }, organization, id)
  return { id, type: 'compaction', encrypted_content: sealed }
}
