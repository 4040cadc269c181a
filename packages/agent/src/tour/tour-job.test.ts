import { createSimulator } from '@tidemark/simulator'
import { describe, expect, it } from 'vitest'
import { createTourModel, TOUR_TOOL_NAMES } from './tour-job.ts'

interface Answer {
  readonly content: readonly { readonly type: string; readonly text?: string; readonly id?: string }[]
  readonly error?: { readonly message: string }
}

type Send = (messages: readonly object[]) => Promise<Answer>

function startModel(refusal: string | null = null): { readonly send: Send; lastSummary(): string | null } {
  const { script, lastSummary } = createTourModel({ refusal })
  const simulator = createSimulator({ script })
  return {
    lastSummary,
    async send(messages) {
      const response = await simulator.fetch('http://localhost/v1/messages', {
        method: 'POST',
        headers: {
          'x-api-key': 'any',
          'anthropic-version': '2023-06-01',
          'content-type': 'application/json',
        },
        body: JSON.stringify({ model: 'claude-sonnet-5-5', max_tokens: 2_000, messages, tools: TOOLS }),
      })
      return (await response.json()) as Answer
    },
  }
}

const TOOLS = TOUR_TOOL_NAMES.map((name) => ({ name, input_schema: { type: 'object' } }))
const ask = (content: string) => ({ role: 'user', content })

/** Plays the first replies of the job, with an empty result for each tool call. */
async function play(send: Send, replies: number): Promise<readonly object[]> {
  let messages: readonly object[] = [ask('Fix it.')]
  for (let count = 0; count < replies; count += 1) {
    const { content, error } = await send(messages)
    if (error !== undefined) throw new Error(error.message)
    const results = content.flatMap(({ id }) =>
      id === undefined ? [] : [{ type: 'tool_result', tool_use_id: id, content: 'ok' }],
    )
    const next = results.length === 0 ? [ask('Go on.')] : [{ role: 'user', content: results }]
    messages = [...messages, { role: 'assistant', content }, ...next]
  }
  return messages
}

describe('the simulated model of the tour', () => {
  it('gives a request that is sent again the same reply again', async () => {
    const { send } = startModel()
    const messages = await play(send, 3)
    const [one, other] = [await send(messages), await send(messages)]
    expect([one.content, one.content[0]?.text]).toEqual([other.content, 'The invoice and what it uses.'])
  })

  it('goes on where it was after its conversation was summarized', async () => {
    const { send, lastSummary } = startModel()
    const messages = await play(send, 5)
    expect(lastSummary()).toBeNull()
    const summary = await send([...messages, ask('Write an <analysis> and a <summary> of the conversation.')])
    expect([summary.content[0]?.text, lastSummary()?.includes('Fix it.')]).toEqual([lastSummary(), true])
    const { content } = await send([ask('A summary.')])
    expect(content[0]?.text).toBe('What the tests expect.')
  })

  it('refuses one request, and answers it when it is sent again', async () => {
    const refusal = 'prompt is too long: 2 tokens > 1 maximum'
    const { send } = startModel(refusal)
    await expect(play(send, 60)).rejects.toThrow(refusal)
    const { content } = await send([ask('A summary.')])
    expect(content[0]?.text).toBe('Friday, to be sure.')
  })

  it('comes to an end', async () => {
    const { send } = startModel()
    const { content } = await send(await play(send, 60))
    expect(content.map(({ text }) => text?.slice(0, 5))).toEqual(['Done:'])
  })
})
