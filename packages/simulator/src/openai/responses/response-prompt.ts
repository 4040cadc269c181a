/**
 * Converts the items of a Responses request to units for the prompt cache and to messages for a script. Also decrypts
 * reasoning and compaction items, so that items of another account are refused.
 */
import { type Block, isObject, type JsonObject, type MessageParam } from '../../protocol/messages-request.ts'
import {
  CALL_OVERHEAD_TOKENS,
  countTextTokens,
  countToolDefinitionTokens,
  TOKENS_PER_DOCUMENT,
  TOKENS_PER_IMAGE,
  TURN_OVERHEAD_TOKENS,
} from '../../protocol/tokenizer.ts'
import type { BreakpointTtl, PromptUnit } from '../cache/prompt-units.ts'
import { type OpenaiResult, toOpenaiRefusal } from '../openai-error.ts'
import type { JsonFields } from '../openai-shape.ts'
import { createToolView, createViewBuilder, type ScriptView, type ViewBuilder } from '../script-view.ts'
import { type ItemWithPath, readItemType } from '../validation/responses-rules.ts'
import type { ResponsesBody } from '../validation/responses-shape.ts'
import { createUnreadableError, type ItemSealer } from './sealed-items.ts'

interface ResponsePrompt {
  readonly units: readonly PromptUnit[]
  readonly view: ScriptView
  /** Number of units that are tools. */
  readonly tools: number
}

interface PromptInput {
  readonly body: ResponsesBody
  readonly items: readonly ItemWithPath[]
  readonly sealer: ItemSealer
  readonly organization: string
}

/** Builds the prompt of a request. Fails if an encrypted item cannot be decrypted. */
export function buildResponsePrompt(input: PromptInput): OpenaiResult<{ prompt: ResponsePrompt }> {
  const { body, items, sealer, organization } = input
  const declared = [...(body.tools ?? []), ...items.flatMap(({ item }) => listAdditionalTools(item))]
  const tools = (body.tools ?? []).map((tool, index) => ({
    path: `tools[${index}]`,
    text: JSON.stringify(tool),
    tokens: countToolDefinitionTokens(tool),
  }))
  const units: PromptUnit[] = [...tools]
  const view = createViewBuilder()
  if (typeof body.instructions === 'string' && body.instructions !== '') {
    units.push(textUnit('instructions', `instructions ${body.instructions}`, body.instructions))
    view.addSystem(body.instructions)
  }
  for (const placed of items) {
    const added = addItem(placed, { units, view, open: (text) => sealer.open(text, organization) })
    if (!added.ok) return added
  }
  return { ok: true, prompt: { units, tools: tools.length, view: view.finish(createToolView(declared)) } }
}

function listAdditionalTools(item: JsonFields): readonly JsonFields[] {
  return item.type === 'additional_tools' && Array.isArray(item.tools) ? item.tools.filter(isObject) : []
}

interface PromptTarget {
  readonly units: PromptUnit[]
  readonly view: ViewBuilder
  open(text: string): { readonly text: string; readonly tokens: number } | null
}

function textUnit(path: string, text: string, counted: string, extra = 0): PromptUnit {
  return { path, text, tokens: extra + countTextTokens(counted) }
}

function addItem({ item, path }: ItemWithPath, target: PromptTarget): OpenaiResult<object> {
  const { units, view } = target
  const type = readItemType(item)
  switch (type) {
    case 'message':
      addMessage(item, path, target)
      return { ok: true }
    case 'function_call':
    case 'custom_tool_call': {
      const text = String(type === 'function_call' ? item.arguments : item.input)
      const head = `${type} ${String(item.call_id)} ${String(item.name)} `
      const name = countTextTokens(String(item.name))
      units.push(textUnit(path, head + text, text, CALL_OVERHEAD_TOKENS + name))
      view.addCall(String(item.call_id), String(item.name), readCallInput(type, text))
      return { ok: true }
    }
    case 'function_call_output':
    case 'custom_tool_call_output': {
      const parts = toParts(item.output)
      units.push(
        ...listPartUnits(parts, `${path}.output`, {
          head: `${type} ${String(item.call_id)} `,
          extra: CALL_OVERHEAD_TOKENS,
        }),
      )
      view.addResult(String(item.call_id), parts.map(toBlock))
      return { ok: true }
    }
    case 'reasoning':
    case 'compaction':
      return addSealed(item, path, target)
    case 'compaction_trigger':
      return { ok: true }
    default:
      units.push(textUnit(path, JSON.stringify(item), JSON.stringify(item)))
      return { ok: true }
  }
}

function readCallInput(type: string, text: string): JsonObject {
  if (type === 'custom_tool_call') return { input: text }
  try {
    const value: unknown = JSON.parse(text)
    // The cast is safe because the value was parsed from JSON.
    return isObject(value) ? (value as JsonObject) : {}
  } catch {
    return {}
  }
}

function addSealed(
  item: JsonFields,
  path: string,
  { units, view, open }: PromptTarget,
): OpenaiResult<object> {
  const { encrypted_content: sealed } = item
  if (typeof sealed !== 'string') return { ok: true }
  const content = open(sealed)
  if (content === null) return toOpenaiRefusal(createUnreadableError(sealed))
  units.push({ path, text: `${String(item.type)} ${sealed}`, tokens: content.tokens })
  if (item.type === 'reasoning') view.addBlock('assistant', { type: 'thinking', thinking: content.text })
  else view.addBlock('assistant', { type: 'compaction', content: content.text })
  return { ok: true }
}

function addMessage(item: JsonFields, path: string, { units, view }: PromptTarget): void {
  const role = String(item.role)
  const parts = toParts(item.content)
  units.push(...listPartUnits(parts, `${path}.content`, { head: `${role} `, extra: TURN_OVERHEAD_TOKENS }))
  view.addMessage(role as MessageParam['role'] | 'developer', parts.map(toBlock))
}

type ContentPart = JsonFields

function toParts(content: unknown): readonly ContentPart[] {
  if (typeof content === 'string') return [{ type: 'input_text', text: content }]
  return Array.isArray(content) ? content.filter(isObject) : []
}

/** Lists one unit for each content part. `head` and `extra`: text and tokens of the markup before the first part. */
function listPartUnits(
  parts: readonly ContentPart[],
  path: string,
  { head, extra }: { readonly head: string; readonly extra: number },
): readonly PromptUnit[] {
  if (parts.length === 0) return [{ path, text: head, tokens: extra }]
  return parts.map((part, index) => {
    const { prompt_cache_breakpoint: mark, annotations: _notes, logprobs: _probabilities, ...content } = part
    // The same text gives the same unit, whether it is sent as a string or as a part of either type.
    const text = typeof content.text === 'string' ? `text ${content.text}` : JSON.stringify(content)
    return {
      path: `${path}[${index}]`,
      text: index === 0 ? head + text : text,
      tokens: countPartTokens(part) + (index === 0 ? extra : 0),
      ...(isObject(mark) ? { breakpoint: { ttl: readTtl(mark) } } : {}),
    }
  })
}

function readTtl({ ttl }: JsonFields): BreakpointTtl | null {
  return ttl === '30m' || ttl === '12h' ? ttl : null
}

function countPartTokens(part: ContentPart): number {
  if (typeof part.text === 'string') return countTextTokens(part.text)
  if (part.type === 'input_image') return TOKENS_PER_IMAGE
  return part.type === 'input_file' ? TOKENS_PER_DOCUMENT : countTextTokens(JSON.stringify(part))
}

function toBlock(part: ContentPart): Block {
  if (typeof part.text === 'string') return { type: 'text', text: part.text }
  if (part.type === 'refusal') return { type: 'text', text: String(part.refusal) }
  return { ...part, type: part.type === 'input_image' ? 'image' : 'document' }
}
