import { describe, expect, it } from 'vitest'
import { RULES } from '../../test/breaks/rules.ts'
import {
  longTalk,
  prompted,
  requestOf,
  responded,
  rounded,
  SILENCE,
  type Talk,
  TEXT,
  told,
} from '../../test/breaks/talk.ts'
import { createWatcher } from '../../test/breaks/watcher.ts'
import { readReportedContextTokens } from '../tokens/usage.ts'
import type { SentRequest } from './sent-request.ts'

const MAIN = 'repl_main_thread'
const talk = longTalk()
const next = rounded(talk, 2, TEXT)

/** The results of the first three rounds are cleared. */
function clearedTalk(from: Talk): Talk {
  const compactedToolIds = ['c1-0', 'c1-1', 'c3-0', 'c3-1', 'c5-0', 'c5-1']
  const microcompactMetadata = {
    trigger: 'auto',
    preTokens: 0,
    tokensSaved: 0,
    compactedToolIds,
    clearedAttachmentUUIDs: [],
  }
  return told(from, { type: 'system', subtype: 'microcompact_boundary', microcompactMetadata })
}

/** A summary takes the place of everything. */
function compactedTalk(from: Talk): Talk {
  const compactMetadata = { trigger: 'auto', preTokens: 0 }
  const boundary = told(from, {
    type: 'system',
    subtype: 'compact_boundary',
    compactMetadata,
    parentUuid: null,
  })
  return told(boundary, {
    type: 'user',
    isCompactSummary: true,
    message: { role: 'user', content: `summary ${TEXT}` },
  })
}

const clearing = { kind: 'clearing', act: 'cleared 6 results', freedTokens: 6_000 } as const

describe('a fork', () => {
  it('that misses is not laid to a clearing that its parent has paid for', () => {
    const watcher = createWatcher()
    const fork = (from: Talk, at: number): SentRequest => ({
      ...requestOf(from, at),
      source: 'session_memory',
      forkOf: MAIN,
    })
    watcher.send(requestOf(talk, 0))
    expect(watcher.send(fork(talk, 1_000)).outcome.kind).toBe('read')
    for (const source of [MAIN, 'session_memory']) watcher.announce(source, clearing)
    const cleared = clearedTalk(talk)
    expect(watcher.send(requestOf(cleared, 2_000)).outcome.kind).toBe('ours')
    watcher.cache.evict()
    const { outcome } = watcher.send(fork(cleared, 3_000))
    expect(outcome).toMatchObject({ kind: 'broke', event: { reason: { kind: 'evicted' }, ours: null } })
  })
})

describe('not breaks', () => {
  it('the first call of a source', () => {
    expect(createWatcher().send(requestOf(talk, 0)).outcome).toEqual({ kind: 'first' })
  })

  it.each(['compaction', 'undo', 'restart'] as const)('what comes after an announced %s', (kind) => {
    const watcher = createWatcher()
    watcher.send(requestOf(talk, 0))
    watcher.announce(MAIN, { kind })
    expect(watcher.send(requestOf(compactedTalk(talk), 1_000)).outcome).toEqual({ kind: 'first' })
    expect(watcher.send(requestOf(compactedTalk(talk), 2_000)).outcome.kind).toBe('read')
  })

  it('an announced clearing, which is told with what it cost and when that is paid back', () => {
    const watcher = createWatcher()
    watcher.send(requestOf(talk, 0))
    const added = readReportedContextTokens(createWatcher().send(requestOf(next, 0)).usage)
    const freedTokens =
      added - readReportedContextTokens(createWatcher().send(requestOf(clearedTalk(next), 0)).usage)
    watcher.announce(MAIN, { ...clearing, freedTokens })
    const { outcome, usage } = watcher.send(requestOf(clearedTalk(next), 1_000))
    // What the round added would have been written anyway.
    const ownTokens = added - readReportedContextTokens(createWatcher().send(requestOf(talk, 0)).usage)
    const tokensRewritten = readReportedContextTokens(usage) - usage.read - ownTokens
    const breakEvenTurns = Math.ceil(((2.5 / 0.2 - 1) * tokensRewritten) / freedTokens)
    expect(outcome).toEqual({
      kind: 'ours',
      act: {
        act: 'cleared 6 results',
        at: 1_000,
        source: MAIN,
        breakEvenTurns,
        tokensRewritten,
        moneySpent: (tokensRewritten * 2.5 - tokensRewritten * 0.2) / 1e6,
        sentence: `Price of an intended change: cleared 6 results; 15,852 tokens processed again ($0.0365), pays back in ${breakEvenTurns} calls.`,
      },
    })
  })

  it('an announced clearing that the messages do not show: it is the provider that clears', () => {
    const watcher = createWatcher()
    watcher.send(requestOf(talk, 0))
    watcher.announce(MAIN, clearing)
    watcher.cache.evict()
    expect(watcher.send(requestOf(next, 1_000)).outcome.kind).toBe('ours')
    expect(watcher.send(requestOf(rounded(next, 1, TEXT), 2_000)).outcome.kind).toBe('read')
  })

  it('is a break all the same where more was lost than the clearing can explain', () => {
    const watcher = createWatcher()
    const early = rounded(prompted(SILENCE, TEXT), 1, 'short')
    watcher.send(requestOf(early, 0))
    let late = early
    for (let round = 0; round < 8; round += 1) late = rounded(late, 1, TEXT)
    watcher.send(requestOf(late, 1_000))
    watcher.announce(MAIN, clearing)
    watcher.cache.evict()
    const metadata = { trigger: 'auto', preTokens: 0, tokensSaved: 0, clearedAttachmentUUIDs: [] }
    const cleared = told(late, {
      type: 'system',
      subtype: 'microcompact_boundary',
      microcompactMetadata: { ...metadata, compactedToolIds: ['c5-0'] },
    })
    const { outcome } = watcher.send(requestOf(cleared, 2_000))
    expect(outcome.kind === 'broke' && outcome.event.reason).toEqual({ kind: 'evicted' })
  })

  it('a clearing that is announced for one call says nothing about the next', () => {
    const watcher = createWatcher()
    watcher.send(requestOf(talk, 0))
    watcher.announce(MAIN, clearing)
    watcher.send(requestOf(clearedTalk(next), 1_000))
    watcher.cache.evict()
    expect(watcher.send(requestOf(rounded(clearedTalk(next), 1, TEXT), 2_000)).outcome.kind).toBe('broke')
  })

  it('a changed section that comes as a delta', () => {
    const watcher = createWatcher()
    watcher.send(requestOf(talk, 0))
    const delta = told(next, { type: 'attachment', attachment: { type: 'section_delta', content: TEXT } })
    expect(watcher.send(requestOf(delta, 1_000)).outcome).toEqual({
      kind: 'read',
      expected: 28_803,
      read: 28_803,
    })
  })

  it('a rewind, which only what it goes back to can be expected of', () => {
    const watcher = createWatcher()
    const middle = requestOf(talk, 0)
    watcher.send(middle)
    let far = next
    for (let round = 0; round < 5; round += 1) {
      watcher.send(requestOf(far, 1_000))
      far = rounded(far, 2, TEXT)
    }
    const other = rounded(prompted({ ...talk, ids: 'other' }, `something else: ${TEXT}`), 3, TEXT)
    expect(watcher.send(requestOf(other, 2_000)).outcome).toEqual({
      kind: 'read',
      expected: 28_803,
      read: 28_803,
    })
  })

  it('a rewind in what was cleared: entries of what it was before say nothing', () => {
    const watcher = createWatcher()
    watcher.send(requestOf(talk, 0))
    watcher.send(requestOf(next, 1_000))
    const cleared = clearedTalk(next)
    watcher.announce(MAIN, clearing)
    watcher.send(requestOf(rounded(cleared, 2, TEXT), 2_000))
    const other = prompted({ ...cleared, ids: 'other' }, `something else: ${TEXT}`)
    expect(watcher.send(requestOf(other, 3_000)).outcome.kind).toBe('read')
  })

  it('models that policy leaves out', () => {
    const watcher = createWatcher()
    const small = (at: number): SentRequest => ({
      ...requestOf(talk, at),
      parameters: { model: 'claude-haiku-9' },
    })
    const outcomes = [0, 1_000].map((at) => {
      watcher.cache.evict()
      return watcher.send(small(at)).outcome
    })
    const unwatched = { kind: 'not-judged', why: 'not-watched' }
    expect(outcomes).toEqual([unwatched, unwatched])
  })

  it('thinking that the provider leaves out of finished turns', () => {
    const profile = { ...RULES.profile, thinking: { ...RULES.profile.thinking, stripsFinishedTurns: true } }
    const thoughtful = rounded(talk, 1, TEXT, TEXT.repeat(3))
    const sent = requestOf(prompted(responded(thoughtful, [{ type: 'text', text: 'done' }]), TEXT), 1_000)
    const usage = {
      input: 0,
      output: 1,
      read: 29_900,
      short: 6_000,
    }
    const first = { ...usage, read: 0, short: 33_300 }
    const kinds = [RULES, { ...RULES, profile }].map((rules) => {
      const watcher = createWatcher(rules)
      watcher.exchange(requestOf(thoughtful, 0), first)
      return watcher.exchange(sent, usage).kind
    })
    expect(kinds).toEqual(['broke', 'read'])
  })

  it('what is no longer in the request, though nobody said so', () => {
    const usage = {
      input: 10,
      output: 1,
      read: 95_846,
      short: 8,
    }
    const first = { ...usage, read: 134_285, short: 4_102 }
    const watcher = createWatcher()
    watcher.exchange(requestOf(talk, 0), first)
    expect(watcher.exchange(requestOf(next, 1), usage)).toEqual({
      kind: 'read',
      expected: 138_387,
      read: 95_846,
    })
  })
})

describe('deletions from the cached prefix', () => {
  const edits = { kind: 'cache-edits', act: 'deleted 7 results', deletedBefore: 1_000 } as const
  const first = {
    input: 0,
    output: 1,
    read: 0,
    short: 50_000,
  }

  it.each([
    { deleted: 21_000, read: 30_000, kind: 'read' },
    { deleted: 21_000, read: 28_500, kind: 'ours' },
    { deleted: 21_000, read: 20_000, kind: 'broke' },
    { deleted: 1_000, read: 30_000, kind: 'broke' },
    { deleted: null, read: 30_000, kind: 'not-judged' },
  ])('of $deleted, with $read read, are $kind', ({ deleted, read, kind }) => {
    const usage = {
      ...first,
      read: read,
      short: 9_000,
      input: 20_000,
      ...(deleted === null ? {} : { removed: deleted }),
    }
    const watcher = createWatcher()
    watcher.exchange(requestOf(talk, 0), first)
    watcher.announce(MAIN, edits)
    expect(watcher.exchange(requestOf(next, 1), usage).kind).toBe(kind)
  })
})

describe('breaks that are ours', () => {
  it('are told as such', () => {
    const watcher = createWatcher()
    watcher.send(requestOf(talk, 0))
    watcher.announce(MAIN, {
      kind: 'rewrite',
      zone: 'system',
      act: 'rewrote section rules inline',
      breakEvenTurns: 4,
    })
    const sent = requestOf(next, 1_000)
    const system = sent.system.map((piece) => (piece.name === 'rules' ? { ...piece, text: 'new' } : piece))
    const { outcome } = watcher.send({ ...sent, system })
    if (outcome.kind !== 'broke') throw new Error('no break')
    expect(outcome.event.ours).toEqual({ act: 'rewrote section rules inline', breakEvenTurns: 4 })
    expect(outcome.event.sentence).toBe(
      'Cache broke by an intended change: section rules of the system prompt changed (−4,324 characters); 28,803 tokens processed again ($0.0662), pays back in 4 calls.',
    )
  })

  it('only where the reason lies in what was announced', () => {
    const watcher = createWatcher()
    watcher.send(requestOf(talk, 0))
    watcher.announce(MAIN, { kind: 'rewrite', zone: 'system', act: 'rewrote section rules inline' })
    const sent = requestOf(next, 1_000)
    const { outcome } = watcher.send({ ...sent, tools: sent.tools.slice(1) })
    expect(outcome.kind === 'broke' && outcome.event.ours).toBeNull()
  })
})
