/** A large body is handled in slices: requests that come after it do not wait for all of it. */
import { createSimulator, echo } from '@tidemark/simulator'
import { describe, expect, it } from 'vitest'

const headers = { 'x-api-key': 'k', 'anthropic-version': '2023-06-01', 'content-type': 'application/json' }

function writeBody(messages: readonly object[]): string {
  return JSON.stringify({ model: 'claude-opus-5', max_tokens: 100, messages })
}

function buildConversation(turns: number, characters: number): readonly object[] {
  return Array.from({ length: 2 * turns + 1 }, (_, index) => ({
    role: index % 2 === 0 ? 'user' : 'assistant',
    content: `${index} ${'x'.repeat(characters)}`,
  }))
}

/** Returns how often the event loop turned until the answer came. */
async function countTurns(messages: readonly object[], status: number): Promise<number> {
  const simulator = createSimulator({ script: echo })
  let turns = 0
  let isAnswered = false
  const count = (): void => {
    turns += 1
    if (!isAnswered) setImmediate(count)
  }
  setImmediate(count)
  const body = writeBody(messages)
  const response = await simulator.fetch('http://api/v1/messages', { method: 'POST', headers, body })
  isAnswered = true
  expect(response.status).toBe(status)
  return turns
}

describe('a large body', () => {
  it.each([
    { name: 'that is answered', messages: buildConversation(100, 10_000), status: 200 },
    { name: 'that is too long for the window', messages: buildConversation(300, 10_000), status: 400 },
    { name: 'of many small messages', messages: buildConversation(20_000, 1), status: 200 },
  ])('$name is handled in turns, between which other requests are', async ({ messages, status }) => {
    const small = await countTurns([{ role: 'user', content: 'Say it back.' }], 200)
    expect((await countTurns(messages, status)) - small).toBeGreaterThan(20)
  })

  it('is read as it was sent, also where a character is cut between two chunks', async () => {
    const simulator = createSimulator({ script: echo })
    const text = '€😀é'.repeat(1_000)
    const bytes = Buffer.from(writeBody([{ role: 'user', content: text }]))
    const body = new ReadableStream({
      start(controller) {
        for (let at = 0; at < bytes.length; at += 7)
          controller.enqueue(new Uint8Array(bytes.subarray(at, at + 7)))
        controller.close()
      },
    })
    const response = await simulator.fetch('http://api/v1/messages', {
      method: 'POST',
      headers,
      body,
      duplex: 'half',
    } as RequestInit)
    const { content } = (await response.json()) as { content: { text: string }[] }
    expect(content[0]?.text).toContain(text.slice(0, 100))
    expect(simulator.requests[0]?.bodyBytes).toBe(bytes.length)
  })
})
