/** What the call for a summary does to the cache, to bound thinking, and to what `undo` gives back. */
import { sampleCases } from '@tidemark/core/testing'
import {
  createCoder,
  createSummarizer,
  type RequestRecord,
  type Script,
  withSummaries,
} from '@tidemark/simulator'
import { type RunOptions, type Session, type TidemarkOptions, user } from 'tidemark'
import { describe, expect, it } from 'vitest'
import { openTestSession, type TestSession } from '../support/test-tidemark.ts'
import { isSummaryBody } from './session-size.ts'

const MODELS = ['claude-sonnet-4-5', 'claude-opus-5', 'claude-opus-5-5', 'claude-sonnet-5-5'] as const
/** Their thinking is bound to all that was said before it. */
const BINDING = ['claude-opus-5-5', 'claude-sonnet-5-5', 'claude-fable-5-1'] as const

interface Worked extends TestSession {
  readonly tools: RunOptions
  /** The second of three prompts. */
  readonly pivot: string
}

const writeSummary = createSummarizer()

/** The provider's own block is turned off where it would be asked first. */
const UP_TO = [
  ['claude-sonnet-4-5', {}],
  ['claude-opus-5', {}],
  ['claude-opus-5-5', { compact: { chain: { block: false } } }],
] as const

async function worked(
  modelId: string,
  policy: TidemarkOptions['policy'] = {},
  summary: Script = writeSummary,
): Promise<Worked> {
  const coder = createCoder({ turns: 6, resultTokens: 1_500, thinkingTokens: 60 })
  const tools: RunOptions = {
    tools: coder.tools,
    runTool: (call) => {
      const { content, is_error } = coder.toolResult(call)
      return { content: String(content), isError: is_error === true }
    },
  }
  const stage = await openTestSession({
    script: withSummaries(coder.script, summary),
    window: 200_000,
    modelId,
    policy,
  })
  const { session } = stage
  await done(session.run('Mend the sums of orders.', tools))
  const [pivot = ''] = await session.append(user('And the dates.'))
  await done(session.run(null, tools))
  await done(session.run('And the names.', tools))
  return { ...stage, tools, pivot }
}

async function done(run: ReturnType<Session['run']>): Promise<void> {
  expect(await run.outcome).toMatchObject({ ok: true })
}

function promptOf({ usage }: Pick<RequestRecord, 'usage'>): number {
  return (usage?.cacheRead ?? 0) + (usage?.write5m ?? 0) + (usage?.write1h ?? 0) + (usage?.input ?? 0)
}

/** A body without its messages and without the id by which the provider explains a cache miss. */
function withoutMessages(body: object): string {
  return JSON.stringify({ ...body, messages: undefined, diagnostics: undefined })
}

/** A body without its marks of the cache. */
function unmarked(body: string): object {
  return JSON.parse(body, (key, value) => (key === 'cache_control' ? undefined : value))
}

describe('the fork that writes a summary', () => {
  it.each(
    sampleCases(
      MODELS.flatMap((model) => (['full', 'from'] as const).map((form) => [model, form] as const)),
      4,
    ),
  )('%s, %s: reads all that was sent before it, and writes nothing', async (model, form) => {
    const { session, simulator, bodies, events, pivot } = await worked(model)
    const [parent] = simulator.requests.slice(-1)
    const end = await session.compact(form === 'full' ? {} : { form, pivot })
    expect(end).toMatchObject({ ok: true, compaction: { summarizer: 'model', fallbackReason: null } })
    const [fork] = simulator.requests.slice(-1)
    expect(isSummaryBody(bodies.at(-1) ?? '')).toBe(true)
    if (parent === undefined || fork === undefined) throw new Error('nothing was sent')
    expect((fork.usage?.cacheRead ?? 0) / promptOf(parent)).toBeGreaterThanOrEqual(0.99)
    expect(fork.usage).toMatchObject({ write5m: 0, write1h: 0 })
    const told = events.flatMap((event) => (event.type === 'fork' ? [event.fork] : []))
    const read = fork.usage?.cacheRead ?? 0
    expect(told).toEqual([
      { source: 'compact', expected: read, read, share: read / promptOf(fork), missed: null },
    ])
  })
})

describe('a summary of what is before a message', () => {
  it.each(sampleCases(UP_TO, 3))(
    '%s: reads the cache through that message, sends what was sent, and writes nothing',
    async (modelId, policy) => {
      const { session, simulator, bodies, events, pivot } = await worked(modelId, policy)
      const parent = JSON.parse(bodies.at(-1) ?? '')
      const end = await session.compact({ form: 'up_to', pivot })
      expect(end).toMatchObject({ ok: true, compaction: { summarizer: 'model', fallbackReason: null } })
      const { messages, ...fields } = JSON.parse(bodies.at(-1) ?? '')
      expect(unmarked(withoutMessages(fields))).toEqual(unmarked(withoutMessages(parent)))
      const shared = messages.length - 1
      expect(unmarked(JSON.stringify(messages.slice(0, -1)))).toEqual(
        unmarked(JSON.stringify(parent.messages.slice(0, shared))),
      )
      expect(JSON.stringify(parent.messages[shared])).toContain('And the dates.')
      expect(JSON.stringify(messages)).not.toContain('And the dates.')
      const [fork] = simulator.requests.slice(-1)
      if (fork === undefined) throw new Error('nothing was sent')
      expect((fork.usage?.cacheRead ?? 0) / promptOf(fork)).toBeGreaterThan(0.8)
      expect(fork.usage).toMatchObject({ write5m: 0, write1h: 0 })
      const read = fork.usage?.cacheRead ?? 0
      expect(events.flatMap((event) => (event.type === 'fork' ? [event.fork] : []))).toMatchObject([
        { source: 'compact', expected: read, read, missed: null },
      ])
      expect(events.filter(({ type }) => type === 'cache-break')).toEqual([])
    },
  )

  it('does not pay for a fork where the cached part has expired, and says so', async () => {
    const { session, clock, bodies, tools, pivot } = await worked('claude-opus-5')
    // The newest part is used again and again while the older entries expire.
    for (const prompt of ['More.', 'And more.', 'And on.']) {
      await clock.advance(200_000)
      await done(session.run(prompt, tools))
    }
    const end = await session.compact({ form: 'up_to', pivot })
    if (!end.ok) throw new Error(end.message)
    const { steps } = end.compaction
    expect(steps.map(({ kind, outcome }) => [kind, outcome])).toEqual([
      ['block', 'skipped'],
      ['fork', 'skipped'],
      ['direct', 'accepted'],
    ])
    expect(steps[1]?.message).toBe('Nothing near the end of the messages to send is still cached.')
    expect(JSON.parse(bodies.at(-1) ?? '').tools).toHaveLength(1)
  })
})

describe('what is kept behind a summary', () => {
  it.each(sampleCases(BINDING, 2))(
    '%s: stays valid through the provider’s own block, thinking and all',
    async (model) => {
      const { session, simulator, bodies, pivot, tools } = await worked(model)
      const kept = JSON.stringify(session.messages()).split('"thinking"').length
      const end = await session.compact({ form: 'up_to', pivot })
      expect(end).toMatchObject({ ok: true, compaction: { summarizer: 'block', fallbackReason: null } })
      const [asked] = simulator.requests.slice(-1)
      if (asked === undefined) throw new Error('nothing was sent')
      expect((asked.usage?.cacheRead ?? 0) / promptOf(asked)).toBeGreaterThan(0.8)
      expect(asked.usage).toMatchObject({ write5m: 0, write1h: 0 })
      const thinking = JSON.stringify(session.messages()).split('"thinking"').length
      expect(thinking).toBeGreaterThan(1)
      expect(thinking).toBeLessThan(kept)
      for (const prompt of ['Go on.', 'And on.']) await done(session.run(prompt, tools))
      expect(simulator.requests.filter(({ status }) => status !== 200)).toEqual([])
      expect(simulator.requests.flatMap(({ transformations }) => transformations)).toEqual([])
      expect(JSON.parse(bodies.at(-1) ?? '').messages[0].content[0]).toMatchObject({ type: 'compaction' })
    },
  )

  it.each([
    [1, 'block'],
    [99, 'model'],
  ])('has no analysis of the provider’s in front of it, if it wrote %i', async (count, summarizer) => {
    let analyses = 0
    const noted: Script = async (request, context) => {
      const reply = await writeSummary(request, context)
      if (request.kind !== 'compaction' || analyses++ >= count) return reply
      return {
        ...reply,
        blocks: [{ type: 'text', text: `<analysis>one by one</analysis>\n${JSON.stringify(reply.blocks)}` }],
      }
    }
    const { session, bodies, simulator, pivot, tools } = await worked('claude-opus-5-5', {}, noted)
    const end = await session.compact({ form: 'up_to', pivot })
    expect(end).toMatchObject({ ok: true, compaction: { summarizer } })
    await done(session.run('Go on.', tools))
    expect(bodies.at(-1)).not.toContain('one by one')
    expect(simulator.requests.filter(({ status }) => status !== 200)).toEqual([])
  })

  it('claude-opus-5-5: goes without its thinking where the provider’s own block is turned off', async () => {
    const coder = createCoder({ turns: 3, thinkingTokens: 60 })
    const policy = { compact: { chain: { block: false } } }
    const script = withSummaries(coder.script)
    const stage = await openTestSession({
      script,
      window: 200_000,
      modelId: 'claude-opus-5-5',
      policy,
    })
    const runTool: RunOptions['runTool'] = (call) => String(coder.toolResult(call).content)
    const tools = { tools: coder.tools, runTool }
    await done(stage.session.run('Mend the sums.', tools))
    const [pivot = ''] = await stage.session.append(user('And the dates.'))
    await done(stage.session.run(null, tools))
    expect(await stage.session.compact({ form: 'up_to', pivot })).toMatchObject({ ok: true })
    await done(stage.session.run('Go on.', tools))
    expect(stage.simulator.requests.filter(({ status }) => status !== 200)).toEqual([])
  })
})

describe('undo', () => {
  it.each(
    // Four of them have every model, form and summarizer.
    sampleCases(
      (['full', 'from', 'up_to'] as const).flatMap((form) =>
        (['model', 'local'] as const).flatMap((summarizer) =>
          (['claude-sonnet-4-5', 'claude-opus-5-5'] as const).map(
            (model) => [model, form, summarizer] as const,
          ),
        ),
      ),
      4,
    ),
  )('%s, %s, by %s: gives back the exact requests', async (model, form, summarizer) => {
    const { session, bodies, simulator, pivot, tools } = await worked(model)
    await session.append(user('What is left?'))
    const before = await session.next()
    if (!before.ok) throw new Error(before.message)
    const end = await session.compact({
      abandon: true,
      summarizer,
      ...(form === 'full' ? {} : { form, pivot }),
    })
    if (!end.ok) throw new Error(end.message)
    expect(await session.undo(end.compaction.id)).toMatchObject({ ok: true })
    const after = await session.next()
    if (!after.ok) throw new Error(after.message)
    expect(unmarked(after.text)).toEqual(unmarked(before.text))
    const sent = bodies.length
    await done(session.run(null, tools))
    expect(unmarked(bodies[sent] ?? '')).toEqual({ ...unmarked(before.text), stream: true })
    expect(simulator.requests.filter(({ status }) => status !== 200)).toEqual([])
  })
})
