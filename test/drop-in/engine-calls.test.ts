/** What `tide.fetch` takes from the client: where the engine's own calls go, and the session that a function chooses. */
import { anthropic, createTidemark, type SessionEvent } from 'tidemark'
import { describe, expect, it, onTestFinished } from 'vitest'
import {
  ClientAgent,
  type ClientSettings,
  createDropInWorld,
  type DropInOptions,
  dropIn,
  type Fetch,
} from './client-agent.ts'

const SMALL: DropInOptions = { window: 20_000, turns: 60, resultTokens: 1_500 }
const BRIEF: ClientSettings = { system: 'You are a careful coder.' }

describe('the calls of the engine itself', () => {
  it('go to the address of the client, with its key, although the model has another key', async () => {
    const { coder, simulator } = createDropInWorld(SMALL)
    const model = anthropic('claude-haiku-4-5', { apiKey: 'of-the-model', window: 20_000, maxOutput: 4_000 })
    const compacted: SessionEvent[] = []
    const tide = createTidemark({
      model,
      memory: true,
      env: {},
      onEvent: (event) => void (event.type === 'compact' && compacted.push(event)),
    })
    onTestFinished(() => tide.close())
    const sent: (readonly [string, string | null])[] = []
    const upstream: Fetch = (input, init) => {
      sent.push([String(input), new Headers(init?.headers).get('x-api-key')])
      return simulator.fetch(String(input), init)
    }
    const fetch = tide.fetch({ session: 'talk', fetch: upstream })
    const host = new ClientAgent(fetch, coder, BRIEF)
    host.messages.push({ role: 'user', content: 'Mend the sums.' })
    while (compacted.length === 0) await host.step()
    expect(new Set(sent.map(([, key]) => key)).size).toBe(1)
    expect(sent.map(([, key]) => key)).not.toContain('of-the-model')
    expect(new Set(sent.map(([url]) => new URL(url).host)).size).toBe(1)
    expect(compacted).toMatchObject([{ compaction: { summarizer: 'model' } }])
  })

  it.each<[string, () => unknown, readonly string[]]>([
    ['an address of a mail', () => 'user@example.com', ['user-example.com']],
    ['nothing that is an id', () => 42, []],
  ])('a session that is chosen by a function which returns %s', async (_, session, ids) => {
    const { host, tide, events } = dropIn(BRIEF, { ...SMALL, turns: 3 }, { session })
    await host.ask('Mend the sums.')
    expect(await tide.sessions()).toEqual(ids)
    const passed = events.filter((event) => event.type === 'request-passed' && event.reason === 'failed')
    expect(passed.length > 0).toBe(ids.length === 0)
  })
})
