/** A client that asks a long question after a long conversation: the request that fits is sent, with a summary. */
import { sampleCases } from '@tidemark/core/testing'
import { createSummarizer, withSummaries } from '@tidemark/simulator'
import { describe, expect, it } from 'vitest'
import { createDropInWorld } from './client-agent.ts'

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
