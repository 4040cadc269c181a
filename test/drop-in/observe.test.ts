/** `tide.fetch` in the mode `observe`: nothing is changed, everything is recorded and explained. */
import type { SessionEvent } from 'tidemark'
import { describe, expect, it } from 'vitest'
import {
  ClientAgent,
  type ClientSettings,
  createDropInWorld,
  type Fetch,
  withMarkers,
} from './client-agent.ts'

describe('observing', () => {
  it('changes no byte of any request or response, and records the conversation with its cost', async () => {
    const calls: [unknown, unknown][] = []
    const world = createDropInWorld()
    const wire: Fetch = (input, init) => {
      calls.push([input, init])
      return world.upstream(input, init)
    }
    const observing = world.tide.fetch({ session: 'talk', fetch: wire, mode: 'observe' })
    const given: [unknown, unknown][] = []
    const host = new ClientAgent((input, init) => {
      given.push([input, init])
      return observing(input, init)
    }, world.coder)
    await host.ask('Mend the sums.')
    expect(calls.map(([input, init]) => [input, init])).toEqual(given)
    expect(calls.every(([, init], index) => init === given[index]?.[1])).toBe(true)
    const direct = createDropInWorld()
    const alone = new ClientAgent(direct.upstream, direct.coder)
    await alone.ask('Mend the sums.')
    expect(host.messages).toEqual(alone.messages)
    expect(world.sent).toEqual(direct.sent)
    const session = await world.tide.sessions()
    expect(session).toEqual(['talk'])
    expect(world.events.filter(({ type }) => type === 'appended').length).toBeGreaterThan(5)
  })

  function observe(settings: ClientSettings, turns: number) {
    const world = createDropInWorld({ turns })
    const fetch = world.tide.fetch({ session: 'talk', fetch: world.upstream, mode: 'observe' })
    return { ...world, host: new ClientAgent(fetch, world.coder, settings) }
  }

  function pick<Type extends SessionEvent['type']>(events: readonly SessionEvent[], type: Type) {
    return events.filter(
      (event): event is Extract<SessionEvent, { readonly type: Type }> => event.type === type,
    )
  }

  it('tells what each response cost, as the provider bills it', async () => {
    const { host, events, simulator } = observe({ prepare: withMarkers }, 8)
    await host.ask('Mend the sums.')
    const priced = pick(events, 'priced')
    expect(priced.map(({ call }) => call.money.total)).toEqual(
      simulator.requests.map(({ cost }) => cost?.total),
    )
    const total = simulator.requests.reduce((sum, { cost }) => sum + (cost?.total ?? 0), 0)
    expect(priced.at(-1)?.totals.spent.total).toBeCloseTo(total, 6)
    expect(pick(events, 'cache-break')).toEqual([])
  })

  it.each<[string, (body: Record<string, unknown>, number: number) => Record<string, unknown>, string]>([
    [
      'the effort',
      (body, number) => ({ ...body, output_config: { effort: number < 8 ? 'high' : 'low' } }),
      'effort',
    ],
    [
      'the tools',
      (body, number) => ({ ...body, tools: (body.tools as object[]).slice(number < 8 ? 0 : 1) }),
      'tool',
    ],
    [
      'the system prompt',
      (body, number) => ({ ...body, system: `${body.system}${number < 8 ? '' : 'Hurry.'}` }),
      'system',
    ],
  ])('explains a cache break by the change of %s', async (_, change, word) => {
    const prepare = (body: Record<string, unknown>, number: number) => withMarkers(change(body, number))
    const { host, events } = observe({ prepare }, 12)
    await host.ask('Mend the sums.')
    const breaks = pick(events, 'cache-break')
    expect(breaks).toHaveLength(1)
    const logged = pick(events, 'appended').flatMap(({ records }) => records)
    expect(JSON.stringify(logged.filter((record) => 'cacheLoss' in record))).toContain(word)
    expect(breaks[0]?.event.sentence).toContain(word)
  })
})

describe('a request that is passed on because the provider refused that of the engine', () => {
  it('is in the log with its response and usage, and the size of the context is what the provider counted', async () => {
    const world = createDropInWorld({ turns: 8 })
    const picky: Fetch = async (input, init) => {
      if (!String(init?.body).includes('diagnostics')) return world.upstream(input, init)
      const error = { type: 'invalid_request_error', message: 'diagnostics: not allowed' }
      return Response.json({ type: 'error', error }, { status: 400 })
    }
    const session = await world.tide.open('talk')
    const host = new ClientAgent(world.tide.fetch({ session, fetch: picky }), world.coder)
    host.messages.push({ role: 'user', content: 'Mend the sums.' })
    for (let step = 0; step < 4; step += 1) await host.step()
    expect(world.listMessages('request-passed')).toHaveLength(4)
    const { usage } = world.simulator.requests.at(-1) ?? {}
    const { calls, spent } = session.money()
    expect(calls).toBe(4)
    const billed = world.simulator.requests.reduce((sum, { cost }) => sum + (cost?.total ?? 0), 0)
    expect(spent.total).toBeCloseTo(billed, 6)
    const { tokens: used, source } = session.contextRemaining()
    expect(source).toBe('both')
    expect(used).toBeGreaterThan(usage?.input ?? Number.NaN)
    expect(used).toBeLessThan((usage?.input ?? 0) + 1_500)
  })

  it('gives the provider no message id that it does not know', async () => {
    const world = createDropInWorld({ turns: 6 })
    const host = new ClientAgent(world.tide.fetch({ session: 'talk', fetch: world.upstream }), world.coder)
    host.messages.push(
      { role: 'user', content: 'Mend the sums.' },
      { role: 'assistant', content: 'Which ones?' },
      { role: 'user', content: 'All of them.' },
    )
    while (await host.step());
    const asked = world.sent.map((body) => JSON.parse(body).diagnostics?.previous_message_id)
    expect(asked[0]).toBeUndefined()
    expect(asked.slice(1).every((id) => /^msg_/.test(id))).toBe(true)
  })
})

it('thinking that a model drops at a new prompt is named as the cause of the break, not the provider', async () => {
  const model = 'claude-sonnet-4-5'
  const fields = { max_tokens: 8_000, thinking: { type: 'enabled', budget_tokens: 4_000 } }
  const world = createDropInWorld({ modelId: model, turns: 10, resultTokens: 1_500, thinkingTokens: 800 })
  const fetch = world.tide.fetch({ session: 'talk', fetch: world.upstream, mode: 'observe' })
  const host = new ClientAgent(fetch, world.coder, { model, fields, prepare: withMarkers })
  for (const prompt of ['Fix the sums.', 'And the taxes.', 'And the rest.']) await host.ask(prompt)
  const breaks = world.events.flatMap((event) => (event.type === 'cache-break' ? [event.event] : []))
  expect(breaks.map(({ reason }) => reason.kind)).toEqual(['thinking-dropped', 'thinking-dropped'])
  expect(breaks[0]?.sentence).toContain('not shown the thinking of finished turns')
})
