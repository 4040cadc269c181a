/** A client that asks a long question after a long conversation: the request that fits is sent, with a summary. */
import { sampleCases } from '@tidemark/core/testing'
import { createSummarizer, withSummaries } from '@tidemark/simulator'
import { describe, expect, it } from 'vitest'
import { ClientAgent, createDropInWorld } from './client-agent.ts'

const SENTENCE = 'The ledger keeps every sum in cents, so that no part of an account is lost to rounding.\n'
const TOOLS = [{ name: 'Read', description: 'Reads.', input_schema: { type: 'object', properties: {} } }]

/** A text with so many tokens, as the provider counts them. */
function write(tokens: number): string {
  return SENTENCE.repeat(Math.ceil((tokens * 4) / SENTENCE.length)).slice(0, Math.floor(tokens) * 4)
}

const answers = withSummaries(
  () => ({ blocks: [{ type: 'text', text: 'An answer. '.repeat(400) }] }),
  createSummarizer(),
)

const FITTING = [
  [100_000, 0.5],
  [100_000, 0.8],
  [100_000, 0.94],
  [30_000, 0.85],
  [30_000, 0.9],
  [30_000, 0.94],
] as const

const FITTING_CASES = ['claude-sonnet-5-5', 'claude-sonnet-4-5', 'claude-opus-5-5'].flatMap((modelId) =>
  FITTING.map(([window, share]) => [modelId, window, share] as const),
)

// Four of them have every model and both windows.
describe('a long prompt', () => {
  it.each(sampleCases(FITTING_CASES, 4))(
    'on %s after a long conversation is answered where prompt and summary fit (window %i, %f of it)',
    async (modelId, window, share) => {
      const world = createDropInWorld({
        window,
        modelId,
        simulator: { script: answers, window },
      })
      const fetch = world.tide.fetch({ session: 'talk', fetch: world.upstream })
      const messages: object[] = []
      const ask = async (prompt: string): Promise<number> => {
        messages.push({ role: 'user', content: prompt })
        const body = JSON.stringify({ model: modelId, max_tokens: 1_000, tools: TOOLS, messages })
        const headers = {
          'x-api-key': 'host',
          'anthropic-version': '2023-06-01',
          'content-type': 'application/json',
        }
        const response = await fetch('http://simulator.test/v1/messages', { method: 'POST', headers, body })
        const answer = (await response.json()) as { readonly content: object }
        messages.push({ role: 'assistant', content: answer.content ?? [] })
        return response.status
      }
      const parts = Math.floor((window * 0.5) / 2_000)
      for (let part = 0; part < parts; part += 1) expect(await ask(`Part ${part}: ${write(1_000)}`)).toBe(200)
      expect(await ask(write(window * share))).toBe(200)
      expect(await ask('And now?')).toBe(200)
    },
  )
})

/** Cyrillic takes two bytes a letter: the engine expects a third more tokens than the simulator counts. */
const OVERESTIMATED = 'Строка журнала 17: баланс сохранён, ошибок нет, см. отдел учёта.\n'

it.each([
  ['claude-sonnet-4-5', 0.8],
  ['claude-opus-5', 0.92],
])(
  'a long prompt in a script whose tokens are overestimated is answered where prompt and summary fit (%s, %f of the window)',
  async (modelId, share) => {
    const window = 40_000
    const world = createDropInWorld({ window, modelId, turns: 14, resultTokens: 900 })
    const { tide, coder, upstream, simulator, events } = world
    const host = new ClientAgent(tide.fetch({ session: 'talk', fetch: upstream }), coder, {
      model: modelId,
      system: 'You are a coder.',
    })
    await host.ask('Fix the sums.')
    const lines = Math.floor((window * share * 4) / Buffer.byteLength(OVERESTIMATED))
    host.messages.push({ role: 'user', content: OVERESTIMATED.repeat(lines) })
    await host.step()
    expect(simulator.requests.at(-1)?.status).toBe(200)
    expect(events.filter(({ type }) => type === 'compact')).toHaveLength(1)
  },
)

/** Texts of which the engine expects two to three times as many tokens as the simulator counts. */
const DENSE = {
  table: (line: number) =>
    `${line},${(line * 7_919) % 1_000_003},${line % 97}.${line % 89},2026-03-1${line % 10},;${line % 2}\n`,
  code: (line: number) =>
    `if(a[${line}]!=null&&(b=f${line}(x,{y:${line % 7}}))){r.push([${line},"k"]);}else{t+=(${line}<<2)^0x1f;}\n`,
  base64: (line: number) =>
    `${Buffer.from(`${(line * 104_729) ** 2}${line}`.repeat(3)).toString('base64')}\n`,
} as const

function writeDense(kind: keyof typeof DENSE, tokens: number): string {
  let text = ''
  for (let line = 0; text.length < tokens * 4; line += 1) text += DENSE[kind](line)
  return text.slice(0, Math.floor(tokens) * 4)
}

it.each([
  ['table', 'claude-sonnet-4-5', 0.8],
  ['table', 'claude-opus-5', 0.94],
  ['code', 'claude-opus-5-5', 0.9],
  ['base64', 'claude-sonnet-4-5', 0.94],
] as const)(
  'a long prompt of dense text after a long conversation is answered where prompt and summary fit (%s, %s, %f of the window)',
  async (kind, modelId, share) => {
    const window = 30_000
    const world = createDropInWorld({ window, modelId, simulator: { script: answers, window } })
    const { tide, coder, upstream, simulator } = world
    const fetches = [
      tide.fetch({ session: 'talk', fetch: upstream }),
      tide.fetch({ session: 'joined', fetch: upstream }),
    ]
    const [talk, joined] = fetches.map(
      (fetch) => new ClientAgent(fetch, coder, { model: modelId, system: 'You are a coder.' }),
    )
    // The user's own words fill what the prompt leaves of the window, and their tokens are underestimated.
    for (let part = 0; part < 10; part += 1) await talk?.ask(`Part ${part}: ${write(1_000)}`)
    // A client that joins with its history: no usage tells how large that is.
    if (joined !== undefined) joined.messages = structuredClone(talk?.messages ?? [])
    for (const [host, part] of [
      [talk, share],
      [joined, share - 0.04],
    ] as const) {
      host?.messages.push({ role: 'user', content: writeDense(kind, window * part) })
      await host?.step()
      expect(simulator.requests.at(-1)?.status).toBe(200)
    }
  },
)
