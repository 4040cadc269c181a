/** What a turn of a resumed session costs: it depends on what the turn adds, not on how long the session is. */
import { anthropic, assistant, createTidemark, type Session, type Tidemark, toolResult, user } from 'tidemark'
import { createMemoryJournal, type MemoryStore } from 'tidemark/testing'
import { afterEach, expect, it, vi } from 'vitest'

const TOOLS = [{ name: 'Read', description: 'Reads a file.', input_schema: { type: 'object' } }]

function createTide(store: MemoryStore, system: string): Tidemark {
  const model = anthropic('claude-sonnet-5-5', { apiKey: 'any' })
  return createTidemark({ model, system, journal: createMemoryJournal(store), env: {} })
}

/** The steps of one turn of a loop of one's own, by name. */
function listTurnSteps(session: Session, turn: number): Readonly<Record<string, () => unknown>> {
  const id = `toolu_${turn}`
  const usage = { input_tokens: 5, output_tokens: 40, cache_read_input_tokens: 3_000 + turn * 30 }
  const content = [{ type: 'tool_use', id, name: 'Read', input: { file_path: `/src/${turn % 9}.ts` } }]
  let text = (): string => ''
  return {
    async next() {
      const request = await session.next({ tools: TOOLS })
      if (!request.ok) throw new Error(request.message)
      text = () => request.text
    },
    text: () => text(),
    'append a response': () =>
      session.append(
        assistant({ id: `msg_${turn}`, role: 'assistant', stop_reason: 'tool_use', content, usage }),
      ),
    'append a result': () => session.append(toolResult(id, `text ${turn}`)),
    contextRemaining: () => session.contextRemaining(),
    money: () => session.money(),
  }
}

async function takeTurns(session: Session, from: number, to: number): Promise<void> {
  for (let turn = from; turn < to; turn += 1)
    for (const step of Object.values(listTurnSteps(session, turn))) await step()
}

/** Resumes a session of so many turns, takes two, and returns how many values each step of the next one encodes as JSON. */
async function countEncodings(turns: number, system: string): Promise<Readonly<Record<string, number>>> {
  const store: MemoryStore = new Map()
  const first = createTide(store, system)
  const session = await first.open('long')
  await session.append(user('Go.'))
  await takeTurns(session, 0, turns)
  await first.close()
  const resumed = await createTide(store, system).open('long')
  await takeTurns(resumed, turns, turns + 2)
  const counts: Record<string, number> = {}
  for (const [name, step] of Object.entries(listTurnSteps(resumed, turns + 2))) {
    const stringify = vi.spyOn(JSON, 'stringify')
    await step()
    counts[name] = stringify.mock.calls.length
    stringify.mockRestore()
  }
  return counts
}

afterEach(() => vi.restoreAllMocks())

it.each([
  ['too short to be cached', 'You help.'],
  ['long enough to be cached', 'You help with code. '.repeat(1_000)],
])(
  'a turn of a resumed session encodes no earlier message again, with a system prompt %s',
  async (_, system) => {
    expect(await countEncodings(150, system)).toEqual(await countEncodings(15, system))
  },
)

it('a program handles its other events while a long session is compacted', async () => {
  const session = await createTide(new Map(), 'You help.').open('long')
  await session.append(user('Go.'))
  const file = Array.from({ length: 400 }, (_, line) => `const value${line} = readRow(rows[${line}])`).join(
    '\n',
  )
  for (let turn = 0; turn < 60; turn += 1) {
    const content = [
      { type: 'tool_use', id: `toolu_${turn}`, name: 'Read', input: { file_path: `/src/${turn}.ts` } },
    ]
    await session.append(
      assistant({ id: `msg_${turn}`, role: 'assistant', stop_reason: 'tool_use', content }),
      toolResult(`toolu_${turn}`, file),
    )
  }
  let events = 0
  let isOver = false
  const countEvent = (): void => {
    events += 1
    if (!isOver) setImmediate(countEvent)
  }
  setImmediate(countEvent)
  const end = await session.compact({ summarizer: 'local' })
  isOver = true
  expect(end).toMatchObject({ ok: true })
  expect(events).toBeGreaterThan(10)
})
