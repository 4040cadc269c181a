/** Servers that give one id to several calls: each call has its own result, and each question of the user its own answer. */
import OpenAI from 'openai'
import { compatible, createTidemark, tool } from 'tidemark'
import { describe, expect, it } from 'vitest'

interface Message {
  readonly role: string
  readonly content: unknown
  readonly tool_call_id?: string
  readonly tool_calls?: readonly { readonly id: string; readonly function: { readonly arguments: string } }[]
}

const QUESTIONS = [
  ['One?', 'Two?', 'Three?'],
  ['Four?', 'Five?'],
]

/** Asks the questions, all calls with one id, then ends. */
function createServer() {
  const sent: (readonly Message[])[] = []
  const fetch = async (_: unknown, init?: RequestInit): Promise<Response> => {
    sent.push(JSON.parse(String(init?.body)).messages)
    const asked = QUESTIONS[sent.length - 1] ?? []
    const tool_calls = asked.map((question, index) => ({
      index,
      id: 'call_0',
      type: 'function',
      function: { name: 'ask', arguments: JSON.stringify({ question }) },
    }))
    const head = { id: `c${sent.length}`, model: 'm' }
    const delta = { role: 'assistant', ...(asked.length === 0 ? { content: 'Done.' } : { tool_calls }) }
    const finish_reason = asked.length === 0 ? 'stop' : 'tool_calls'
    const usage = { prompt_tokens: 500 * sent.length, completion_tokens: 20 }
    const chunks = [
      { ...head, choices: [{ index: 0, delta, finish_reason: null }] },
      { ...head, choices: [{ index: 0, delta: {}, finish_reason }], usage },
    ]
    const lines = [...chunks.map((chunk) => JSON.stringify(chunk)), '[DONE]']
    return new Response(lines.map((line) => `data: ${line}\n\n`).join(''), {
      headers: { 'content-type': 'text/event-stream' },
    })
  }
  return { sent, fetch }
}

/** The answer that the model reads to each of its questions: results with one id belong to the calls in their order. */
function readAnswers(messages: readonly Message[]): readonly (readonly [string, unknown])[] {
  const results = messages.filter(({ role }) => role === 'tool')
  return messages
    .flatMap(({ tool_calls = [] }) => tool_calls)
    .map(({ id, function: { arguments: text } }) => {
      const at = results.findIndex(({ tool_call_id }) => tool_call_id === id)
      return [JSON.parse(text).question, results.splice(at, 1)[0]?.content] as const
    })
}

describe('a server that gives one id to all calls of a response', () => {
  it('reads for each question the answer to it, also where tools run at the same time and end in another order', async () => {
    const { sent, fetch } = createServer()
    const model = compatible('m', { baseUrl: 'http://server.test/v1', window: 32_000, fetch })
    const session = await createTidemark({ model, memory: true }).open('asked')
    const ask = tool({
      description: 'Asks the user.',
      input: { type: 'object', properties: { question: { type: 'string' } }, required: ['question'] },
      parallel: true,
      run: async ({ question }: { readonly question: string }) => {
        // The first question of a response is answered last, if the others are asked beside it.
        if (question === 'One?' || question === 'Four?')
          for (let ticks = 0; ticks < 20; ticks += 1) await new Promise((resolve) => setImmediate(resolve))
        const text = `To "${question}" yes.`
        return { content: text, answers: [{ question, options: [], text }] }
      },
    })
    const outcome = await session.run('Ask me.', { tools: { ask } }).outcome
    expect(outcome).toMatchObject({ ok: true, text: 'Done.' })
    const expected = QUESTIONS.flat().map((question) => [question, `To "${question}" yes.`])
    expect(readAnswers(sent.at(-1) ?? [])).toEqual(expected)
    const compacted = await session.compact()
    const shown = JSON.stringify([compacted, session.messages()])
    for (const [, answer] of expected) expect(shown).toContain(JSON.stringify(answer).slice(1, -1))
    await session.close()
  })

  it('is managed under a client, which answers the calls in their order', async () => {
    const { sent, fetch } = createServer()
    const model = compatible('m', { baseUrl: 'http://server.test/v1', window: 32_000, fetch })
    const passed: string[] = []
    const tide = createTidemark({
      model,
      memory: true,
      onEvent: (event) => void (event.type === 'request-passed' && passed.push(event.message)),
    })
    const client = new OpenAI({
      apiKey: 'any',
      baseURL: 'http://server.test/v1',
      fetch: tide.fetch({ session: 'client', fetch }),
      maxRetries: 0,
    })
    const tools: OpenAI.ChatCompletionTool[] = [{ type: 'function', function: { name: 'ask' } }]
    const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: 'Ask me.' }]
    for (;;) {
      const stream = client.chat.completions.stream({ model: 'm', tools, messages })
      const [choice] = (await stream.finalChatCompletion()).choices
      const tool_calls = (choice?.message.tool_calls ?? []).filter((call) => call.type === 'function')
      if (tool_calls.length === 0) break
      messages.push({ role: 'assistant', tool_calls })
      for (const { id, function: called } of tool_calls) {
        const { question } = JSON.parse(called.arguments)
        messages.push({ role: 'tool', tool_call_id: id, content: `To "${question}" yes.` })
      }
    }
    expect(passed).toEqual([])
    const expected = QUESTIONS.flat().map((question) => [question, `To "${question}" yes.`])
    expect(readAnswers(sent.at(-1) ?? [])).toEqual(expected)
    await tide.close()
  })
})
