/** Under a client, the arguments of tool calls go out as the client writes them, character by character. */
import { anthropic, createTidemark } from 'tidemark'
import { expect, it } from 'vitest'

const ADDRESS = 'https://api.anthropic.com/v1/messages'
const TOOLS = '[{"name":"scale","input_schema":{"type":"object"}}]'

/** A provider whose n-th answer makes a call with the n-th input, and a `fetch` of a session in front of it. */
function createWorld(inputs: readonly string[]) {
  const sent: string[] = []
  const events: string[] = []
  const upstream: typeof globalThis.fetch = async (_, init) => {
    const number = sent.push(String(init?.body))
    const input = inputs[number - 1] ?? '{}'
    const call = `{"type":"tool_use","id":"toolu_${number}","name":"scale","input":${input}}`
    return new Response(
      `{"type":"message","id":"msg_${number}","role":"assistant","model":"claude-sonnet-5-5","content":[${call}],"stop_reason":"tool_use","usage":{"input_tokens":100,"output_tokens":10}}`,
      { headers: { 'content-type': 'application/json' } },
    )
  }
  const tide = createTidemark({
    memory: true,
    model: anthropic('claude-sonnet-5-5', { apiKey: 'any', fetch: upstream }),
    onEvent: ({ type }) => events.push(type),
  })
  const fetch = tide.fetch({ session: 'exact', fetch: upstream })
  return { tide, fetch, sent, events }
}

/** The list of a client that has made so many calls, with the inputs as the client writes them. */
function writeBody(inputs: readonly string[], space = ''): string {
  const turns = inputs.map(
    (input, index) =>
      `{"role":"assistant","content":[{"type":"tool_use","id":${space}"toolu_${index + 1}","name":"scale","input":${space}${input}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_${index + 1}","content":"ok"}]}`,
  )
  const messages = ['{"role":"user","content":"Scale it."}', ...turns].join(',')
  return `{"model":"claude-sonnet-5-5","max_tokens":1000,"messages":[${messages}],"tools":${TOOLS}}`
}

const LONG = '{"ratio":1.0,"count":12345678901234567890,"name":"\\u00e9"}'

it.each([
  ['one that writes compact JSON', ''],
  ['one that writes spaces', ' '],
])('%s: numbers and escapes of its calls are not rewritten', async (_, space) => {
  const inputs = [LONG, '{"ratio":2}', '{"ratio":3.50}']
  const { tide, fetch, sent, events } = createWorld(inputs)
  for (let calls = 0; calls <= inputs.length; calls += 1)
    await fetch(ADDRESS, { method: 'POST', body: writeBody(inputs.slice(0, calls), space) }).then((answer) =>
      answer.text(),
    )
  for (const [index, body] of sent.entries())
    for (const input of inputs.slice(0, index)) expect(body).toContain(`"input":${input}`)
  // The requests are those of the session, whose log has what the client wrote.
  expect(events).not.toContain('request-passed')
  expect(events).not.toContain('host-history-changed')
  await tide.close()
})

it('a client that parses and writes numbers in its own way gets its own way, and no branch', async () => {
  const inputs = [LONG, '{"ratio":3.50}']
  const own = inputs.map((input) => JSON.stringify(JSON.parse(input)))
  const { tide, fetch, sent, events } = createWorld(inputs)
  for (let calls = 0; calls <= inputs.length; calls += 1)
    await fetch(ADDRESS, { method: 'POST', body: writeBody(own.slice(0, calls)) }).then((answer) =>
      answer.text(),
    )
  for (const [index, body] of sent.entries())
    for (const input of own.slice(0, index)) expect(body).toContain(`"input":${input}`)
  expect(events).not.toContain('request-passed')
  expect(events).not.toContain('host-history-changed')
  await tide.close()
})

it('a client that joins with a history is sent as it wrote it, also if the application goes on', async () => {
  const inputs = [LONG, '{"ratio":3.50}']
  const { tide, fetch, sent } = createWorld([])
  for (const count of [2, 2])
    await fetch(ADDRESS, { method: 'POST', body: writeBody(inputs.slice(0, count)) }).then((answer) =>
      answer.text(),
    )
  for (const body of sent) for (const input of inputs) expect(body).toContain(`"input":${input}`)
  const session = await tide.open('exact')
  const next = await session.next({ settle: true })
  expect(next.ok && next.text).toContain(`"input":${LONG}`)
  await tide.close()
})
