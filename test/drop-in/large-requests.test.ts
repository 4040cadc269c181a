/** A client's large request is handled with pauses between its steps: other requests do not wait for all of it. */
import { createSimulator, echo, withSummaries } from '@tidemark/simulator'
import { anthropic, createTidemark } from 'tidemark'
import { describe, expect, it } from 'vitest'

const tools = [{ name: 'Read', input_schema: { type: 'object' } }]

function writeBody(characters: number): string {
  return writeMessages([{ role: 'user', content: 'x'.repeat(characters) }])
}

/** A conversation with so many responses that began without Tidemark. */
function writeConversation(responses: number): string {
  const turns = Array.from({ length: responses }, (_, turn) => [
    { role: 'user', content: `Question ${turn}.` },
    { role: 'assistant', content: `Answer ${turn}.` },
  ])
  return writeMessages([...turns.flat(), { role: 'user', content: 'And now?' }])
}

function writeMessages(messages: readonly object[]): string {
  return JSON.stringify({ model: 'claude-opus-5', max_tokens: 100, tools, messages })
}

/** Returns how often the event loop turned until the request was sent on. */
async function countTurns(body: string): Promise<number> {
  const { fetch } = createSimulator({ script: withSummaries(echo) })
  const model = anthropic('claude-opus-5', { apiKey: 'any', fetch })
  const tide = createTidemark({ model, memory: true, env: {} })
  let turns = 0
  let sentAt: number | null = null
  const count = (): void => {
    turns += 1
    if (sentAt === null) setImmediate(count)
  }
  const hosted = tide.fetch({
    fetch: (input, init) => {
      sentAt ??= turns
      return fetch(input instanceof Request ? input : String(input), init)
    },
  })
  setImmediate(count)
  const headers = { 'x-api-key': 'k', 'anthropic-version': '2023-06-01', 'content-type': 'application/json' }
  const response = await hosted('http://api/v1/messages', { method: 'POST', headers, body })
  expect(response.status).toBe(200)
  await response.text()
  await tide.close()
  return sentAt ?? 0
}

describe('a large request of a client', () => {
  it('is read, checked and sent with pauses for other requests, which a small one has not', async () => {
    const [small, large] = [await countTurns(writeBody(10)), await countTurns(writeBody(1_000_000))]
    // Before it is parsed, after it, after it is read, and before it is sent.
    expect(large - small).toBeGreaterThanOrEqual(4)
  })

  it('with many messages is recorded with pauses for other requests', async () => {
    const [few, many] = [await countTurns(writeConversation(2)), await countTurns(writeConversation(1_000))]
    expect(many - few).toBeGreaterThanOrEqual(10)
  })
})
