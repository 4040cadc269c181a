/** Telemetry where something goes wrong, what it tells without being asked, and telemetry that fails itself. */
import { context, SpanStatusCode, trace } from '@opentelemetry/api'
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace'
import type { Fault, Script } from '@tidemark/simulator'
import { openTelemetry } from 'tidemark/telemetry'
import { afterEach, describe, expect, it } from 'vitest'
import { CHAT, createObserved, named, runTurn } from '../support/observed-tidemark.ts'
import { createTestTidemark } from '../support/test-tidemark.ts'

afterEach(() => context.disable())

describe('faults', () => {
  const failing = (fault: Fault, times: number): Script => {
    let calls = 0
    return () => {
      calls += 1
      return { blocks: [{ type: 'text', text: 'Done.' }], ...(calls <= times ? { fault } : {}) }
    }
  }

  it('of the provider are errors of the call and of the turn, without the message of the provider', async () => {
    const observed = createObserved({
      script: failing({ type: 'status', status: 401, errorType: 'authentication_error' }, 9),
    })
    const { end } = await runTurn(observed)
    expect(end).toMatchObject({ ok: false, reason: 'failed' })
    const spans = observed.spans()
    const [call] = named(spans, CHAT)
    expect(call?.status).toEqual({ code: SpanStatusCode.ERROR })
    expect(call?.attributes).toMatchObject({ 'error.type': 'auth', 'http.response.status_code': 401 })
    const [turn] = named(spans, 'invoke_agent')
    expect(turn?.status).toEqual({ code: SpanStatusCode.ERROR })
    expect(turn?.attributes['error.type']).toBe('failed')
    expect(await observed.readMetric('gen_ai.invoke_agent.duration')).toMatchObject([
      { attributes: { 'error.type': 'failed' } },
    ])
  })

  it('that pass are events of the call that was repeated, and counted', async () => {
    const observed = createObserved({
      script: failing({ type: 'status', status: 529, errorType: 'overloaded_error' }, 2),
      policy: { turn: { network: { firstDelayMs: 1, maximumDelayMs: 2 } } },
    })
    const { end } = await runTurn(observed)
    expect(end.ok).toBe(true)
    const [call, ...more] = named(observed.spans(), CHAT)
    expect(more).toEqual([])
    expect(call?.events.map(({ name, attributes }) => [name, attributes?.['tidemark.reason']])).toEqual([
      ['tidemark.retrying', 'overloaded'],
      ['tidemark.retrying', 'overloaded'],
    ])
    expect(await observed.readMetric('tidemark.retry.count')).toMatchObject([{ value: 2 }])
  })

  it('that a tool throws are an error of its span; an abort ends all spans and is no error', async () => {
    const observed = createObserved()
    const session = await observed.world.tide.open('aborted')
    const { tools } = observed.world.tools
    const stop = new AbortController()
    let calls = 0
    const end = await session.run('Fix the sum of orders.', {
      ...(tools === undefined ? {} : { tools }),
      signal: stop.signal,
      runTool: () => {
        calls += 1
        if (calls === 1) throw new Error('The disk is full.')
        stop.abort()
        return new Promise<string>(() => {})
      },
    }).outcome
    expect(end).toMatchObject({ ok: false, reason: 'aborted' })
    const spans = observed.spans()
    const toolSpans = spans.filter(({ name }) => name.startsWith('execute_tool '))
    expect(toolSpans.map(({ attributes, status }) => [attributes['error.type'], status.code])).toEqual([
      ['tool_error', SpanStatusCode.ERROR],
      ['aborted', SpanStatusCode.UNSET],
    ])
    const [turn] = named(spans, 'invoke_agent')
    expect([turn?.attributes['tidemark.outcome'], turn?.status.code]).toEqual([
      'aborted',
      SpanStatusCode.UNSET,
    ])
  })
})

describe('content', () => {
  const secret = 'The vault code is 7741-PELICAN.'

  it('is in no span and no metric unless the host asks for it', async () => {
    const observed = createObserved({ system: secret })
    const session = await observed.world.tide.open('private')
    await session.run(secret, {
      ...observed.world.tools,
      runTool: () => ({ content: secret, isError: true }),
    }).outcome
    await session.compact({ instructions: secret })
    const all = JSON.stringify(
      observed.spans().map(({ name, attributes, events, status }) => ({ name, attributes, events, status })),
    )
    expect(all).not.toContain('PELICAN')
    expect(all.length).toBeGreaterThan(1_000)
  })

  it('is in the spans as the conventions name it if the host asks, with credentials redacted', async () => {
    const observed = createObserved(
      { system: 'Key: sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789' },
      { content: true },
    )
    const session = await observed.world.tide.open('open')
    await session.run(secret, { ...observed.world.tools, runTool: () => secret }).outcome
    const [call] = named(observed.spans(), CHAT)
    expect(JSON.parse(String(call?.attributes['gen_ai.input.messages']))).toEqual([
      { role: 'user', parts: [{ type: 'text', content: secret }] },
    ])
    expect(String(call?.attributes['gen_ai.system_instructions'])).toContain('[redacted]')
    expect(String(call?.attributes['gen_ai.output.messages'])).toContain('tool_call')
    const tool = observed.spans().find(({ name }) => name.startsWith('execute_tool '))
    expect(tool?.attributes['gen_ai.tool.call.result']).toBe(JSON.stringify(secret))
  })
})

describe('telemetry that fails', () => {
  const hostile = (): never => {
    throw new Error('telemetry is down')
  }
  const everythingThrows = new Proxy({}, { get: () => hostile }) as never

  it.each([
    ['a tracer that throws', { getTracer: () => ({ startSpan: hostile, startActiveSpan: hostile }) }, null],
    ['spans that throw', { getTracer: () => ({ startSpan: () => everythingThrows }) }, null],
    [
      'instruments that throw',
      null,
      {
        getMeter: () => ({ createHistogram: () => everythingThrows, createCounter: () => everythingThrows }),
      },
    ],
  ])('changes nothing: %s', async (_, tracerProvider, meterProvider) => {
    const plain = createTestTidemark({ seed: 'one' })
    const observed = createTestTidemark({
      seed: 'one',
      telemetry: openTelemetry({
        tracerProvider: tracerProvider as never,
        meterProvider: meterProvider as never,
        content: true,
      }),
    })
    const ends = []
    for (const world of [plain, observed]) {
      const session = await world.tide.open('same')
      const run = await session.run('Fix the sum of orders.', world.tools).outcome
      const compaction = await session.compact()
      ends.push({ run, ok: compaction.ok, bodies: world.bodies.length })
    }
    expect(ends[1]).toEqual(ends[0])
    expect(ends[0]).toMatchObject({ run: { ok: true }, ok: true })
  })

  it('a context manager that throws does not stop a turn', async () => {
    context.setGlobalContextManager({
      active: hostile,
      with: hostile,
      bind: hostile,
      enable: hostile,
      disable: () => undefined as never,
    })
    const observed = createObserved()
    const { end } = await runTurn(observed)
    expect(end.ok).toBe(true)
  })
})

describe('without the option', () => {
  it('nothing is reported, even if the program has registered providers', async () => {
    const exporter = new InMemorySpanExporter()
    trace.setGlobalTracerProvider(
      new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] }),
    )
    const world = createTestTidemark()
    const session = await world.tide.open('quiet')
    await session.run('Fix the sum of orders.', world.tools).outcome
    expect(exporter.getFinishedSpans()).toEqual([])
    const asked = createTestTidemark({ telemetry: openTelemetry() })
    await (await asked.tide.open('asked')).run('Fix the sum of orders.', asked.tools).outcome
    expect(named(exporter.getFinishedSpans(), 'invoke_agent')).toHaveLength(1)
    trace.disable()
  })

  it('a wrong one is refused with a message that names it', () => {
    expect(() => createTestTidemark({ telemetry: {} as never })).toThrow(/telemetry .*openTelemetry/)
    expect(() => openTelemetry({ tracerProvider: {} as never })).toThrow(/getTracer/)
    expect(() => openTelemetry({ contents: true } as never)).toThrow(/content/)
  })
})
