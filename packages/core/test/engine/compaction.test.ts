import { describe, expect, it } from 'vitest'
import { commitReviewedDraft } from '../../src/compaction/commit-draft.ts'
import { compact } from '../../src/compaction/compact.ts'
import { planCompaction } from '../../src/compaction/plan-compaction.ts'
import { prepareDraftForReview } from '../../src/compaction/prepare-draft.ts'
import type { Deadlines } from '../../src/engine/ports.ts'
import { appendUnlinkedRecords } from '../../src/engine/session-writer.ts'
import { isCompactBoundary, type SessionRecord } from '../../src/log/record.ts'
import type { ContextSource } from '../../src/sources/context-source.ts'
import { setRecordPin } from '../../src/turn/pin.ts'
import {
  buildRounds,
  changeRoom,
  compactNow,
  deadlines,
  eventsOfType,
  openRounds,
  perform,
  reply,
  SUMMARY,
  sentText,
  type TestSession,
  text,
  textCarrier,
} from './test-session.ts'

describe('a compaction', () => {
  it('goes through its phases in order, hooks where they belong', async () => {
    const ran: string[] = []
    const made = await openRounds({
      room: {
        sources: [textCarrier('plan', { text: 'plan: read' })],
        hooks: {
          preCompact: [{ name: 'pre', run: () => void ran.push('pre') }],
          sessionStart: [{ name: 'start', run: () => ({ additionalContext: 'started anew' }) }],
          postCompact: [
            {
              name: 'post',
              run: ({ summary }) => ({ additionalContext: `seen ${summary.includes('mended')}` }),
            },
          ],
        },
      },
    })
    const end = await compactNow(made)
    expect(ran).toEqual(['pre'])
    expect(end.ok && end.compaction.receipt.carried.map(({ key }) => key)).toEqual([
      'plan:',
      'hooks:start',
      'hooks:post',
    ])
    expect(eventsOfType(made, 'phase').map(({ phase }) => phase)).toEqual([
      'running PreCompact hooks',
      'compacting',
      'bringing back context',
      'running SessionStart hooks',
      'running PostCompact hooks',
      'done',
    ])
    for (const words of ['plan: read', 'started anew', 'seen true']) expect(sentText(made)).toContain(words)
  })

  it('tells what filled the context before it, by kind', async () => {
    const made = await openRounds()
    const end = await compactNow(made)
    if (!end.ok) throw new Error(end.message)
    const { metrics } = end.compaction
    expect(Object.keys(metrics)).toEqual(
      expect.arrayContaining(['total_tokens', 'human_message_tokens', 'tool_result_Read_tokens']),
    )
    expect(metrics.total_tokens).toBeGreaterThan(metrics.human_message_tokens ?? 0)
    expect(eventsOfType(made, 'compact')[0]?.compaction.metrics).toEqual(metrics)
  })

  it('goes on without these figures where they cannot be made, and says so', async () => {
    const made = await openRounds()
    const block = (): number => {
      throw new Error('no figures')
    }
    const end = await compactNow(changeRoom(made, { estimator: { ...made.room.estimator, block } }))
    expect(end).toMatchObject({ ok: true, compaction: { metrics: {} } })
    expect(eventsOfType(made, 'accounting-failed')).toEqual([
      { type: 'accounting-failed', why: 'no figures' },
    ])
  })

  it('keeps the names of the tools that were loaded so far, time after time', async () => {
    const builder = buildRounds()
    builder.result('search', [{ type: 'tool_reference', tool_name: 'mcp__late' }])
    builder.answer('Found.')
    const made = await openRounds({}, builder)
    for (const id of ['m-1', 'm-2']) {
      expect((await compactNow(made)).ok).toBe(true)
      const boundary = made.run.state.session.records.toArray().findLast(isCompactBoundary)
      expect(boundary?.compactMetadata.preCompactDiscoveredTools).toEqual(['mcp__late'])
      const message = { id, role: 'assistant' as const, model: 'm', content: 'abc '.repeat(2_000) }
      await perform(made, appendUnlinkedRecords(made.run, [{ type: 'assistant', message }]))
    }
  })

  it('takes the person’s instructions first, the hooks’ after', async () => {
    let instructions: string | null = null
    const made = await openRounds({
      room: {
        hooks: { preCompact: [{ name: 'pre', run: () => ({ newCustomInstructions: 'keep the names' }) }] },
        writeSummary: async (question) => {
          instructions = question.instructions
          return SUMMARY
        },
      },
    })
    await compactNow(made, { instructions: 'keep the errors' })
    expect(instructions).toBe('keep the errors\n\nkeep the names')
  })

  it('overrules a veto where the session could not go on, and says so', async () => {
    const made = await openRounds({
      room: { hooks: { preCompact: [{ name: 'no', run: () => ({ block: 'not now' }) }] } },
    })
    expect((await compactNow(made, { isForced: true })).ok).toBe(true)
    expect(eventsOfType(made, 'veto-overruled')).toEqual([
      { type: 'veto-overruled', hook: 'no', reason: 'not now' },
    ])
  })

  it('overrules a veto above the blocking line, also where a person asks', async () => {
    const hooks = { preCompact: [{ name: 'no', run: () => ({ block: 'not now' }) }] }
    const made = await openRounds({ window: 64_000, room: { hooks } }, buildRounds(9, 5_500))
    expect((await compactNow(made)).ok).toBe(true)
    expect(eventsOfType(made, 'veto-overruled').length).toBe(1)
    const below = await openRounds({ window: 64_000, room: { hooks } }, buildRounds(3, 5_500))
    expect(await compactNow(below)).toMatchObject({ ok: false, reason: 'blocked' })
  })

  it('says that it is over, however it ends, and once', async () => {
    const phases = (made: TestSession): readonly string[] =>
      eventsOfType(made, 'phase').map(({ phase }) => phase)
    const plans = async (made: TestSession, text: string): Promise<void> => {
      const { run, host } = made
      const plan = planCompaction(run.state, { trigger: 'manual', cause: 'person' }, host)
      if (!plan.ok) throw new Error(plan.message)
      const draft = await perform(made, prepareDraftForReview(run, plan))
      if (draft.ok)
        await perform(made, commitReviewedDraft(run, { ...draft, summary: { ...draft.summary, text } }))
    }
    const refused = await openRounds()
    await plans(refused, ' ')
    expect(phases(refused)).toEqual(['compacting', 'done', 'done'])
    const unwritten = await openRounds({ room: { writeSummary: async () => null } })
    await plans(unwritten, '')
    expect(phases(unwritten)).toEqual(['compacting', 'done'])
    expect((await compactNow(unwritten)).ok).toBe(false)
    expect(phases(unwritten).slice(2)).toEqual(['compacting', 'done'])
  })

  it('gives signs of life while its summary is waited for', async () => {
    let wait = 3
    const patient: Deadlines = {
      within: async (ms, work, signal) => {
        if (ms !== 30_000 || wait === 0) return deadlines.within(ms, work, signal)
        wait -= 1
        return { ok: false, why: 'timeout' }
      },
    }
    const made = await openRounds({ room: { deadlines: patient } })
    expect((await compactNow(made)).ok).toBe(true)
    expect(eventsOfType(made, 'keep-alive').length).toBe(3)
  })

  it('tells what the calls for its summary took, failed ones included, and which line it was', async () => {
    const usage = { input: 10, read: 100, short: 5 }
    const made = await openRounds({
      byChain: true,
      replies: [
        { ...reply(text('no')), usage },
        { ...reply(text('<summary>\nRead.\n</summary>')), usage },
      ],
    })
    const end = await compactNow(made, { firedBy: 'price' })
    if (!end.ok) throw new Error(end.message)
    const { calls, input, cacheRead, cacheWritten } = end.compaction.usage
    expect([calls, input, cacheRead, cacheWritten]).toEqual([2, 20, 200, 10])
    expect(end.compaction.firedBy).toBe('price')
  })

  it('that found no summary tells what was tried', async () => {
    const made = await openRounds({
      byChain: true,
      replies: Array.from({ length: 9 }, () => reply(text('no'))),
      policy: { compact: { chain: { local: 'never' } } },
    })
    const end = await compactNow(made)
    expect(end).toMatchObject({ ok: false, reason: 'no-summary', fallbackReason: expect.any(String) })
    expect(!end.ok && (end.steps?.length ?? 0)).toBeGreaterThan(0)
  })

  it('tells what left the view, and not what is kept', async () => {
    const builder = buildRounds()
    const made = await openRounds({}, builder)
    const results = builder.records.filter(({ type }) => type === 'user').slice(1)
    await perform(made, setRecordPin(made.run, results[1]?.uuid ?? '', true))
    await compactNow(made)
    const [event] = eventsOfType(made, 'rewritten')
    const calls = builder.records.flatMap((record) => callsOf(record))
    expect(event?.rewritten.toolUseIds).toEqual([calls[0], calls[2]])
    expect(event?.rewritten.filePaths).toEqual([`/src/${calls[0]}.ts`, `/src/${calls[2]}.ts`])
  })

  it('sheds what may go to come below its target, and tells it', async () => {
    const heavy: ContextSource = {
      ...textCarrier('files', { text: '' }),
      kind: 'files',
      render: async function* () {
        for (const id of ['new', 'old'])
          yield {
            id,
            attachment: { type: 'file', content: `${id} ${'abc '.repeat(700)}` },
            source: id,
            sheddable: 'files',
          }
      },
    }
    const made = await openRounds({ room: { sources: [heavy] } })
    expect((await compactNow(made, { target: 1_500 })).ok).toBe(true)
    expect(eventsOfType(made, 'context-restored').map(({ keys, shed }) => [keys, shed])).toEqual([
      [['files:new'], ['files:old']],
    ])
  })

  it('brings back every file that fits by the expected size of the context', async () => {
    const made = await openRounds({ window: 64_000 }, buildRounds(9, 5_500))
    const target = made.room.scaled.known ? made.room.scaled.lines.target : 0
    const ids = ['newest', 'newer', 'older', 'oldest']
    const tokens = Math.floor((target * 0.85) / ids.length)
    const files: ContextSource = {
      ...textCarrier('files', { text: '' }),
      kind: 'files',
      render: async function* () {
        for (const id of ids) {
          const attachment = { type: 'file', content: `${id} ${'abc '.repeat(tokens)}` }
          yield { id, attachment, source: id, sheddable: 'files' }
        }
      },
    }
    const plan = { trigger: 'auto', cause: 'threshold' } as const
    const end = await perform(made, compact(changeRoom(made, { sources: [files] }).run, plan))
    expect(eventsOfType(made, 'context-restored')).toMatchObject([{ shed: [] }])
    const after = end.ok ? end.compaction.tokensAfter : 0
    expect(after).toBeLessThanOrEqual(target)
    // The upper bound of the estimate is above the target, and by that measure files would be left out.
    expect((after * 4) / 3).toBeGreaterThan(target)
  })

  it('sheds the oldest, also where what stayed the same stands in front', async () => {
    const shown = new Map([
      ['new', 'same'],
      ['old', 'same'],
    ])
    const files: ContextSource = {
      ...textCarrier('files', { text: '' }),
      kind: 'files',
      render: async function* () {
        for (const [id, words] of shown)
          yield {
            id,
            attachment: { type: 'file', content: `${id} ${words} ${'abc '.repeat(700)}` },
            source: id,
            sheddable: 'files',
          }
      },
    }
    const made = await openRounds({
      policy: { compact: { carriersFirst: true } },
      room: { sources: [files] },
    })
    expect((await compactNow(made)).ok).toBe(true)
    const content = [{ type: 'text', text: `said ${'abc '.repeat(3_000)}` }]
    const message = { id: 'm-late', role: 'assistant' as const, model: 'model-a', content }
    await perform(made, appendUnlinkedRecords(made.run, [{ type: 'assistant', message }]))
    shown.set('new', 'changed')
    expect((await compactNow(made, { target: 1_275 })).ok).toBe(true)
    expect(eventsOfType(made, 'context-restored').at(-1)).toMatchObject({
      keys: ['files:new'],
      shed: ['files:old'],
    })
  })

  it('names what fills the floor', async () => {
    const builder = buildRounds()
    builder.user(`read this: ${'abc '.repeat(3_000)}`)
    const made = await openRounds({}, builder)
    const end = await compactNow(made, { target: 2_000 })
    expect(end).toMatchObject({ ok: false, reason: 'floor' })
    expect(!end.ok && end.floor?.[0]?.what).toMatch(/^message not yet answered/)
  })

  it('may be partial above the line: what the person picked goes, and it is told that it will not last', async () => {
    const builder = buildRounds(9, 5_500)
    const made = await openRounds({ window: 64_000 }, builder)
    const pivot = builder.records.at(-3)?.uuid ?? ''
    const end = await compactNow(made, { form: 'from', pivot })
    expect(end).toMatchObject({ ok: true, compaction: { willRetrigger: true } })
  })
})

function callsOf(record: SessionRecord): readonly string[] {
  const { message } = record as { message?: { content?: unknown } }
  const blocks: readonly { type: string; id?: string }[] = Array.isArray(message?.content)
    ? message.content
    : []
  return blocks.flatMap(({ type, id }) => (type === 'tool_use' && id !== undefined ? [id] : []))
}

describe('a summary that is good and too large', () => {
  const long = reply(text(`<summary>\n${'A sentence about the work. '.repeat(120)}\n</summary>`))

  it('is asked for by the next rung, down to the one without a model', async () => {
    const made = await openRounds({ byChain: true, replies: [long, long, long] })
    const end = await compactNow(made, { target: 900 })
    expect(end).toMatchObject({ ok: true, compaction: { summarizer: 'local' } })
    expect(end.ok && end.compaction.steps.filter(({ reason }) => reason === 'above-target').length).toBe(1)
    expect(end.ok && end.compaction.tokensAfter).toBeLessThanOrEqual(900)
  })

  it('is made to fit by a shorter list of names, without another call', async () => {
    const builder = buildRounds(9, 5_500)
    const words = Array.from({ length: 60 }, (_, at) => `tide_table_number_${at}`).join(' and ')
    builder.answer(`The names are ${words}. Again: ${words}.`)
    const tried = async (target?: number) => {
      const made = await openRounds({ byChain: true, replies: [long, long, long], window: 64_000 }, builder)
      const end = await compactNow(made, target === undefined ? {} : { target })
      if (!end.ok) throw new Error(end.message)
      return { ...end.compaction, calls: made.asked.length }
    }
    const whole = await tried()
    const shorter = await tried(whole.tokensAfter - 55)
    expect(shorter).toMatchObject({ summarizer: 'model', fallbackReason: null, calls: whole.calls })
    expect(shorter.tokensAfter).toBeLessThanOrEqual(whole.tokensAfter - 55)
  })

  it('stays where no other is smaller and it is below the line all the same', async () => {
    const made = await openRounds({
      byChain: true,
      replies: [long],
      policy: { compact: { chain: { local: 'never' }, target: { percentOfAutoCompact: 1 } } },
      window: 64_000,
    })
    const end = await compactNow(made)
    expect(end).toMatchObject({ ok: true, compaction: { summarizer: 'model' } })
  })

  it('is not asked for at all where no summary could be small enough', async () => {
    const builder = buildRounds()
    builder.user(`read this: ${'abc '.repeat(3_000)}`)
    const made = await openRounds({ byChain: true, replies: [long, long] }, builder)
    expect(await compactNow(made, { target: 2_000 })).toMatchObject({ ok: false, reason: 'floor' })
    expect(made.asked.length).toBe(0)
  })

  it('is not asked for where the messages of the user leave almost nothing to gain', async () => {
    const builder = buildRounds(0)
    builder.user(`Read this: ${'words of the user '.repeat(300)}`)
    builder.answer('It is done, all of it.')
    const made = await openRounds({ byChain: true, replies: [long] }, builder)
    const end = await compactNow(made)
    expect(end).toMatchObject({ ok: false, reason: 'not-smaller' })
    expect(end.ok ? '' : end.message).toMatch(/not worth it: \d+ tokens would become \d+/)
    expect(made.asked.length).toBe(0)
  })

  it('is committed only if it saves a twentieth of what it replaces', async () => {
    const builder = buildRounds(0)
    builder.answer('A note on the tide. '.repeat(250))
    const nearlyAll = reply(text(`<summary>\n${'A note on the tide. '.repeat(240)}\n</summary>`))
    const made = await openRounds({ byChain: true, replies: Array(6).fill(nearlyAll) }, builder)
    expect(await compactNow(made)).not.toMatchObject({ ok: true, compaction: { summarizer: 'model' } })
  })
})
