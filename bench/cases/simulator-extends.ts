/** A long conversation grows by a turn: what the simulator does with it must not cost much more than reading it. */
import { createSimulator, type Simulator } from '@tidemark/simulator'
import type { BenchCase } from '../harness/bench-case.ts'

const ROUNDS = 15
const CALLS = 6
/** The simulator's tokens are four bytes each. */
const LENGTH = 800_000
const STEP = 4_000
const TOOL = { name: 'Read', input_schema: { type: 'object' } }

interface Message {
  readonly role: string
  readonly content: readonly object[]
}

/** Calls and their results, so many bytes of text in all. */
function conversation(bytes: number): readonly Message[] {
  const messages: Message[] = [{ role: 'user', content: [{ type: 'text', text: 'go' }] }]
  for (let written = 0; written < bytes; written += STEP) {
    const id = `toolu_${written}`
    const text = `line of a file that was read, ${id}\n`.repeat(STEP).slice(0, STEP - 200)
    messages.push(
      { role: 'assistant', content: [{ type: 'tool_use', id, name: 'Read', input: { path: `/src/${id}` } }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: text }] },
    )
  }
  return messages
}

function bodyOf(bytes: number): string {
  const messages = conversation(bytes)
  const marked = messages.map((message, index) =>
    index === messages.length - 1
      ? {
          ...message,
          content: message.content.map((block) => ({ ...block, cache_control: { type: 'ephemeral' } })),
        }
      : message,
  )
  return JSON.stringify({ model: 'claude-opus-5', max_tokens: 100, tools: [TOOL], messages: marked })
}

function requestWith(body: string): Request {
  const headers = { 'x-api-key': 'k', 'anthropic-version': '2026-10-21' }
  return new Request('http://simulator/v1/messages', { method: 'POST', headers, body })
}

async function answered(simulator: Simulator, body: string): Promise<string> {
  const response = await simulator.handle(requestWith(body))
  if (response.status !== 200) throw new Error(await response.text())
  return response.text()
}

async function read(body: string): Promise<unknown> {
  const bytes = await requestWith(body).arrayBuffer()
  return JSON.parse(Buffer.from(bytes).toString('utf8'))
}

/** Both sides run compiled code when they are measured. */
async function warmUp(bodies: readonly string[]): Promise<void> {
  const other = createSimulator()
  for (const body of bodies) {
    await answered(other, body)
    await read(body)
  }
}

export const benchCase: BenchCase = {
  name: 'simulator-extends',
  compares:
    'a request of 200k tokens that extends the one before by 1k with reading and parsing its body alone',
  bound: { atMost: 3 },
  rounds: ROUNDS,
  async prepare() {
    const bodies = Array.from({ length: ROUNDS * CALLS + 2 }, (_, index) => bodyOf(LENGTH + index * STEP))
    const simulator = createSimulator({ script: () => ({ blocks: [{ type: 'text', text: 'ok' }] }) })
    let next = 0
    let again = 0
    await warmUp(bodies)
    // The first two are the conversation so far.
    for (; next < 2; next += 1) await answered(simulator, bodies[next] ?? '')
    return {
      subject: () => answered(simulator, bodies[next++] ?? ''),
      baseline: () => read(bodies[2 + (again++ % (ROUNDS * CALLS))] ?? ''),
      calls: { subject: CALLS, baseline: CALLS },
    }
  },
}
