/** A limit under a client: it is answered with an error of its provider, which its SDK does not send again. */
import Anthropic from '@anthropic-ai/sdk'
import { createSimulator } from '@tidemark/simulator'
import OpenAI from 'openai'
import { anthropic, createTidemark, openai, type TidemarkOptions } from 'tidemark'
import { describe, expect, it } from 'vitest'
import { dropIn, sumRequests } from './client-agent.ts'

const ANSWER = { blocks: [{ type: 'text', text: 'Yes.' }] }

/** Sends requests of a real SDK until one is refused. Returns the error and the number of requests that were sent. */
async function askUntilRefused(api: 'messages' | 'responses' | 'chat', options: Partial<TidemarkOptions>) {
  const simulator = createSimulator({ script: () => ANSWER })
  const name = api === 'messages' ? 'claude-sonnet-5-5' : 'gpt-5.4'
  const model =
    api === 'messages'
      ? anthropic(name, { apiKey: 'any', fetch: simulator.fetch })
      : openai(name, { apiKey: 'any', fetch: simulator.fetch, api })
  const tide = createTidemark({ model, memory: true, env: {}, ...options })
  let asked = 0
  const own = tide.fetch({ session: 'client', fetch: simulator.fetch })
  const fetch: typeof own = (input, init) => {
    asked += 1
    return own(input, init)
  }
  const openaiClient = new OpenAI({ apiKey: 'any', baseURL: 'http://simulator.test/v1', fetch })
  const anthropicClient = new Anthropic({ apiKey: 'any', baseURL: 'http://simulator.test', fetch })
  const messages: { role: 'user' | 'assistant'; content: string }[] = []
  const ask = async (): Promise<void> => {
    messages.push({ role: 'user', content: `Is ${messages.length} a number?` })
    if (api === 'messages') await anthropicClient.messages.create({ model: name, max_tokens: 100, messages })
    else if (api === 'chat') await openaiClient.chat.completions.create({ model: name, messages })
    else await openaiClient.responses.create({ model: name, input: messages, store: false })
    messages.push({ role: 'assistant', content: 'Yes.' })
  }
  for (;;) {
    const error: unknown = await ask().then(
      () => null,
      (thrown: unknown) => thrown,
    )
    if (error !== null) return { error, asked, sent: simulator.requests.length }
  }
}

describe('a client whose session has reached a limit', () => {
  it.each(['messages', 'responses', 'chat'] as const)(
    'of the %s API gets a typed error once, with a clear text',
    async (api) => {
      const { error, asked, sent } = await askUntilRefused(api, { limits: { turns: 3 } })
      expect(error).toMatchObject({ status: 402 })
      expect(String(error)).toContain("Tidemark: The session's limit of 3 turns is reached: 3 turns used.")
      expect({ asked, sent }).toEqual({ asked: 4, sent: 3 })
    },
  )

  it('pays no more than the limit and one call, summaries included', async () => {
    for (const dollars of [0.02, 0.2]) {
      const { host, simulator } = dropIn(
        {},
        { window: 20_000, turns: 80, resultTokens: 1_500, limits: { dollars } },
      )
      await expect(host.ask('Mend the sums.')).rejects.toThrow("The session's limit of $")
      const costs = simulator.requests.map(({ cost }) => cost?.total ?? 0)
      expect(sumRequests({ simulator }).dollars - Math.max(...costs)).toBeLessThan(dollars)
      expect(sumRequests({ simulator }).dollars).toBeGreaterThanOrEqual(dollars)
    }
  })

  it('is refused a model whose price is not known, if dollars are limited', async () => {
    const { host, sent } = dropIn({ model: 'claude-unheard-of' }, { limits: { dollars: 5 } })
    await expect(host.ask('Mend the sums.')).rejects.toThrow('the price of claude-unheard-of is not known')
    expect(sent).toEqual([])
  })
})
