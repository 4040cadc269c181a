import { describe, expect, it } from 'vitest'
import { commitReviewedDraft } from '../../src/compaction/commit-draft.ts'
import type { CompactionDraft } from '../../src/compaction/draft.ts'
import { planCompaction } from '../../src/compaction/plan-compaction.ts'
import { prepareDraftForReview } from '../../src/compaction/prepare-draft.ts'
import { toApiMessages } from '../../src/context/flatten-context.ts'
import { appendUnlinkedRecords } from '../../src/engine/session-writer.ts'
import type { ContextSource } from '../../src/sources/context-source.ts'
import { setRecordPin } from '../../src/turn/pin.ts'
import { beginNewConversation } from '../../src/turn/switch-branch.ts'
import { undoRewrite } from '../../src/turn/undo.ts'
import {
  BOUND,
  buildRounds,
  compactNow,
  eventsOfType,
  openRounds,
  perform,
  SESSION,
  sentText,
  type TestSession,
  undoNow,
} from './test-session.ts'

async function drafted(made: TestSession): Promise<CompactionDraft> {
  const { run, host } = made
  const plan = planCompaction(run.state, { trigger: 'manual', cause: 'person' }, host)
  if (!plan.ok) throw new Error(plan.message)
  const draft = await perform(made, prepareDraftForReview(run, plan))
  if (!draft.ok) throw new Error(draft.message)
  return draft
}

const committed = (made: TestSession, draft: CompactionDraft) =>
  perform(made, commitReviewedDraft(made.run, draft))

it('a rewrite and a move end the wait for a compaction that costs nothing', async () => {
  const made = await openRounds()
  const { run } = made
  run.state = { ...run.state, freeCompactionFrom: 90_000 }
  await perform(
    made,
    appendUnlinkedRecords(run, [{ type: 'user', message: { role: 'user', content: 'go on' } }]),
  )
  expect(run.state.freeCompactionFrom).toBe(90_000)
  await compactNow(made)
  expect(run.state.freeCompactionFrom).toBeNull()
  run.state = { ...run.state, freeCompactionFrom: 90_000 }
  expect((await perform(made, beginNewConversation(run))).ok).toBe(true)
  expect(run.state.freeCompactionFrom).toBeNull()
})

describe('a draft', () => {
  it('that is reviewed first brings back no more than a compaction at once', async () => {
    const totals: number[] = []
    const probe: ContextSource = {
      name: 'probe',
      kind: 'host',
      tellsChanges: false,
      isWhole: false,
      limit: () => null,
      async *render({ budgets }) {
        totals.push(budgets.files.total)
        yield* []
      },
    }
    const open = () => openRounds({ window: 32_000, room: { sources: [probe] } })
    await drafted(await open())
    await compactNow(await open())
    expect([totals.length, totals[0]]).toEqual([2, totals[1]])
  })

  it('may be edited before it is committed', async () => {
    const made = await openRounds()
    const draft = await drafted(made)
    const edited = { ...draft, summary: { ...draft.summary, text: 'Summary:\nwritten by hand' } }
    expect((await committed(made, edited)).ok).toBe(true)
    expect(sentText(made)).toContain('written by hand')
  })

  it('that was edited is committed without secrets, and its receipt says what it now lacks', async () => {
    const made = await openRounds()
    const draft = await drafted(made)
    expect(draft.receipt.lost.userMessages).toEqual([])
    const secret = `sk-ant-api03-${'aB3dE6gH9k'.repeat(9)}`
    const text = `Summary:\nwritten by hand, key ${secret}`
    const end = await committed(made, { ...draft, summary: { ...draft.summary, text } })
    if (!end.ok) throw new Error(end.message)
    expect(end.compaction.receipt.lost.userMessages.map((lost) => lost.text)).toEqual(['look at the login'])
    expect(end.compaction.receipt.lost.files.length).toBe(3)
    expect([sentText(made).includes(secret), sentText(made).includes('look at the login')]).toEqual([
      false,
      false,
    ])
  })

  it('has a receipt that names what found no room to be put back', async () => {
    const made = await openRounds({ policy: { ledger: { filesTokens: 1 } } })
    const { receipt } = await drafted(made)
    expect(receipt.unfit.map((path) => path.replace(/\d+/, 'n'))).toEqual(Array(3).fill('/src/call-n.ts'))
  })

  it('has a receipt that tells what came meanwhile as kept', async () => {
    const made = await openRounds()
    const draft = await drafted(made)
    const late = { role: 'user' as const, content: 'by the way' }
    await perform(made, appendUnlinkedRecords(made.run, [{ type: 'user', message: late }]))
    const uuid = made.run.state.session.records.at(-1)?.uuid
    const end = await committed(made, draft)
    expect(draft.receipt.kept).toEqual([])
    expect(end.ok && end.compaction.receipt.kept).toEqual([uuid])
  })

  it('is refused where a message of what it summarises was pinned meanwhile', async () => {
    const builder = buildRounds()
    const made = await openRounds({}, builder)
    const draft = await drafted(made)
    await perform(made, setRecordPin(made.run, builder.records[2]?.uuid ?? '', true))
    const { position } = made.run.state
    expect(await committed(made, draft)).toMatchObject({
      ok: false,
      reason: 'superseded',
      message: expect.stringContaining('pinned'),
    })
    expect(made.run.state.position).toBe(position)
  })

  it('is refused where its summary was emptied', async () => {
    const made = await openRounds()
    const draft = await drafted(made)
    const end = await committed(made, { ...draft, summary: { ...draft.summary, text: ' ' } })
    expect(end).toMatchObject({ ok: false, reason: 'no-summary' })
  })

  it('has what came meanwhile behind it, word for word', async () => {
    const made = await openRounds()
    const draft = await drafted(made)
    const late = { role: 'user' as const, content: 'by the way' }
    await perform(made, appendUnlinkedRecords(made.run, [{ type: 'user', message: late }]))
    expect((await committed(made, draft)).ok).toBe(true)
    const last = toApiMessages(made.run.state.flat).at(-1)
    expect(JSON.stringify(last?.content).endsWith('"text":"by the way"}]')).toBe(true)
  })

  it('is refused where somebody else has rewritten the conversation', async () => {
    const made = await openRounds()
    const draft = await drafted(made)
    await compactNow(made)
    const before = made.run.state
    expect(await committed(made, draft)).toMatchObject({ ok: false, reason: 'superseded' })
    expect(made.run.state.position).toBe(before.position)
  })

  it('is refused while a call waits for its answer', async () => {
    const made = await openRounds()
    const draft = await drafted(made)
    const content = [{ type: 'tool_use', id: 'late', name: 'Read', input: {} }]
    const message = { id: 'm-late', role: 'assistant' as const, model: 'model-a', content }
    await perform(made, appendUnlinkedRecords(made.run, [{ type: 'assistant', message }]))
    expect(await committed(made, draft)).toMatchObject({ ok: false, reason: 'pending-call' })
  })

  it('is committed on a log that has moved on', async () => {
    const made = await openRounds()
    const draft = await drafted(made)
    await made.host.journal.append(SESSION, made.run.state.position, [
      {
        type: 'user',
        uuid: 'by-another',
        parentUuid: made.run.state.session.records.at(-1)?.uuid ?? null,
        timestamp: '2026-06-01T00:00:00.000Z',
        sessionId: SESSION,
        message: { role: 'user', content: 'from another window' },
      },
    ])
    expect((await committed(made, draft)).ok).toBe(true)
    expect(sentText(made)).toContain('from another window')
  })
})

describe('undo', () => {
  it('is refused over the blocking line, unless forced', async () => {
    const made = await openRounds({ window: 64_000 }, buildRounds(10, 5_000))
    await compactNow(made)
    const before = made.run.state.position
    expect(await undoNow(made)).toMatchObject({ ok: false, reason: 'too-large' })
    expect(made.run.state.position).toBe(before)
    expect(await perform(made, undoRewrite(made.run, { force: true }))).toMatchObject({ ok: true })
  })

  it('names the act that has to go first', async () => {
    const made = await openRounds()
    const first = await compactNow(made)
    const call = { type: 'tool_use', id: 'c-x', name: 'Read', input: {} }
    const result = { type: 'tool_result', tool_use_id: 'c-x', content: 'abc '.repeat(900) }
    const message = { role: 'assistant' as const, model: 'model-a' }
    await perform(
      made,
      appendUnlinkedRecords(made.run, [
        { type: 'assistant', message: { ...message, id: 'm-x', content: [call] } },
        { type: 'user', message: { role: 'user', content: [result] } },
        { type: 'assistant', message: { ...message, id: 'm-y', content: 'said' } },
      ]),
    )
    const second = await compactNow(made)
    if (!first.ok || !second.ok) throw new Error('both are made')
    expect(await undoNow(made, first.compaction.id)).toMatchObject({
      ok: false,
      reason: 'not-newest',
      newest: second.compaction.id,
    })
    expect(await undoNow(made, 'nobody')).toMatchObject({ ok: false, reason: 'not-standing' })
    expect(await undoNow(made, second.compaction.id)).toMatchObject({ ok: true, of: second.compaction.id })
    expect(eventsOfType(made, 'undone').map(({ of }) => of)).toEqual([second.compaction.id])
  })

  it('takes the thinking from what was said behind it, where that was bound', async () => {
    const made = await openRounds({ profile: BOUND }, buildRounds(3, 2_000, true))
    await compactNow(made)
    const content = [
      { type: 'thinking', thinking: 'hm', signature: 'sig-late' },
      { type: 'text', text: 'said behind it' },
    ]
    const message = { id: 'm-late', role: 'assistant' as const, model: 'model-a', content }
    await perform(made, appendUnlinkedRecords(made.run, [{ type: 'assistant', message }]))
    expect(sentText(made)).toContain('sig-late')
    expect((await undoNow(made)).ok).toBe(true)
    expect([sentText(made).includes('sig-late'), sentText(made).includes('said behind it')]).toEqual([
      false,
      true,
    ])
  })
})

describe('a pin', () => {
  it('survives every compaction verbatim, and goes when it is let go', async () => {
    const builder = buildRounds()
    const target = builder.records[2]?.uuid ?? ''
    const made = await openRounds({}, builder)
    expect(await perform(made, setRecordPin(made.run, target, true))).toEqual({ ok: true })
    const position = made.run.state.position
    expect(await perform(made, setRecordPin(made.run, target, true))).toEqual({ ok: true })
    expect(made.run.state.position).toBe(position)
    await compactNow(made)
    const kept = (): boolean =>
      made.run.state.view.entries.toArray().some(({ record }) => record.uuid === target)
    expect(kept()).toBe(true)
    await perform(made, setRecordPin(made.run, target, false))
    await compactNow(made)
    expect(kept()).toBe(false)
  })

  it('of a record that is not there is refused', async () => {
    const made = await openRounds()
    expect(await perform(made, setRecordPin(made.run, 'nobody', true))).toMatchObject({
      ok: false,
      reason: 'unknown-record',
    })
  })

  it('of a record that is no longer shown says so, and counts once it is shown again', async () => {
    const builder = buildRounds()
    const target = builder.records[2]?.uuid ?? ''
    const made = await openRounds({}, builder)
    await compactNow(made)
    const note = expect.stringContaining('no longer')
    expect(await perform(made, setRecordPin(made.run, target, true))).toEqual({ ok: true, note })
    expect((await undoNow(made)).ok).toBe(true)
    expect(await perform(made, setRecordPin(made.run, target, true))).toEqual({ ok: true })
    const end = await compactNow(made)
    expect(end.ok && end.compaction.receipt.kept).toContain(target)
  })

  it('beyond the budget is summarised, and plan, event and receipt say so', async () => {
    const builder = buildRounds()
    const [first, last] = [builder.records[2]?.uuid ?? '', builder.records.at(-2)?.uuid ?? '']
    const made = await openRounds({ policy: { compact: { pinTokens: 2_200 } } }, builder)
    for (const target of [first, last]) await perform(made, setRecordPin(made.run, target, true))
    const draft = await drafted(made)
    expect(draft.plan.notes).toEqual([expect.stringContaining(first)])
    const end = await committed(made, draft)
    expect(end.ok && [end.compaction.notes, end.compaction.receipt.unpinned]).toEqual([
      draft.plan.notes,
      [first],
    ])
    expect(end.ok && end.compaction.receipt.kept).toContain(last)
  })
})
