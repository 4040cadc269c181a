/** The cache lifetime of a session over its pauses and compactions, and what is cleared once the cache has expired. */
import { createFakeModel } from '@tidemark/core/testing'
import {
  anthropic,
  assistant,
  createTidemark,
  type Session,
  type SessionEvent,
  toolResult,
  user,
} from 'tidemark'
import { expect, it } from 'vitest'

const MINUTE = 60_000
const TOOLS = [{ name: 'Read', input_schema: { type: 'object' } }]

interface TimedSession {
  readonly session: Session
  readonly events: readonly SessionEvent[]
  readonly wait: (minutes: number) => void
  /** Sends the next request, answers it with a read of a file, and returns the lifetimes of its cache markers. */
  readonly call: () => Promise<readonly (string | undefined)[]>
}

async function openTimedSession(): Promise<TimedSession> {
  let now = Date.UTC(2026, 5, 1)
  const events: SessionEvent[] = []
  const choice = anthropic('claude-opus-4-6', { apiKey: 'none' })
  const tide = createTidemark({
    model: { ...choice, connect: () => createFakeModel() },
    memory: true,
    env: {},
    clock: { now: () => now, sleep: async () => {} },
    deadlines: { within: async (_, work) => ({ ok: true, value: await work({ aborted: false }) }) },
    onEvent: (event) => events.push(event),
  })
  const session = await tide.open('s', { system: 'You help.' })
  await session.append(user('Fix the login page.'))
  let calls = 0
  return {
    session,
    events,
    wait(minutes) {
      now += minutes * MINUTE
    },
    async call() {
      const request = await session.next({ tools: TOOLS })
      if (!request.ok) throw new Error(request.message)
      calls += 1
      const id = `call_${calls}`
      const content = [{ type: 'tool_use', id, name: 'Read', input: { file_path: `/src/${calls}.ts` } }]
      const tokens = 20_000 + 2_000 * calls
      const usage = { input_tokens: 10, cache_read_input_tokens: tokens, output_tokens: 40 }
      await session.append(
        assistant({ id: `m${calls}`, model: 'claude-opus-4-6', content, stop_reason: 'tool_use', usage }),
        toolResult(id, `line of file ${calls}\n`.repeat(400)),
      )
      const markers = request.text.matchAll(/"cache_control":(\{[^}]*\})/g)
      return [...markers].map(([, control = '{}']) => (JSON.parse(control) as { ttl?: string }).ttl)
    },
  }
}

it('a session with long pauses gets the 1-hour cache lifetime at its next compaction', async () => {
  const { session, wait, call } = await openTimedSession()
  for (let calls = 0; calls < 25; calls += 1) {
    expect(new Set(await call())).toEqual(new Set([undefined]))
    wait(calls % 3 === 0 ? 20 : 1)
  }
  expect(await session.compact({ summarizer: 'local' })).toMatchObject({ ok: true })
  await session.append(user('Go on.'))
  expect(new Set(await call())).toEqual(new Set(['1h']))
})

it('a session without long pauses keeps the 5-minute cache lifetime over a compaction', async () => {
  const { session, wait, call } = await openTimedSession()
  for (let calls = 0; calls < 25; calls += 1) {
    await call()
    wait(1)
  }
  expect(await session.compact({ summarizer: 'local' })).toMatchObject({ ok: true })
  await session.append(user('Go on.'))
  expect(new Set(await call())).toEqual(new Set([undefined]))
})

it.each([
  [4, 0],
  [6, 1],
])(
  'after a pause of %i minutes behind a 5-minute cache, old results are cleared %i times',
  async (pause, times) => {
    const { wait, call, events } = await openTimedSession()
    for (let calls = 0; calls < 24; calls += 1) {
      await call()
      wait(1)
    }
    wait(pause - 1)
    await call()
    expect(events.filter(({ type }) => type === 'microcompact').length).toBe(times)
  },
)
