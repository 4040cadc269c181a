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

describe.each(['claude-sonnet-5-5', 'claude-sonnet-4-5', 'claude-opus-5-5'])('on %s', (modelId) => {
  it.each(
    sampleCases(
      [
        [100_000, 0.5],
        [100_000, 0.8],
        [100_000, 0.94],
        [30_000, 0.85],
        [30_000, 0.9],
        [30_000, 0.94],
      ] as const,
      2,
    ),
  )(
    'a long prompt after a long conversation is answered where prompt and summary fit (window %i, %f of it)',
    async (window, share) => {
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
