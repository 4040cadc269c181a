/** What a compaction under a client keeps: the client does not know of it, so it says nothing twice. */
import Anthropic from '@anthropic-ai/sdk'
import { betaTool } from '@anthropic-ai/sdk/helpers/beta/json-schema'
import { expect, it } from 'vitest'
import { ClientAgent, type ClientBlock, type ClientMessage, createDropInWorld } from './client-agent.ts'

/** The messages that were sent, by request. */
function listSent(sent: readonly string[]): readonly (readonly ClientMessage[])[] {
  return sent.map((body) => JSON.parse(body).messages)
}

it('the rules and the environment of the first request stay verbatim', async () => {
  const { tide, coder, sent, upstream, events } = createDropInWorld({
    window: 20_000,
    turns: 60,
    resultTokens: 600,
  })
  const host = new ClientAgent(tide.fetch({ session: 'talk', fetch: upstream }), coder)
  const rules = { type: 'text', text: '<system-reminder>Never touch the folder legacy.</system-reminder>' }
  const environment = [{ type: 'text', text: '# Environment\nWorking directory: /shop' }]
  host.messages.push({ role: 'user', content: [rules, { type: 'text', text: 'Fix the sums.' }] })
  host.messages.push({ role: 'system', content: environment })
  while (await host.step());
  const last = listSent(sent).at(-1) ?? []
  expect(events.filter(({ type }) => type === 'compact').length).toBeGreaterThan(0)
  expect(last.length).toBeLessThan(host.messages.length)
  expect(JSON.stringify(last[0])).toContain(rules.text)
  expect(last.filter(({ role }) => role === 'system')).toMatchObject([{ content: environment }])
})

it('the tool runner, which sends only what is new, is recovered from an overflow that was not foreseen', async () => {
  const { tide, coder, upstream, simulator, listMessages } = createDropInWorld({
    turns: 30,
    resultTokens: 1_500,
    simulator: { window: 30_000 },
  })
  const client = new Anthropic({ apiKey: 'any', fetch: tide.fetch({ session: 'talk', fetch: upstream }) })
  const tools = coder.tools.map(({ name, description, input_schema }) =>
    betaTool({
      name: String(name),
      description: String(description),
      inputSchema: input_schema as { type: 'object' },
      run: (input, context) => {
        const id = context?.toolUse.id ?? ''
        return String(coder.toolResult({ id, name: String(name), input: Object(input) }).content)
      },
    }),
  )
  const messages = [{ role: 'user' as const, content: 'Fix the sums.' }]
  const model = 'claude-sonnet-5-5'
  const { stop_reason } = await client.beta.messages.toolRunner({ model, max_tokens: 1_000, tools, messages })
  expect(stop_reason).toBe('end_turn')
  const refused = simulator.requests.flatMap(({ error }) => error?.message ?? [])
  expect(refused.length).toBeGreaterThan(0)
  expect(refused.filter((message) => !message.startsWith('prompt is too long'))).toEqual([])
  expect(listMessages('request-passed')).toEqual([])
})

it('after the own compaction of a client, its environment and its reminders stay verbatim', async () => {
  const world = createDropInWorld({ window: 20_000, turns: 60, resultTokens: 600 })
  const { tide, coder, sent, upstream, events } = world
  const host = new ClientAgent(tide.fetch({ session: 'talk', fetch: upstream }), coder)
  host.messages.push({ role: 'user', content: 'Fix the sums.' })
  for (let step = 0; step < 6; step += 1) await host.step()
  // As Claude Code does: the summary, the last exchange, what it says again, and the environment.
  const summary = {
    type: 'text',
    text: 'This session is being continued. Summary: the sums are being fixed.',
  }
  const [call, results] = host.messages.slice(-2) as [ClientMessage, ClientMessage]
  const rules = { type: 'text', text: '<system-reminder>Never touch the folder legacy.</system-reminder>' }
  const environment = [{ type: 'text', text: '# Environment\nWorking directory: /shop' }]
  host.messages = [
    { role: 'user', content: [summary] },
    call,
    { role: 'user', content: [...(results.content as ClientBlock[]), rules] },
    { role: 'system', content: environment },
  ]
  while (await host.step());
  expect(events.filter(({ type }) => type === 'compact').length).toBeGreaterThan(0)
  const last = listSent(sent).at(-1) ?? []
  expect(last.length).toBeLessThan(host.messages.length)
  expect(JSON.stringify(last)).toContain(rules.text)
  expect(last.filter(({ role }) => role === 'system')).toMatchObject([{ content: environment }])
})

it('what a client says again in one message with its own summary and the prompt stays verbatim', async () => {
  const policy = { dropIn: { pinTokens: 1_000 } }
  const world = createDropInWorld({ window: 20_000, turns: 60, resultTokens: 600, policy })
  const { tide, coder, sent, upstream, events } = world
  const host = new ClientAgent(tide.fetch({ session: 'talk', fetch: upstream }), coder)
  host.messages.push({ role: 'user', content: 'Fix the sums.' })
  for (let step = 0; step < 6; step += 1) await host.step()
  const summary = `This session is being continued. ${'The sums are being fixed. '.repeat(400)}`
  const environment = '<system-reminder>\nFolder: /shop. Deferred tools: mcp__db__query.\n</system-reminder>'
  const files = `<system-reminder>\n${'const sum = 1\n'.repeat(1_500)}</system-reminder>`
  const content = [summary, environment, 'Now the taxes.', files].map((text) => ({ type: 'text', text }))
  host.messages = [{ role: 'user', content }, ...host.messages.slice(-2)]
  await host.step()
  expect(listSent(sent).at(-1)?.[0]).toMatchObject({ role: 'user', content })
  while (await host.step());
  expect(events.filter(({ type }) => type === 'compact').length).toBeGreaterThan(0)
  const last = listSent(sent).at(-1) ?? []
  expect(last.length).toBeLessThan(host.messages.length)
  const texts = last.flatMap(({ content }) => (typeof content === 'string' ? [] : content))
  expect(texts).toContainEqual({ type: 'text', text: environment })
  expect(JSON.stringify(texts)).toContain('Now the taxes.')
  // More than `dropIn.pinTokens` of them together do not stay, and neither does the client's own summary.
  for (const text of [summary, files]) expect(texts).not.toContainEqual({ type: 'text', text })
})

it('a client that joins with a long history is still compacted', async () => {
  const direct = createDropInWorld({ turns: 80, resultTokens: 3_000 })
  const before = new ClientAgent(direct.upstream, direct.coder)
  before.messages.push({ role: 'user', content: 'Fix the sums.' })
  while (JSON.stringify(before.messages).length < 600_000) await before.step()
  const world = createDropInWorld({ window: 160_000, turns: 80, resultTokens: 3_000 })
  const { tide, coder, upstream, events, simulator } = world
  const host = new ClientAgent(tide.fetch({ session: 'talk', fetch: upstream }), coder)
  host.messages = before.messages
  expect(await host.count()).toBeGreaterThan(140_000)
  for (let step = 0; step < 12; step += 1) await host.step()
  const rewrites = events.filter(({ type }) => type === 'compact' || type === 'microcompact')
  expect(rewrites.length).toBeGreaterThan(0)
  expect(simulator.requests.at(-1)?.status).toBe(200)
})
