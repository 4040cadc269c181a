/**
 * Compares the request that was sent with the one that a client made: prompts, tools, parameters and messages. The engine
 * may add cache markers, diagnostics, betas, and announcements of what changed in system prompt and tools.
 */
import { isDeepStrictEqual } from 'node:util'
import type { ClientBlock, ClientMessage } from './client-agent.ts'

/** The body of a request for messages. */
export interface RequestBody {
  readonly model: string
  readonly messages: readonly ClientMessage[]
  readonly system?: string | readonly ClientBlock[]
  readonly tools?: readonly ClientBlock[]
  readonly [field: string]: unknown
}

export interface CompareOptions {
  /** Signatures of the thinking that the client was given: only this can it have left out. */
  readonly received: ReadonlySet<string>
  /** True if the context was cleared or compacted, so that the messages are others. */
  readonly isRewritten: boolean
}

/** Returns what differs from the client's request without its asking, one sentence each; empty if nothing. */
export function findRequestChanges(
  given: RequestBody,
  sent: RequestBody,
  options: CompareOptions,
): readonly string[] {
  return [
    ...findParameterChanges(given, sent),
    ...findToolChanges(given, sent),
    ...findPromptChanges(given, sent),
    ...findReturnedThinking(given, sent, options.received),
    ...(options.isRewritten ? [] : findMessageChanges(given, sent)),
  ]
}

/** Fields that are compared by themselves, or that the engine may set. */
const OWN_FIELDS: ReadonlySet<string> = new Set([
  'messages',
  'system',
  'tools',
  'cache_control',
  'diagnostics',
])

function findParameterChanges(given: RequestBody, sent: RequestBody): readonly string[] {
  const names = new Set([...Object.keys(given), ...Object.keys(sent)])
  return [...names]
    .filter((name) => !OWN_FIELDS.has(name) && !isDeepStrictEqual(given[name], sent[name]))
    .map((name) => `another ${name}: ${JSON.stringify(sent[name])}`)
}

/** Compares the tools that the model can call: those declared, with later additions and removals. */
function findToolChanges(given: RequestBody, sent: RequestBody): readonly string[] {
  const wanted = new Map((given.tools ?? []).map((tool) => [toName(tool), withoutMarkers(tool)]))
  const offered = new Map((sent.tools ?? []).map((tool) => [toName(tool), withoutMarkers(tool)]))
  const declared = new Map(offered)
  for (const { role, content } of sent.messages)
    for (const block of role === 'system' && typeof content !== 'string' ? content : []) {
      const tool = Object(block.tool) as ClientBlock & { readonly definition?: ClientBlock }
      const name = toName(tool.definition ?? tool)
      if (block.type === 'tool_removal') offered.delete(name)
      if (block.type === 'tool_addition') offered.set(name, tool.definition ?? declared.get(name) ?? tool)
    }
  const names = new Set([...wanted.keys(), ...offered.keys()])
  return [...names].flatMap((name) => {
    if (isDeepStrictEqual(wanted.get(name), offered.get(name))) return []
    if (!wanted.has(name)) return [`the tool ${name}, which the host does not offer`]
    return [offered.has(name) ? `the tool ${name} defined otherwise` : `no tool ${name}`]
  })
}

function toName({ name, type }: ClientBlock): string {
  return String(name ?? type)
}

/** Each line of the client's system prompt must be in the one that is sent, or be announced in a message. */
function findPromptChanges(given: RequestBody, sent: RequestBody): readonly string[] {
  const wanted = toSystemText(given)
  const shown = toSystemText(sent)
  if (wanted === shown) return []
  const told = sent.messages.flatMap(({ content }) => toBlocks(content).map(({ text }) => String(text ?? '')))
  const texts = [shown, ...told].join('\n')
  return wanted
    .split('\n')
    .filter((line) => !texts.includes(line))
    .map((line) => `a system prompt without ${JSON.stringify(line.slice(0, 60))}`)
}

function toSystemText({ system = '' }: RequestBody): string {
  return toBlocks(system)
    .map(({ text }) => String(text))
    .join('\n')
}

/** Thinking that the client was given and left out may come back only where the provider demands it. */
function findReturnedThinking(
  given: RequestBody,
  sent: RequestBody,
  received: ReadonlySet<string>,
): readonly string[] {
  if (Object(given.thinking).type === 'enabled') return []
  const kept = new Set(given.messages.flatMap(readThinkingSignatures))
  const returned = sent.messages
    .flatMap(readThinkingSignatures)
    .filter((signature) => received.has(signature) && !kept.has(signature))
  return returned.length === 0 ? [] : [`the thinking of ${returned.length} blocks that the host left out`]
}

export function readThinkingSignatures({ content }: Pick<ClientMessage, 'content'>): readonly string[] {
  return toBlocks(content ?? []).flatMap(({ type, signature, data }) =>
    type === 'thinking' || type === 'redacted_thinking' ? [String(signature ?? data)] : [],
  )
}

function findMessageChanges(given: RequestBody, sent: RequestBody): readonly string[] {
  const wanted = toMeaning(given.messages, () => true)
  const texts = new Set(given.messages.flatMap(({ content }) => toBlocks(content).map(({ text }) => text)))
  const isHosts = ({ type, text }: ClientBlock): boolean =>
    type !== 'text' || texts.has(text) || !/^<system-reminder/.test(String(text))
  const shown = toMeaning(sent.messages, isHosts)
  const at = wanted.findIndex((message, index) => !isDeepStrictEqual(message, shown[index]))
  if (at === -1 && wanted.length === shown.length) return []
  const [one = '', other = ''] = [wanted, shown].map((list) =>
    String(JSON.stringify(list[at === -1 ? wanted.length : at])),
  )
  let same = 0
  while (same < one.length && one[same] === other[same]) same += 1
  const [start, end] = [Math.max(0, same - 100), same + 200]
  return [`message ${at}: ${other.slice(start, end)} instead of ${one.slice(start, end)}`]
}

/**
 * What a list says, however it is cut into messages: without thinking, tool changes and blank text, with consecutive
 * user messages joined, and results first and by their call.
 */
function toMeaning(
  messages: readonly ClientMessage[],
  isHosts: (block: ClientBlock) => boolean,
): readonly unknown[] {
  const joined: { role: string; fields: object; blocks: ClientBlock[] }[] = []
  for (const { role, content, ...fields } of messages) {
    const blocks = toBlocks(content).filter((block) => !isLeftAside(block) && isHosts(block))
    if (blocks.length === 0) continue
    const last = joined.at(-1)
    if (last?.role === role && role === 'user') last.blocks.push(...blocks)
    else joined.push({ role, fields, blocks })
  }
  const isResult = ({ type }: ClientBlock): boolean => type === 'tool_result'
  const toKey = ({ tool_use_id: id }: ClientBlock): string => String(id)
  return joined.map(({ role, fields, blocks }) => ({
    role,
    fields,
    blocks: [
      ...blocks.filter(isResult).toSorted((one, other) => (toKey(one) < toKey(other) ? -1 : 1)),
      ...blocks.filter((block) => !isResult(block)),
    ].map(withoutMarkers),
  }))
}

const LEFT_ASIDE = new Set(['thinking', 'redacted_thinking', 'tool_addition', 'tool_removal'])

function isLeftAside({ type, text }: ClientBlock): boolean {
  return LEFT_ASIDE.has(type) || (type === 'text' && String(text).trim() === '')
}

function toBlocks(content: ClientMessage['content']): readonly ClientBlock[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : content
}

function withoutMarkers({ cache_control: _, ...block }: ClientBlock): ClientBlock {
  return block as ClientBlock
}
