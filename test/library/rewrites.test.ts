/** Compacting, undoing, pinning and switching through the library's face, on the simulator. */
import { hostSource } from '@tidemark/core/sources/builtin-sources'
import { createCoder, withSummaries } from '@tidemark/simulator'
import { anthropic, user } from 'tidemark'
import { describe, expect, it } from 'vitest'
import { createTestTidemark, type TestTidemark } from '../support/test-tidemark.ts'

async function worked(world: TestTidemark, id = 'a') {
  const session = await world.tide.open(id)
  const end = await session.run('Mend the sums of orders.', world.tools).outcome
  if (!end.ok) throw new Error(end.message)
  return session
}

describe('a compaction', () => {
  it('counts what it found by kind, with the summaries of earlier ones: 100 percent, and no more than was measured', async () => {
    const world = createTestTidemark()
    const session = await worked(world)
    for (const isFirst of [true, false, false]) {
      const end = await session.compact()
      if (!end.ok) throw new Error(end.message)
      const { metrics, tokensBefore } = end.compaction
      const shares = Object.entries(metrics).filter(
        ([name]) => name.endsWith('_percent') && name !== 'duplicate_read_percent',
      )
      expect(shares.reduce((sum, [, percent]) => sum + percent, 0)).toBe(100)
      expect((metrics.summary_tokens ?? 0) > 0).toBe(!isFirst)
      expect(metrics.total_tokens).toBeLessThanOrEqual(tokensBefore)
      await session.run('Mend the sums of orders.', world.tools).outcome
    }
  })

  it('in one step or in three is smaller, keeps the pin, and undone it is what it was', async () => {
    const world = createTestTidemark()
    const session = await world.tide.open('a')
    const [rule = ''] = await session.append(user('Amounts are in cents, always.'))
    expect(await session.pin(rule)).toEqual({ ok: true })
    await session.run('Mend the sums of orders.', world.tools).outcome
    const before = session.messages()
    const tokens = session.contextRemaining().tokens

    const plan = await session.planCompaction()
    if (!plan.ok) throw new Error(plan.message)
    expect(session.messages()).toEqual(before)
    const draft = await session.prepare(plan)
    if (!draft.ok) throw new Error(draft.message)
    expect(session.messages()).toEqual(before)
    const end = await session.commit(draft)
    if (!end.ok) throw new Error(end.message)
    expect(end.compaction).toMatchObject({ trigger: 'manual', cause: 'person', tokensBefore: tokens })
    expect(session.contextRemaining().tokens).toBe(end.compaction.tokensAfter)
    expect(end.compaction.tokensAfter).toBeLessThan(tokens)
    expect(JSON.stringify(session.messages())).toContain('Amounts are in cents, always.')

    expect(await session.undo(end.compaction.id)).toMatchObject({ ok: true, kind: 'compact' })
    expect(session.messages()).toEqual(before)
    expect(await session.undo()).toMatchObject({ ok: false, reason: 'nothing-to-undo' })
    expect(await session.unpin(rule)).toEqual({ ok: true })
    expect(await session.pin('nobody')).toMatchObject({ ok: false, reason: 'unknown-record' })
  })

  it.each(['up_to', 'from'] as const)(
    'of a part (%s), with thinking that is bound to all before it',
    async (form) => {
      const world = createTestTidemark({ thinkingTokens: 20 })
      const session = await worked(world)
      const [pivot = ''] = await session.append(user('And the dates.'))
      await session.run(null, world.tools).outcome
      await session.run('And the names.', world.tools).outcome
      const before = session.messages()
      const end = await session.compact({ form, pivot })
      if (!end.ok) throw new Error(end.message)
      expect(await session.run('Go on.', world.tools).outcome).toMatchObject({ ok: true })
      expect(await session.undo(end.compaction.id)).toMatchObject({ ok: true })
      expect(session.messages().slice(0, before.length - 1)).toEqual(before.slice(0, -1))
      expect(world.simulator.requests.filter(({ status }) => status !== 200)).toEqual([])
    },
  )

  it('that the user asks for far below its target cuts none of their words', async () => {
    const script = withSummaries(() => ({ blocks: [{ type: 'text', text: 'Done. '.repeat(2_500) }] }))
    const world = createTestTidemark({
      modelId: 'claude-sonnet-4-5',
      window: 200_000,
      realWindow: 200_000,
      script,
    })
    const session = await world.tide.open('a')
    const lines = 'Amounts are in cents, and never rounded. '.repeat(900)
    const prompts = ['invoices', 'dates', 'names', 'taxes', 'sums', 'tests'].map(
      (name) => `The ${name}: ${lines}`,
    )
    for (const prompt of prompts) await session.run(prompt).outcome
    const readMissing = () => {
      const shown = JSON.stringify(session.messages())
      return prompts.filter((prompt) => !shown.includes(prompt.trim()))
    }
    const end = await session.compact()
    if (!end.ok) throw new Error(end.message)
    expect(end.compaction.tokensAfter).toBeLessThan(end.compaction.tokensBefore)
    expect(readMissing()).toEqual([])
    // A target of the user's own is what they want to be met.
    expect(await session.compact({ target: 15_000 })).toMatchObject({ ok: true })
    expect(readMissing()).not.toEqual([])
  })

  it('that the user asks for, and that only cutting their words would make smaller, is not worth it', async () => {
    const script = withSummaries(() => ({ blocks: [{ type: 'text', text: 'Done.' }] }))
    const world = createTestTidemark({
      modelId: 'claude-opus-5-5',
      window: 200_000,
      realWindow: 200_000,
      script,
    })
    const session = await world.tide.open('a')
    for (const name of ['The invoices:', 'The dates:', 'The names:'])
      await session.run(`${name} ${'Amounts are in cents, and never rounded. '.repeat(1_200)}`).outcome
    const before = session.messages()
    expect(await session.compact()).toMatchObject({
      ok: false,
      reason: 'not-smaller',
      message: expect.stringContaining("are the user's own words"),
    })
    expect(session.messages()).toEqual(before)
  })

  it('takes in what a person edited of the draft', async () => {
    const session = await worked(createTestTidemark())
    const plan = await session.planCompaction()
    if (!plan.ok) throw new Error(plan.message)
    const draft = await session.prepare(plan)
    if (!draft.ok) throw new Error(draft.message)
    const end = await session.commit({
      ...draft,
      summary: { ...draft.summary, text: 'Summary:\nAll is mended.' },
    })
    expect(end.ok).toBe(true)
    expect(JSON.stringify(session.messages())).toContain('All is mended.')
  })

  it('brings carriers back from where they are true, and the turn goes on', async () => {
    const board = ['one']
    const carriers = [hostSource({ name: 'board', read: () => [{ text: `board: ${board.join()}` }] })]
    const world = createTestTidemark({ carriers })
    const session = await worked(world)
    board.push('two')
    expect(await session.compact()).toMatchObject({ ok: true })
    expect(JSON.stringify(session.messages())).toContain('board: one,two')
    expect(await session.run('Go on.', world.tools).outcome).toMatchObject({ ok: true })
  })

  it('happens by itself where the window is small, and nothing is refused', async () => {
    const world = createTestTidemark({ window: 30_000, turns: 14, resultTokens: 1_500, history: true })
    const session = await world.tide.open('a')
    const rewrites: string[] = []
    session.on('compact', ({ compaction }) => rewrites.push(compaction.cause))
    session.on('microcompact', ({ way }) => rewrites.push(way))
    for (let turn = 0; turn < 3; turn += 1)
      expect(await session.run(`Task ${turn}: mend the sums.`, world.tools).outcome).toMatchObject({
        ok: true,
      })
    expect(rewrites.length).toBeGreaterThan(0)
    expect(world.simulator.requests.filter(({ status }) => status !== 200)).toEqual([])
  })
})

describe('breakdown', () => {
  it('adds up to the total, before and after a rewrite', async () => {
    const session = await worked(createTestTidemark({ system: 'Be brief.' }))
    const adds = (): void => {
      const { total, classes } = session.breakdown()
      expect(classes.reduce((sum, { tokens }) => sum + tokens, 0)).toBe(total.tokens)
      expect(total).toEqual({
        tokens: session.contextRemaining().tokens,
        source: session.contextRemaining().source,
      })
    }
    adds()
    const { tools, files, classes } = session.breakdown()
    expect(tools.map(({ name }) => name)).toContain('Read')
    expect(files.length).toBeGreaterThan(0)
    expect(classes.map(({ name }) => name)).toContain('tool results')
    await session.compact()
    adds()
    expect(session.breakdown().classes.map(({ name }) => name)).toContain('summaries')
  })

  it('counts results that the provider cleared on its side as cleared, so that no class is negative', async () => {
    const world = createTestTidemark({
      window: 100_000,
      turns: 60,
      resultTokens: 2_000,
      policy: { compact: { notesLine: { enabled: false } }, clear: { keptFiles: 0 } },
    })
    const session = await world.tide.open('a')
    const cleared: string[] = []
    session.on('microcompact', ({ way }) => cleared.push(way))
    expect(await session.run('Mend the sums.', world.tools).outcome).toMatchObject({ ok: true })
    expect(new Set(cleared)).toEqual(new Set(['native']))
    const { classes, total } = session.breakdown()
    const shares = Object.fromEntries(classes.map(({ name, tokens }) => [name, tokens]))
    expect(Object.entries(shares).filter(([, tokens]) => tokens < 0)).toEqual([])
    expect(classes.reduce((sum, { tokens }) => sum + tokens, 0)).toBe(total.tokens)
    const { messages } = session.breakdown()
    expect(messages.filter(({ kind, tokens }) => kind === 'user' && tokens < 60).length).toBeGreaterThan(20)
  })
})

describe('switchModel', () => {
  const key = { apiKey: 'any' }

  it('goes on with the other model where all fits', async () => {
    const world = createTestTidemark()
    const session = await worked(world)
    const { fetch } = world.simulator
    const end = await session.switchModel(anthropic('claude-haiku-5-5', { ...key, fetch }))
    expect(end).toMatchObject({
      ok: true,
      from: 'claude-sonnet-5-5',
      to: 'claude-haiku-5-5',
      compaction: null,
    })
    expect(await session.run('Go on.', world.tools).outcome).toMatchObject({ ok: true })
    expect(world.simulator.requests.at(-1)).toMatchObject({ status: 200, model: 'claude-haiku-5-5' })
  })

  it('has the old model compact first where it does not', async () => {
    const world = createTestTidemark({ turns: 30, resultTokens: 1_500 })
    const session = await worked(world)
    const { fetch } = world.simulator
    const small = anthropic('claude-haiku-5-5', { ...key, fetch, window: 24_000, maxOutput: 2_000 })
    const end = await session.switchModel(small)
    if (!end.ok) throw new Error(end.message)
    expect(end.compaction).toMatchObject({ cause: 'model-switch' })
    expect(session.model).toBe('claude-haiku-5-5')
  })

  it('does not compact what fits, and tells the size that the provider counted', async () => {
    const world = createTestTidemark({ turns: 12, resultTokens: 1_500 })
    const session = await worked(world)
    const { tokens } = session.contextRemaining()
    const { fetch } = world.simulator
    const end = await session.switchModel(anthropic('claude-haiku-5-5', { ...key, fetch, window: 50_000 }))
    expect(end).toMatchObject({ ok: true, tokens, compaction: null })
    expect(session.contextRemaining()).toMatchObject({ tokens, source: 'measured' })
  })

  it('tells one size of one context after a compaction', async () => {
    const world = createTestTidemark({ turns: 30, resultTokens: 1_500 })
    const session = await worked(world)
    const { fetch } = world.simulator
    const small = anthropic('claude-haiku-5-5', { ...key, fetch, window: 24_000, maxOutput: 2_000 })
    const end = await session.switchModel(small)
    if (!end.ok || end.compaction === null) throw new Error('it did not compact')
    const { tokens, high, lines } = session.contextRemaining()
    expect([end.tokens, tokens]).toEqual([end.compaction.tokensAfter, end.compaction.tokensAfter])
    expect(high).toBeLessThan(lines?.autoCompact ?? 0)
  })

  it('estimates for another tokenizer by what the session has shown, and does not call that measured', async () => {
    const world = createTestTidemark({ turns: 12, resultTokens: 1_500 })
    const session = await worked(world)
    const { tokens } = session.contextRemaining()
    const { fetch } = world.simulator
    const end = await session.switchModel(anthropic('claude-sonnet-4-5', { ...key, fetch }))
    if (!end.ok) throw new Error(end.message)
    expect(session.contextRemaining()).toMatchObject({ tokens: end.tokens, source: 'estimated' })
    expect(end.tokens / tokens).toBeGreaterThan(0.6)
    expect(end.tokens / tokens).toBeLessThan(1.2)
  })

  it('asks for no more than one further summary where the first is too large, and says why in words', async () => {
    const coder = createCoder({ turns: 30, resultTokens: 1_500 })
    const text = `<summary>\n${'A sentence about the sums of orders. '.repeat(1_300)}\n</summary>`
    const script = withSummaries(coder.script, () => ({ blocks: [{ type: 'text', text }] }))
    const world = createTestTidemark({
      script,
      window: 60_000,
      maxOutput: 15_000,
      turns: 30,
      resultTokens: 1_500,
    })
    const session = await worked(world)
    const { requests, fetch } = world.simulator
    const calls = requests.length
    const small = anthropic('claude-haiku-5-5', { ...key, fetch, window: 12_000, maxOutput: 2_000 })
    const end = await session.switchModel(small)
    if (!end.ok || end.compaction === null) throw new Error('it did not compact')
    const { summarizer, fallbackReason, steps } = end.compaction
    expect(summarizer).toBe('local')
    expect(fallbackReason).toMatch(/^no_summary: With this summary .* tokens too large\./)
    expect(steps.filter(({ outcome }) => outcome === 'refused').length).toBeGreaterThan(0)
    const sent = requests.slice(calls)
    expect(sent.length).toBeLessThanOrEqual(2)
    expect(sent.map(({ usage }) => (usage?.cacheRead ?? 0) > 10_000)).toEqual(sent.map(() => true))
  })

  it('does not compact while a request of next waits for its response', async () => {
    const world = createTestTidemark({ turns: 30, resultTokens: 1_500 })
    const session = await worked(world)
    await session.append(user('Go on.'))
    expect(await session.next()).toMatchObject({ ok: true })
    const { fetch } = world.simulator
    const small = anthropic('claude-haiku-5-5', { ...key, fetch, window: 24_000, maxOutput: 2_000 })
    expect(await session.switchModel(small)).toMatchObject({ ok: false, reason: 'busy' })
    await session.refused(new TypeError('fetch failed'))
    expect(await session.switchModel(small)).toMatchObject({
      ok: true,
      compaction: { cause: 'model-switch' },
    })
  })

  it('refuses with figures where nothing helps, and stays', async () => {
    const world = createTestTidemark()
    const session = await worked(world)
    const [big = ''] = await session.append(user('word '.repeat(30_000)))
    await session.pin(big)
    const small = anthropic('claude-haiku-5-5', { ...key, window: 24_000, maxOutput: 2_000 })
    const end = await session.switchModel(small)
    expect(end).toMatchObject({ ok: false, reason: 'does-not-fit', because: { ok: false } })
    expect(session.model).toBe('claude-sonnet-5-5')
  })
})

describe('a context source that gives no text', () => {
  it('is reported, and stops neither a turn nor a compaction', async () => {
    const notes = hostSource({ name: 'notes', read: () => [{ id: 'a', text: undefined as never }] })
    const world = createTestTidemark({ carriers: [notes] })
    const session = await world.tide.open('a')
    const failed: string[] = []
    session.on('restore-failed', ({ why }) => failed.push(why))
    expect(await session.run('Mend the sums.', world.tools).outcome).toMatchObject({ ok: true })
    expect(await session.compact()).toMatchObject({ ok: true })
    expect(new Set(failed)).toEqual(new Set(['The item "a" has no JSON value at content.']))
  })
})
