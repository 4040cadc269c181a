/** Requests generated from a list of numbers: most are nearly valid, many have one error. */

import { createSigner } from '../src/context/signatures.ts'
import { hashText } from '../src/protocol/clock-and-ids.ts'
import type { JsonObject } from '../src/protocol/messages-request.ts'

/** Reads a list of numbers as choices. After the last number every choice is the first. */
export class ChoiceTape {
  readonly #numbers: readonly number[]
  #next = 0

  constructor(numbers: readonly number[]) {
    this.#numbers = numbers
  }

  below(count: number): number {
    const number = this.#numbers[this.#next] ?? 0
    this.#next += 1
    return number % count
  }

  one<T>(...options: readonly T[]): T {
    return options[this.below(options.length)] as T
  }

  /** True once in `odds` times. */
  rarely(odds = 6): boolean {
    return this.below(odds) === odds - 1
  }
}

export interface GeneratedRequest {
  readonly betas: readonly string[]
  readonly version: '2023-06-01' | '2026-10-21'
  readonly body: JsonObject
}

type Block = { [field: string]: unknown; type: string }
type Message = { [field: string]: unknown; role: string; content: string | Block[] }

const MODELS = [
  'claude-opus-5',
  'claude-opus-5-5',
  'claude-fable-5-1',
  'claude-haiku-4-5',
  'claude-opus-4-6',
  'claude-sonnet-5',
]
const BETAS = [
  'fast-mode-2026-02-01',
  'context-management-2025-06-27',
  'compact-2026-01-12',
  'compact-2026-09-04',
  'mid-conversation-system-clear-at-2026-08-21',
  'mid-conversation-output-config-2026-07-01',
  'inline-tools-2026-09-15',
  'thinking-binding-controls-2026-08-01',
]
const TOOLS = [
  { name: 'look', description: 'Looks', input_schema: { type: 'object' } },
  { type: 'web_search_20260318', name: 'web_search' },
]

export function generateRequest(tape: ChoiceTape): GeneratedRequest {
  const version = tape.one('2026-10-21', '2023-06-01')
  const betas = tape.rarely(6) ? BETAS.filter(() => tape.below(2) === 0) : BETAS
  const messages = conversation(tape, betas)
  for (let count = tape.one(0, 0, 0, 0, 1, 2); count > 0; count -= 1) spoil(tape, messages)
  const body = {
    model: tape.one(...MODELS),
    max_tokens: tape.one(2_000, 2_000, 2_000, 2_000, 2_000, 500, 0, 200_000, undefined),
    ...around(tape),
    messages,
  }
  return { betas, version, body: JSON.parse(JSON.stringify(body)) as JsonObject }
}

function text(tape: ChoiceTape): Block {
  const said = tape.rarely(12) ? tape.one('', ' ', 'ends in space ') : tape.one('one', 'two', 'three')
  const citations = tape.rarely(30) ? { citations: tape.one<unknown>([], null) } : {}
  return { type: 'text', text: said, ...citations, ...marker(tape) }
}

const MEDIA: readonly Block[] = [
  { type: 'image', source: { type: 'url', url: 'https://x.test/a.png' } },
  { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'x' } },
  { type: 'image', source: { type: 'base64', media_type: 'image/gif', data: 'R0lGODdhQR8KAA==' } },
]

function media(tape: ChoiceTape): readonly Block[] {
  return tape.rarely(12) ? [{ ...tape.one(...MEDIA), ...marker(tape) }] : []
}

function marker(tape: ChoiceTape): object {
  if (!tape.rarely(10)) return {}
  return {
    cache_control: tape.one<object>(
      { type: 'ephemeral' },
      { type: 'ephemeral', ttl: '1h' },
      { type: 'ephemeral', ttl: '5m' },
    ),
  }
}

function thinking(tape: ChoiceTape): readonly Block[] {
  if (!tape.rarely(4)) return []
  return [
    tape.one<Block>(
      { type: 'thinking', thinking: '', signature: 's' },
      { type: 'redacted_thinking', data: 'd' },
    ),
  ]
}

/** Turns in a valid order. */
function conversation(tape: ChoiceTape, betas: readonly string[]): Message[] {
  const messages: Message[] = []
  if (tape.rarely(8)) messages.push({ role: tape.one('assistant', 'user'), content: [summary(tape, betas)] })
  messages.push({ role: 'user', content: tape.rarely(3) ? 'hello' : [text(tape)] })
  const turns = tape.below(5)
  for (let turn = 0; turn < turns; turn += 1) messages.push(...exchange(tape, turn))
  if (tape.rarely(8)) messages.push(...search(tape, turns))
  if (tape.rarely(8)) messages.push(note(tape))
  return messages
}

function exchange(tape: ChoiceTape, turn: number): readonly Message[] {
  const calls = Array.from({ length: tape.below(3) }, (_, index) => `toolu_${turn}_${index}`)
  const searches = tape.rarely(5) ? [`srvtoolu_${turn}`] : []
  const said: Block[] = [
    ...thinking(tape),
    ...searches.flatMap((id): Block[] => [
      { type: 'server_tool_use', id, name: 'web_search', input: {} },
      { type: 'web_search_tool_result', tool_use_id: id, content: [] },
    ]),
    ...(tape.rarely(5) ? media(tape) : []),
    ...(calls.length === 0 || tape.below(2) === 0 ? [text(tape)] : []),
    ...calls.map((id): Block => ({ type: 'tool_use', id, name: 'look', input: {}, ...marker(tape) })),
  ]
  const results = calls.map(
    (id): Block => ({ type: 'tool_result', tool_use_id: id, ...resultContent(tape), ...marker(tape) }),
  )
  const more = calls.length === 0 || tape.rarely(3) ? [text(tape)] : []
  const notes = tape.rarely(5) ? [note(tape)] : []
  return [
    { role: 'assistant', content: said },
    { role: 'user', content: [...results, ...media(tape), ...more] },
    ...notes,
  ]
}

/** A server tool call without result: alone, or beside one with a result. */
function search(tape: ChoiceTape, turn: number): readonly Message[] {
  const name = tape.one('web_search', 'web_search', 'web_fetch')
  const waiting: Block = { type: 'server_tool_use', id: `srvtoolu_${turn}`, name, input: {} }
  if (tape.below(2) === 0) return [{ role: 'assistant', content: [waiting] }]
  const id = `toolu_${turn}_9`
  return [
    { role: 'assistant', content: [waiting, { type: 'tool_use', id, name: 'look', input: {} }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: 'seen' }] },
  ]
}

function resultContent(tape: ChoiceTape): object {
  return tape.one<object>({ content: 'seen' }, {}, { content: [text(tape)], is_error: true }, { content: [] })
}

function note(tape: ChoiceTape): Message {
  const more = tape.one<object>(
    {},
    {},
    { clear_at: 'next_user_message' },
    { clear_at: 'never' },
    { output_config: { effort: 'low' } },
  )
  const content = tape.one<Message['content']>(
    'be brief',
    [text(tape)],
    '',
    [],
    [{ type: 'tool_removal', tool: { type: 'tool_reference', name: tape.one('look', 'gone') } }],
  )
  return { role: 'system', content, ...more }
}

/** A compaction block as this simulator signs it, or one of a threshold compaction. */
function summary(tape: ChoiceTape, betas: readonly string[]): Block {
  const content = 'what was said'
  const extra = tape.rarely(6) ? tape.one<object>({ citations: null }, { text: 'more' }) : {}
  if (tape.rarely(4) && betas.includes('compact-2026-01-12'))
    return { type: 'compaction', content: tape.one(content, null) }
  const signature = createSigner('tidemark').sign({
    kind: 'compaction',
    id: 'cmp_1',
    organization: 'org_simulated',
    content: hashText(content),
    toolChanges: hashText('[]'),
    preserves: true,
    lastRole: 'user',
    replaced: [],
    system: '',
    tools: '',
    messages: '',
  })
  return { type: 'compaction', content, signature, ...marker(tape), ...extra }
}

function around(tape: ChoiceTape): object {
  const some = (...options: readonly object[]): object => (tape.rarely(8) ? tape.one(...options) : {})
  return {
    ...(tape.rarely(12)
      ? tape.one<object>({}, { tools: [] }, { tools: [TOOLS[0], TOOLS[0]] }, { tools: [TOOLS[0]] })
      : { tools: TOOLS }),
    ...some({ system: 'You help.' }, { system: [text(tape)] }, { system: '' }),
    ...some(...MODES.map((mode) => ({ thinking: mode }))),
    ...some(...CHOICES.map((choice) => ({ tool_choice: choice }))),
    ...some(...EDITS.map((edits) => ({ context_management: { edits } }))),
    ...some({ cache_control: { type: 'ephemeral' } }, { cache_control: { type: 'ephemeral', ttl: '1h' } }),
    ...some(
      { stream: true },
      { output_config: { effort: tape.one('low', 'max') } },
      { output_config: FORMAT },
    ),
    ...some(
      { compaction: { type: 'summarize' } },
      { compaction: { type: 'summarize' }, stop_sequences: ['x'] },
    ),
    ...some({ temperature: 1 }, { speed: 'fast' }, { diagnostics: { previous_message_id: null } }),
  }
}

const FORMAT = { format: { type: 'json_schema', schema: {} } }
const MODES = [
  { type: 'adaptive' },
  { type: 'disabled' },
  { type: 'enabled', budget_tokens: 1_024 },
  { type: 'enabled', budget_tokens: 1_000 },
  { type: 'adaptive', block_binding: { prefix_mismatch_behavior: 'drop_block' } },
]
const CHOICES = [
  { type: 'auto' },
  { type: 'any' },
  { type: 'none' },
  { type: 'tool', name: 'look' },
  { type: 'tool', name: 'gone' },
]
const EDITS = [
  [{ type: 'clear_thinking_20251015', keep: 'all' }],
  [{ type: 'clear_tool_uses_20250919', trigger: { type: 'input_tokens', value: 9 } }],
  [{ type: 'clear_tool_uses_20250919' }, { type: 'clear_thinking_20251015' }],
  [{ type: 'compact_20260112' }],
  [{ type: 'compact_20260112', trigger: { type: 'input_tokens', value: 49_999 } }],
]

/** Breaks one thing, which sometimes makes no difference. */
function spoil(tape: ChoiceTape, messages: Message[]): void {
  const at = tape.below(Math.max(1, messages.length))
  const message = messages[at]
  if (message === undefined) return
  const blocks = typeof message.content === 'string' ? null : message.content
  const kinds = [
    'drop',
    'repeat',
    'swap',
    'role',
    'split',
    'drop-block',
    'repeat-block',
    'move-block',
    'empty',
    'rename',
  ] as const
  const kind = tape.one(...kinds)
  if (kind === 'drop') messages.splice(at, 1)
  else if (kind === 'repeat') messages.splice(at, 0, structuredClone(message))
  else if (kind === 'swap') messages.push(...messages.splice(at, 1))
  else if (kind === 'role') message.role = tape.one('user', 'assistant')
  else if (kind === 'empty') message.content = tape.one<Message['content']>('', [])
  else if (blocks !== null) spoilBlocks(tape, kind, { messages, at, blocks })
}

interface Spot {
  readonly messages: Message[]
  readonly at: number
  readonly blocks: Block[]
}

function spoilBlocks(tape: ChoiceTape, kind: string, { messages, at, blocks }: Spot): void {
  const index = tape.below(Math.max(1, blocks.length))
  const block = blocks[index]
  if (block === undefined) return
  const role = messages[at]?.role ?? 'user'
  if (kind === 'drop-block') blocks.splice(index, 1)
  else if (kind === 'repeat-block') blocks.splice(index, 0, structuredClone(block))
  else if (kind === 'move-block') blocks.push(...blocks.splice(index, 1))
  else if (kind === 'split') messages.splice(at + 1, 0, { role, content: blocks.splice(index) })
  else if (typeof block.id === 'string') block.id = tape.one('toolu_0_0', 'other', 'not an id')
  else if (typeof block.tool_use_id === 'string') block.tool_use_id = tape.one('toolu_0_0', 'other')
}
