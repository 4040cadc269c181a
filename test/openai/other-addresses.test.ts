/** Addresses at which the same APIs are served by others, and those whose requests are passed on. */
import { createTidemark, openai, type SessionEvent } from 'tidemark'
import { describe, expect, it } from 'vitest'

const MESSAGES = [{ role: 'user', content: 'Hello.' }]
const TOOLS = [{ type: 'function', function: { name: 'Read', parameters: { type: 'object' } } }]

/** Sends a request twice; returns what reached the server, and what was said. */
async function send(url: string, body: object, answer: () => Response) {
  const events: SessionEvent[] = []
  const sent: (string | Uint8Array)[] = []
  const onEvent = (event: SessionEvent): void => void events.push(event)
  const tide = createTidemark({ model: openai('gpt-4.1', { apiKey: 'any' }), memory: true, onEvent })
  const fetch = tide.fetch({
    session: 'here',
    fetch: async (_, init) => {
      sent.push(String(init?.body))
      return answer()
    },
  })
  const answers: string[] = []
  for (let time = 0; time < 2; time += 1) {
    const headers = { authorization: 'Bearer any', 'content-type': 'application/json' }
    const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })
    answers.push(Buffer.from(await response.arrayBuffer()).toString('hex'))
  }
  await tide.close()
  return { sent, answers, passed: events.filter(({ type }) => type === 'request-passed'), events }
}

const COMPLETION = {
  id: 'chatcmpl-1',
  object: 'chat.completion',
  model: 'gpt-4.1',
  choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'Hello.' } }],
  usage: { prompt_tokens: 10, completion_tokens: 2, total_tokens: 12 },
}

describe('an address that serves the same API', () => {
  it.each([
    'https://my-resource.openai.azure.com/openai/v1/chat/completions',
    'https://my-resource.openai.azure.com/openai/v1/chat/completions?api-version=preview',
    'https://openrouter.ai/api/v1/chat/completions',
  ])('is managed: %s', async (url) => {
    const body = { model: 'gpt-4.1', messages: MESSAGES, tools: TOOLS }
    const { events, passed } = await send(url, body, () => Response.json(COMPLETION))
    expect(passed).toEqual([])
    expect(events.some(({ type }) => type === 'priced')).toBe(true)
  })
})

describe('an address with paths, bodies or streams of its own', () => {
  const stream = Uint8Array.from([0, 0, 0, 42, 0, 0, 0, 16, 255, 254, 128, 0])
  it.each([
    'https://bedrock-runtime.us-east-1.amazonaws.com/model/anthropic.claude-sonnet-5-5/invoke-with-response-stream',
    'https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/us-east5/publishers/anthropic/models/claude-sonnet-5-5:streamRawPredict',
  ])('is passed on byte for byte, which is said once: %s', async (url) => {
    const body = { anthropic_version: 'any', max_tokens: 10, messages: MESSAGES }
    const type = { 'content-type': 'application/vnd.amazon.eventstream' }
    const { sent, answers, passed } = await send(url, body, () => new Response(stream, { headers: type }))
    expect(sent).toEqual([JSON.stringify(body), JSON.stringify(body)])
    expect(answers).toEqual([Buffer.from(stream).toString('hex'), Buffer.from(stream).toString('hex')])
    expect(passed).toHaveLength(1)
  })
})
