/** Inputs of a script, with defaults for everything a test does not set. */
import type { Reply, Script } from '@tidemark/simulator'
import type { Block, JsonObject, MessageParam } from '../src/protocol/messages-request.ts'
import type { ScriptContext, ScriptRequest } from '../src/scripts/script.ts'

export interface RequestOverrides extends Partial<Omit<ScriptRequest, 'messages'>> {
  readonly messages?: readonly MessageParam[]
  /** Short for one user message. */
  readonly says?: string
  readonly metadata?: JsonObject
}

export function request({
  says = 'Hello',
  messages,
  metadata,
  ...rest
}: RequestOverrides = {}): ScriptRequest {
  const said = messages ?? [{ role: 'user' as const, content: says }]
  const model = rest.model ?? 'claude-opus-4-8'
  return {
    kind: 'message',
    instructions: null,
    model,
    maxTokens: 4_096,
    system: [],
    tools: [],
    messages: said,
    body: { model, messages: said, ...(metadata === undefined ? {} : { metadata }) },
    headers: {},
    ...rest,
  }
}

export function context(given: Partial<ScriptContext> = {}): ScriptContext {
  return { index: 0, turn: 0, inputTokens: 100, random: () => 0.5, now: 1_800_000_000_000, ...given }
}

/** The text of a reply, without tool calls and thinking. */
export function joinTexts({ blocks }: Reply): string {
  return blocks.map((block) => (block.type === 'text' ? String(block.text) : '')).join('')
}

/** Calls the script once and returns the text of its reply. */
export async function readReplyText(
  script: Script,
  given: RequestOverrides = {},
  about: Partial<ScriptContext> = {},
): Promise<string> {
  return joinTexts(await script(request(given), context(about)))
}

export function user(...content: readonly (string | Block)[]): MessageParam {
  return { role: 'user', content: content.map(blockOf) }
}

export function assistant(...content: readonly (string | Block)[]): MessageParam {
  return { role: 'assistant', content: content.map(blockOf) }
}

function blockOf(given: string | Block): Block {
  return typeof given === 'string' ? { type: 'text', text: given } : given
}

export function call(id: string, name: string, input: JsonObject = {}): Block {
  return { type: 'tool_use', id, name, input }
}

export function result(id: string, content: string, isError = false): Block {
  return { type: 'tool_result', tool_use_id: id, content, ...(isError ? { is_error: true } : {}) }
}
