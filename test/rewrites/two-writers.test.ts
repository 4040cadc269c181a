/** Two writers on one session: by the lock or by compare-and-swap one of them wins, and nothing is lost. */
import type { TurnHost } from '@tidemark/core/engine/host'
import { appendUnlinkedRecords, refreshSession } from '@tidemark/core/engine/session-writer'
import { countPropertyRuns, runToEnd } from '@tidemark/core/testing'
import fc from 'fast-check'
import { createMemoryJournal } from 'tidemark/testing'
import { describe, expect, it } from 'vitest'
import {
  commitDraft,
  createWriters,
  outcomeCounts,
  prepareDraft,
  REQUIRED_SEQUENCES,
  readLog,
  TwoWriters,
  writerSteps,
} from './concurrent-writers.ts'
import { appendUserMessage, buildSession } from './interruptible-acts.ts'
import {
  clearSession,
  compactSession,
  nextBody,
  openRun,
  promptSession,
  undoSession,
} from './rewrite-acts.ts'
import { SESSION } from './rewrite-host.ts'

/** The texts as they occur in the next request, repeated and in order. */
async function shownIn(host: TurnHost, texts: readonly string[]): Promise<readonly string[]> {
  const { body, findings } = await nextBody(host)
  expect(findings).toEqual([])
  return texts.flatMap((text) =>
    body
      .split(JSON.stringify(text).slice(1, -1))
      .slice(1)
      .map(() => text),
  )
}

describe('a commit after somebody else has written', () => {
  it('an append stands behind the summary, verbatim and in order', async () => {
    const { one, other } = createWriters()
    await buildSession(one)
    const ready = await prepareDraft(one)
    await appendUserMessage(other, 'Meanwhile: first.')
    await appendUserMessage(other, 'Meanwhile: "second"\n\tand more.')
    expect(await commitDraft(ready)).toMatchObject({ ok: true })
    const { body, findings } = await nextBody(other)
    expect(findings).toEqual([])
    const places = [
      'Summary:',
      'agent-7',
      'Not answered yet: and then?',
      'Meanwhile: first.',
      'Meanwhile: \\"second',
    ].map((text) => [body.split(text).length - 1, body.indexOf(text)] as const)
    expect(places.map(([count]) => count)).toEqual([1, 1, 1, 1, 1])
    expect(places.map(([, place]) => place)).toEqual(
      places.map(([, place]) => place).toSorted((a, b) => a - b),
    )
  })

  it('a whole turn stands behind it too, with its calls and results', async () => {
    const { one, other } = createWriters()
    await buildSession(one)
    const ready = await prepareDraft(one)
    const { view } = await promptSession(other, 'Meanwhile: read another.')
    const late = view.entries.toArray(ready.draft.plan.entries.length).map(({ record }) => record)
    expect(await commitDraft(ready)).toMatchObject({ ok: true })
    const { state } = await openRun(other)
    expect(
      state.view.entries
        .toArray()
        .slice(-late.length)
        .map(({ record }) => record),
    ).toEqual(late)
  })

  it.each<[string, (host: TurnHost) => Promise<unknown>]>([
    ['a compaction', (host) => compactSession(host)],
    ['a clearing', (host) => clearSession(host)],
    [
      'a compaction that was undone again',
      async (host) => [await compactSession(host), await undoSession(host)],
    ],
    [
      'a compaction, and words behind it',
      async (host) => [await compactSession(host), await appendUserMessage(host, 'Go on.')],
    ],
  ])('%s: it is refused as superseded and nothing is changed', async (_, act) => {
    const { one, other } = createWriters()
    await buildSession(one)
    const ready = await prepareDraft(one)
    await act(other)
    const log = await readLog(other)
    const committed = await commitDraft(ready)
    expect(committed).toMatchObject({ ok: false, reason: 'superseded' })
    expect(await readLog(one)).toBe(log)
  })

  it('an answer that waits for a tool: it is refused until the result is there', async () => {
    const { one, other } = createWriters()
    await buildSession(one)
    const ready = await prepareDraft(one)
    const call = { type: 'tool_use', id: 'toolu_open', name: 'Read', input: { file_path: '/src/open.ts' } }
    const message = { id: 'open', role: 'assistant' as const, model: 'model-a', content: [call] }
    expect(
      await runToEnd(appendUnlinkedRecords(await openRun(other), [{ type: 'assistant', message }])),
    ).toBe(null)
    const log = await readLog(one)
    expect(await commitDraft(ready)).toMatchObject({ ok: false, reason: 'pending-call' })
    expect(await readLog(one)).toBe(log)
    const result = { type: 'tool_result', tool_use_id: 'toolu_open', content: 'there' }
    await runToEnd(
      appendUnlinkedRecords(await openRun(other), [
        { type: 'user', message: { role: 'user', content: [result] } },
      ]),
    )
    await refreshSession(ready.run)
    expect(await commitDraft(ready)).toMatchObject({ ok: true })
    expect((await nextBody(one)).findings).toEqual([])
  })

  it('where another holds the lock it is refused as locked, and commits when that lets go', async () => {
    const { one, other } = createWriters(createMemoryJournal)
    await buildSession(one)
    const ready = await prepareDraft(one)
    await one.journal.release(SESSION)
    await appendUserMessage(other, 'Mine now.')
    const log = await readLog(one)
    expect(await commitDraft(ready)).toMatchObject({ ok: false, reason: 'locked' })
    expect(await undoSession(one)).toMatchObject({ ok: false, reason: 'nothing-to-undo' })
    expect(await readLog(one)).toBe(log)
    await other.journal.release(SESSION)
    expect(await commitDraft(ready)).toMatchObject({ ok: true })
    expect(await shownIn(one, ['Mine now.'])).toEqual(['Mine now.'])
  })
})

describe('any order of acts by two writers who do not know of each other', () => {
  it('loses no word, and no draft of an older view replaces a newer one', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(writerSteps, { minLength: 3, maxLength: 12 }), async (steps) => {
        const struggle = new TwoWriters()
        await buildSession(struggle.writers.one)
        for (const one of steps) await struggle.take(one)
        await struggle.check()
      }),
      { numRuns: countPropertyRuns(40, 8), examples: REQUIRED_SEQUENCES },
    )
    for (const what of ['commit ok', 'commit superseded', 'undo ok', 'clear ok'])
      expect(outcomeCounts[what], what).toBeGreaterThan(0)
  })
})
