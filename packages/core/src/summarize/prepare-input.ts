/** The request of a call of its own: a short system prompt, the stripped conversation, the task as its last words. */
import { type Block, blocksOf, isToolResult, isToolUse } from '../conversation/block.ts'
import type { JsonObject } from '../conversation/json.ts'
import { List } from '../conversation/list.ts'
import type { FlatMessage } from '../view/draft.ts'
import type { Entry } from '../view/entry.ts'
import { flatMessagesOf, flatten } from '../view/flatten.ts'
import type { ApiMessage, Payload } from '../view/payload.ts'
import { emptyView } from '../view/view.ts'
import { metaRecord, withMarker } from './head-drop.ts'
import { stripInput } from './strip-input.ts'
import { answerSettings, type Summariser } from './summariser.ts'

export interface InputParts {
  /** What the summariser is shown, in the order of the view. */
  readonly entries: readonly Entry[]
  readonly prompt: string
  readonly summariser: Summariser
  /** The tools of the conversation: one stays declared while calls are among the messages. */
  readonly tools: readonly JsonObject[]
  /** Stands in front where the model would speak first; null where nothing went before. */
  readonly marker?: string | null
  /** Calls and results as text, without any tool. */
  readonly asText?: boolean
  /** Tokens that the answer may take, where not as many as usual. */
  readonly outputTokens?: number
}

export interface DirectInput {
  readonly payload: Payload
  /** Exact texts beside the messages, where a block does not survive parse and stringify. */
  readonly raw: readonly (ReadonlyMap<number, string> | undefined)[]
}

export const SUMMARISER_SYSTEM_PROMPT =
  'You write summaries of conversations between a person and an assistant that works with tools. You write text only.'

export function prepareInput(parts: InputParts): DirectInput {
  const { summariser, prompt, tools, asText = false, outputTokens, marker = null } = parts
  const stripped = stripInput(parts.entries, { asText })
  const shown = marker === null ? stripped : withMarker(stripped, marker)
  const task: Entry = { record: metaRecord('summary-task', prompt), index: -1 }
  const all = flatMessagesOf(flatten({ ...emptyView(), entries: List.of([...shown, task]) }))
  const flat = summariser.profile.roles.consecutive === 'refused' ? oneByOne(all) : all
  const messages = flat.map(({ message }) => message)
  const payload: Payload = {
    model: summariser.model,
    ...answerSettings(summariser, outputTokens),
    system: SUMMARISER_SYSTEM_PROMPT,
    ...toolsFor(messages, tools),
    messages,
  }
  return { payload, raw: flat.map(({ raw }) => raw) }
}

/** Messages of one role in a row as one. */
function oneByOne(messages: readonly FlatMessage[]): readonly FlatMessage[] {
  const joined: FlatMessage[] = []
  for (const message of messages) {
    const last = joined.at(-1)
    if (last?.message.role === message.message.role) joined.splice(-1, 1, together(last, message))
    else joined.push(message)
  }
  return joined
}

function together(one: FlatMessage, other: FlatMessage): FlatMessage {
  const blocks = blocksOf(one.message.content)
  const behind = [...(other.raw ?? [])].map(([index, text]) => [blocks.length + index, text] as const)
  return {
    message: { ...one.message, content: [...blocks, ...blocksOf(other.message.content)] },
    origins: [...one.origins, ...other.origins],
    raw: new Map([...(one.raw ?? []), ...behind]),
  }
}

/** One is enough, and as few as can be keep the model from calling any. */
function toolsFor(messages: readonly ApiMessage[], tools: readonly JsonObject[]): Pick<Payload, 'tools'> {
  const blocks = messages.flatMap((message) => blocksOf(message.content))
  if (!blocks.some((block) => isToolUse(block) || isToolResult(block))) return {}
  const used = new Set(blocks.flatMap((block: Block) => (isToolUse(block) ? [block.name] : [])))
  const plain = tools.filter((tool) => tool.input_schema !== undefined)
  return { tools: [plain.find((tool) => used.has(String(tool.name))) ?? plain[0] ?? NO_TOOL].map(unmarked) }
}

function unmarked({ cache_control: _, defer_loading: __, ...tool }: JsonObject): JsonObject {
  return tool
}

const NO_TOOL: JsonObject = {
  name: 'unavailable',
  description: 'No tool can be called here.',
  input_schema: { type: 'object' },
}
