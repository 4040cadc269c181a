/** Sessions reported to OpenTelemetry: spans and metrics of turns, calls, tools and compactions. */
import { context, SpanStatusCode } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { type Script, withSummaries } from '@tidemark/simulator'
import { afterEach, describe, expect, it } from 'vitest'
import { CHAT, createObserved, named, parentOf, runTurn } from '../support/observed-tidemark.ts'

afterEach(() => context.disable())

describe('a turn', () => {
  it.each([
    ['without a context manager', false],
    ['with the context manager of the host', true],
  ])('has a span with its model calls and tool calls below it, %s', async (_, isManaged) => {
    if (isManaged) context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
    const observed = createObserved()
    const { end } = await runTurn(observed)
    expect(end.ok).toBe(true)
    const spans = observed.spans()
    const [turn] = named(spans, 'invoke_agent')
    const calls = named(spans, CHAT)
    const tools = spans.filter(({ name }) => name.startsWith('execute_tool '))
    expect(calls).toHaveLength(observed.world.simulator.requests.length)
    expect(tools.length).toBeGreaterThan(2)
    for (const span of [...calls, ...tools]) expect(parentOf(spans, span)).toBe('invoke_agent')
    expect(turn?.attributes).toMatchObject({
      'gen_ai.operation.name': 'invoke_agent',
      'gen_ai.provider.name': 'anthropic',
      'gen_ai.conversation.id': 'observed',
      'gen_ai.request.model': 'claude-sonnet-5-5',
      'tidemark.outcome': 'ok',
    })
    expect(new Set(spans.map((span) => span.spanContext().traceId)).size).toBe(1)
    const failed = observed.events.filter((event) => event.type === 'tool-ended' && event.result.is_error)
    expect(spans.filter(({ status }) => status.code === SpanStatusCode.ERROR)).toHaveLength(failed.length)
  })

  it('counts calls of tools that do not exist under one name, whatever the model invents', async () => {
    const names = ['Read', 'rm_rf_1', 'rm_rf_2', 'rm_rf_3']
    const script: Script = (_, { turn }) => ({
      blocks:
        turn === 0
          ? names.map((name) => ({ type: 'tool_use', name, input: {} }))
          : [{ type: 'text', text: 'Done.' }],
    })
    const observed = createObserved({ script: withSummaries(script) })
    const session = await observed.world.tide.open('invented')
    const tools = [{ name: 'Read', input_schema: { type: 'object' } }]
    for (const prompt of ['Go.', 'Go on.'])
      await session.run(prompt, { tools, runTool: () => 'word '.repeat(2_000) }).outcome
    expect(await session.compact()).toMatchObject({ ok: true })
    const list = async (metric: string, key: string): Promise<ReadonlySet<unknown>> =>
      new Set((await observed.readMetric(metric)).map(({ attributes }) => attributes[key]))
    expect(await list('gen_ai.execute_tool.duration', 'gen_ai.tool.name')).toEqual(
      new Set(['Read', '_OTHER']),
    )
    const kinds = [...(await list('tidemark.compaction.content.tokens', 'tidemark.content.kind'))]
    expect(kinds).toEqual(expect.arrayContaining(['tool_result_Read_tokens', 'tool_result__OTHER_tokens']))
    expect(JSON.stringify(kinds)).not.toContain('rm_rf')
    expect(named(observed.spans(), 'execute_tool _OTHER')).toHaveLength(3)
  })

  it('has the usage that the provider reported, with cached tokens as input', async () => {
    const observed = createObserved()
    await runTurn(observed)
    const answers = observed.events.filter((event) => event.type === 'answered')
    const calls = named(observed.spans(), CHAT)
    expect(calls.map(({ attributes }) => attributes['gen_ai.usage.input_tokens'])).toEqual(
      answers.map(
        ({ usage }) =>
          Number(usage?.input_tokens) +
          Number(usage?.cache_read_input_tokens) +
          Number(usage?.cache_creation_input_tokens),
      ),
    )
    expect(calls[1]?.attributes).toMatchObject({
      'gen_ai.operation.name': 'chat',
      'gen_ai.response.id': answers[1]?.reply.message.id,
      'gen_ai.response.model': 'claude-sonnet-5-5',
      'gen_ai.response.finish_reasons': ['tool_use'],
      'gen_ai.usage.output_tokens': answers[1]?.usage?.output_tokens,
      'gen_ai.usage.cache_read.input_tokens': answers[1]?.usage?.cache_read_input_tokens,
      'gen_ai.request.stream': true,
    })
    const total = calls.reduce(
      (sum, { attributes }) => sum + Number(attributes['gen_ai.usage.input_tokens']),
      0,
    )
    expect(named(observed.spans(), 'invoke_agent')[0]?.attributes['gen_ai.usage.input_tokens']).toBe(total)
    const usage = await observed.readMetric('gen_ai.client.token.usage')
    expect(usage.find(({ attributes }) => attributes['gen_ai.token.type'] === 'input')?.value).toBe(total)
  })

  it('nests below the span that is active in the host, and spans of a tool below its tool call', async () => {
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
    const observed = createObserved()
    const tracer = observed.tracerProvider.getTracer('host')
    const { tools, runTool } = observed.world.tools
    const session = await observed.world.tide.open('nested')
    await tracer.startActiveSpan('request of a user', async (span) => {
      await session.run('Fix the sum of orders.', {
        ...(tools === undefined ? {} : { tools }),
        runTool: async (call, signal) => {
          tracer.startSpan(`work of ${call.name}`).end()
          return (await runTool?.(call, signal)) ?? ''
        },
      }).outcome
      span.end()
    })
    const spans = observed.spans()
    expect(parentOf(spans, named(spans, 'invoke_agent')[0])).toBe('request of a user')
    const work = spans.filter(({ name }) => name.startsWith('work of '))
    expect(work.length).toBeGreaterThan(2)
    for (const span of work) expect(parentOf(spans, span)).toBe(span.name.replace('work of', 'execute_tool'))
  })

  it('of a subagent that a tool runs nests below that tool call, also without a context manager', async () => {
    const observed = createObserved()
    const { tide, tools } = observed.world
    const session = await tide.open('parent')
    await session.run('Fix the sum of orders.', {
      ...tools,
      runTool: async () => {
        const child = await tide.open('child', { source: 'agent:review' }).catch(() => null)
        if (child === null) return 'busy'
        await child.run('Review it.', { tools: [], maxCalls: 1 }).outcome
        await child.close()
        return 'reviewed'
      },
    }).outcome
    const spans = observed.spans()
    const [child] = named(spans, 'invoke_agent review')
    expect(child?.attributes).toMatchObject({
      'gen_ai.agent.name': 'review',
      'gen_ai.conversation.id': 'child',
    })
    expect(parentOf(spans, child)).toMatch(/^execute_tool /)
  })
})

describe('a compaction', () => {
  it('has a span with the summary call below it, its figures and the tokens by kind of content', async () => {
    const observed = createObserved()
    const { session } = await runTurn(observed)
    const end = await session.compact()
    if (!end.ok) throw new Error(end.message)
    const spans = observed.spans()
    const compactions = named(spans, 'tidemark.compaction')
    expect(compactions).toHaveLength(1)
    expect(compactions[0]?.attributes).toMatchObject({
      'tidemark.compaction.outcome': 'committed',
      'tidemark.compaction.trigger': 'manual',
      'tidemark.compaction.tokens_before': end.compaction.tokensBefore,
      'tidemark.compaction.tokens_after': end.compaction.tokensAfter,
      'tidemark.compaction.summary.output_tokens': end.compaction.usage.output,
      'tidemark.compaction.content.human_message_tokens': end.compaction.metrics.human_message_tokens,
    })
    const summary = spans.filter((span) => parentOf(spans, span) === 'tidemark.compaction')
    expect(summary.map(({ name }) => name)).toEqual([CHAT])
    expect(summary[0]?.attributes['tidemark.source']).toBe('compact')

    const count = await observed.readMetric('tidemark.compaction.count')
    expect(count.map(({ value }) => value)).toEqual([1])
    const content = await observed.readMetric('tidemark.compaction.content.tokens')
    const kinds = Object.fromEntries(
      content.map(({ attributes, value }) => [attributes['tidemark.content.kind'], value]),
    )
    expect(kinds).toEqual(end.compaction.metrics)
  })

  it('in a turn is one span below the turn for each, whether with notes, a summary, or prepared beside it', async () => {
    for (const policy of [
      {},
      { notes: { enabled: false }, compact: { background: false } },
      { notes: { enabled: false }, compact: { background: true } },
    ]) {
      const observed = createObserved({ window: 20_000, turns: 60, resultTokens: 900, policy })
      const { end } = await runTurn(observed)
      expect(end.ok).toBe(true)
      await observed.world.tide.close()
      const spans = observed.spans()
      const committed = observed.events.flatMap((event) =>
        event.type === 'compact' ? [event.compaction.id] : [],
      )
      expect(committed.length).toBeGreaterThan(1)
      const ids = named(spans, 'tidemark.compaction').flatMap(({ attributes }) =>
        attributes['tidemark.compaction.outcome'] === 'committed'
          ? [attributes['tidemark.compaction.id']]
          : [],
      )
      expect(ids).toEqual(committed)
      const summaries = spans.filter(({ attributes }) => attributes['tidemark.source'] === 'compact')
      for (const span of summaries) expect(parentOf(spans, span)).toBe('tidemark.compaction')
      for (const span of named(spans, 'tidemark.compaction'))
        expect(parentOf(spans, span)).toBe('invoke_agent')
      const count = await observed.readMetric('tidemark.compaction.count')
      expect(count.reduce((sum, { value }) => sum + value, 0)).toBe(committed.length)
    }
  })
})
