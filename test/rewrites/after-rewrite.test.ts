/** What a rewrite leaves unchanged, what it makes the host forget, and what it never writes. */
import type { CommittedRewrite, TurnHost } from '@tidemark/core/engine/host'
import { readSessionState } from '@tidemark/core/engine/session-state'
import { isKnownRecord } from '@tidemark/core/log/record'
import { createCountingIds, createFakeClock, readAllRecords } from '@tidemark/core/testing'
import { user } from 'tidemark'
import { createMemoryJournal, type MemoryStore } from 'tidemark/testing'
import { describe, expect, it } from 'vitest'
import { buildSession, findPrompt } from './interruptible-acts.ts'
import {
  clearSession,
  compactSession,
  nextBody,
  pinRecordOf,
  promptSession,
  undoSession,
} from './rewrite-acts.ts'
import { createRewriteHost, type RewriteHostOptions, SESSION } from './rewrite-host.ts'
import { AT_ONCE, openScheduledSession, readLines } from './scheduled-session.ts'

function newHost(options: Omit<RewriteHostOptions, 'journal'> = {}): TurnHost {
  return createRewriteHost({
    journal: createMemoryJournal(),
    clock: createFakeClock(),
    ids: createCountingIds(),
    ...options,
  })
}

describe('a session that was compacted', () => {
  it('is the same one: its id, what listens to it, and every id that was given out', async () => {
    const store: MemoryStore = new Map()
    const session = await openScheduledSession({ store, wait: AT_ONCE, prefix: 'one' })
    const told: string[] = []
    session.on('*', ({ type }) => told.push(type))
    const [uuid = ''] = await session.append(user('Remember this.'))
    for (let number = 1; number <= 3; number += 1) await session.run(`Prompt ${number}: read on.`).outcome
    const committed = await session.compact()
    expect(committed).toMatchObject({ ok: true })
    expect(session.id).toBe(SESSION)
    expect(new Set(readLines(store).map((line) => JSON.parse(line).sessionId))).toEqual(new Set([SESSION]))
    expect(await session.pin(uuid)).toEqual({ ok: true, note: expect.stringContaining('no longer') })
    expect(JSON.stringify(await session.history({ id: uuid }))).toContain('Remember this.')
    told.length = 0
    expect(await session.run('Go on.').outcome).toMatchObject({ ok: true })
    expect(told).toContain('turn-ended')
    expect(await session.undo(committed.ok ? committed.compaction.id : '')).toMatchObject({ ok: true })
  })
})

describe('every rewrite', () => {
  it('tells the host what it may no longer take for read: a clearing, a compaction and an undo', async () => {
    const told: CommittedRewrite[] = []
    const forget = (rewritten: CommittedRewrite): void => void told.push(rewritten)
    const host = newHost({ cleanups: [{ name: 'read-state', scope: 'main', forget }] })
    await buildSession(host)
    await clearSession(host)
    await compactSession(host)
    await undoSession(host)
    expect(told.map(({ kind }) => kind)).toEqual(['clear', 'compact', 'undo'])
    const [cleared, compacted] = told
    expect([cleared?.toolUseIds.length, cleared?.filePaths.length]).toEqual([3, 3])
    expect(compacted?.toolUseIds).toContain('toolu_call-4')
  })
})

describe('what the engine wrote itself', () => {
  it('is marked, is no act to undo, is not kept as a pin, and is no message of the person', async () => {
    const host = newHost()
    await buildSession(host)
    await compactSession(host)
    const { session, view } = await readSessionState(host.journal, SESSION)
    const summary = [...session.records].find(
      (record) => isKnownRecord(record) && record.isCompactSummary === true,
    )
    expect(view.rewrites.map(({ uuid }) => uuid)).not.toContain(summary?.uuid)
    expect(await undoSession(host, { id: summary?.uuid ?? '' })).toMatchObject({
      ok: false,
      reason: 'not-standing',
    })
    await pinRecordOf(host, summary?.uuid ?? '')
    await promptSession(host, 'Prompt 5: read on.')
    expect(await compactSession(host)).toMatchObject({ ok: true })
    const { body } = await nextBody(host)
    expect(body.split('Summary:').length - 1).toBe(1)
    expect(await findPrompt(host, 'Prompt 1')).not.toBe(summary?.uuid)
  })
})

describe('a summary in the log', () => {
  it('holds no credential that was said, whoever wrote it', async () => {
    const secret = 'sk-ant-api03-Zx8Kq2mN4vB7tR1wY5uE9pL3sD6fG0hJ'
    const host = newHost({
      writeSummary: async () => `Summary:\n1. Primary Request and Intent: use ${secret}.`,
    })
    await promptSession(host, `Prompt 1: the key is ${secret}, use it.`)
    for (let number = 2; number <= 4; number += 1) await promptSession(host, `Prompt ${number}: read on.`)
    expect(await compactSession(host)).toMatchObject({ ok: true })
    const { records } = await readAllRecords(host.journal, SESSION)
    const written = records.filter((record) => isKnownRecord(record) && record.isCompactSummary === true)
    expect(written).toHaveLength(1)
    expect(JSON.stringify(written)).not.toContain(secret)
  })
})
