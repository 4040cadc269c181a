/** Long sessions through the face of the library: a tool loop of so many messages, and its next turns. */
import {
  anthropic,
  assistant,
  createTidemark,
  type NextOutcome,
  type Session,
  type Tidemark,
  toolResult,
  user,
} from 'tidemark'
import { createMemoryJournal, type MemoryStore } from 'tidemark/testing'

const SYSTEM_PROMPTS = {
  /** Too short for the provider to cache it alone. */
  small: 'You help.',
  large: 'You help with code, and say what you did. '.repeat(1_000),
}

type SystemSize = keyof typeof SYSTEM_PROMPTS

const SESSION = 'long'
const TOOLS = [{ name: 'Read', description: 'Reads a file.', input_schema: { type: 'object' } }]
const MODEL_ID = 'claude-sonnet-5-5'

function createBenchTidemark(size: SystemSize, store: MemoryStore): Tidemark {
  const model = anthropic(MODEL_ID, { apiKey: 'any', fetch: async () => createReply() })
  return createTidemark({ model, system: SYSTEM_PROMPTS[size], env: {}, journal: createMemoryJournal(store) })
}

/** A reply without tool calls, as the API streams it. */
function createReply(): Response {
  const usage = { input_tokens: 5, output_tokens: 3, cache_read_input_tokens: 9_000 }
  const message = {
    id: `msg_${crypto.randomUUID()}`,
    type: 'message',
    role: 'assistant',
    model: MODEL_ID,
    usage,
  }
  const events = [
    { type: 'message_start', message: { ...message, content: [], stop_reason: null } },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Done.' } },
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 3 } },
    { type: 'message_stop' },
  ]
  const text = events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('')
  return new Response(text, { headers: { 'content-type': 'text/event-stream' } })
}

/** The response of one turn, with a tool call. */
export function responseAt(turn: number): ReturnType<typeof assistant> {
  const input = { file_path: `/src/${turn % 200}.ts` }
  return assistant({
    id: `msg_${turn}`,
    role: 'assistant',
    model: MODEL_ID,
    stop_reason: 'tool_use',
    content: [{ type: 'tool_use', id: `toolu_${turn}`, name: 'Read', input }],
    usage: { input_tokens: 5, output_tokens: 40, cache_read_input_tokens: 9_000 + turn * 30 },
  })
}

export function resultAt(turn: number): ReturnType<typeof toolResult> {
  return toolResult(`toolu_${turn}`, `line ${turn} of the file that was read\n`.repeat(4))
}

export async function requestNext(session: Session): Promise<NextOutcome & { readonly ok: true }> {
  const request = await session.next({ tools: TOOLS })
  if (!request.ok) throw new Error(request.message)
  return request
}

const stores = new Map<string, Promise<MemoryStore>>()

/** Writes a session of so many messages. The same one is written only once, since that takes seconds. */
async function writeLongSession(size: SystemSize, messages: number): Promise<MemoryStore> {
  const store: MemoryStore = new Map()
  const session = await createBenchTidemark(size, store).open(SESSION)
  await session.append(user('Go.'))
  await requestNext(session)
  const turns = Array.from({ length: Math.floor(messages / 2) }, (_, turn) => turn)
  await session.append(...turns.flatMap((turn) => [responseAt(turn), resultAt(turn)]))
  await session.close()
  return store
}

/** A session in memory that was closed at so many messages and opened again by another process. */
export async function resumeLongSession(size: SystemSize, messages: number): Promise<Session> {
  const key = `${size} ${messages}`
  const written = stores.get(key) ?? writeLongSession(size, messages)
  stores.set(key, written)
  const copy: MemoryStore = new Map()
  for (const [id, { lines }] of await written) copy.set(id, { lines: [...lines], holder: null })
  return createBenchTidemark(size, copy).open(SESSION)
}
