import { createFakeJournal, createTestCompaction, createTestHost } from '@tidemark/core/testing'
import { defineMessagesProfile } from '@tidemark/wire/profiles/provider-profile'
import { describe, expect, it } from 'vitest'
import { createCacheMonitor } from '../cache/cache-monitor.ts'
import { createPolicy } from '../policy/create-policy.ts'
import { hasContextEditBetas } from '../request/prefix-snapshot.ts'
import type { ContextSource, SourceItem } from '../sources/context-source.ts'
import { announceSnapshotToMonitor, limitSourceTime, withEngineBetas } from './announce-updates.ts'
import type { Deadlines } from './ports.ts'

const EDITS = { clearThinking: 'clear_thinking', clearToolUses: 'clear_results' }
const BETAS = [
  { where: 'edit' as const, name: 'clear_results', betas: ['edits-2025', 'edits-2026'] },
  { where: 'edit' as const, name: 'clear_thinking', betas: ['edits-2025'] },
  { where: 'edit' as const, name: 'compact', betas: ['compact-2026'] },
]
const BOUND = defineMessagesProfile({ thinking: { binding: 'prefix' }, contextEdits: EDITS, betas: BETAS })
const PLAIN = defineMessagesProfile({ thinking: { binding: 'none' }, contextEdits: EDITS, betas: BETAS })
const POLICY = createPolicy({})

describe('betas for edits by the provider', () => {
  it.each([
    ['are named where thinking is bound', BOUND, POLICY, {}, ['edits-2025']],
    ['beside those of the host', BOUND, POLICY, { betas: ['other'] }, ['other', 'edits-2025']],
    ['and not twice', BOUND, POLICY, { betas: ['edits-2025'] }, ['edits-2025']],
    ['nor where nothing asks for them', PLAIN, POLICY, {}, undefined],
    [
      'but where the policy has no other way',
      PLAIN,
      createPolicy({ clear: { ways: ['native'] } }),
      {},
      ['edits-2025'],
    ],
    [
      'nor where the policy has other ways alone',
      BOUND,
      createPolicy({ clear: { ways: ['budget'] } }),
      {},
      undefined,
    ],
  ])('%s', (_, profile, policy, parameters, betas) => {
    const named = withEngineBetas(parameters, { profile, policy })
    expect(named.betas).toEqual(betas)
    expect(hasContextEditBetas(named, profile)).toBe(betas !== undefined)
  })

  it('are not missed where the provider wants none', () => {
    expect(hasContextEditBetas({}, defineMessagesProfile({ contextEdits: EDITS, betas: [] }))).toBe(true)
  })
})

/** Time is up for whatever has nothing at once. */
const deadlines: Deadlines = {
  within: async (_, work, signal) => {
    if (signal?.aborted === true) return { ok: false, why: 'aborted' }
    const late = new Promise<null>((resolve) => setImmediate(() => resolve(null)))
    const end = await Promise.race([work({ aborted: false }).then((value) => ({ value })), late])
    return end === null ? { ok: false, why: 'timeout' } : { ok: true, value: end.value }
  },
}

const offer: SourceItem = { id: 'a', attachment: { type: 'todo', content: 'x' }, source: 'memory' }

function carrier(render: ContextSource['render']): ContextSource {
  return { name: 'todos', kind: 'host', tellsChanges: false, isWhole: true, limit: () => null, render }
}

function offered(render: ContextSource['render'], signal?: { aborted: boolean }): AsyncIterator<SourceItem> {
  const compaction = createTestCompaction({}, { deadlines })
  const host = createTestHost({ journal: createFakeJournal(), compaction })
  const [bounded] = limitSourceTime({ host, signal }, [carrier(render)])
  if (bounded === undefined) throw new Error('there is one')
  return bounded.render({} as never)[Symbol.asyncIterator]()
}

describe('a carrier', () => {
  it('is handed on as it is', async () => {
    const offers = offered(async function* () {
      yield offer
    })
    expect([await offers.next(), await offers.next()]).toEqual([
      { done: false, value: offer },
      { done: true, value: undefined },
    ])
  })

  it('has failed where it hangs', async () => {
    const offers = offered(async function* () {
      yield offer
      await new Promise(() => {})
    })
    await offers.next()
    await expect(offers.next()).rejects.toThrow('took longer than 10 seconds')
  })

  it('is not asked once the person has called it off', async () => {
    const offers = offered(
      async function* () {
        yield offer
      },
      { aborted: true },
    )
    await expect(offers.next()).rejects.toThrow('was aborted')
  })

  it('hears that nobody wants more', async () => {
    const closed: string[] = []
    const offers = offered(async function* () {
      try {
        yield offer
        yield offer
      } finally {
        closed.push('closed')
      }
    })
    await offers.next()
    await offers.return?.()
    await Promise.resolve()
    expect(closed).toEqual(['closed'])
  })
})

describe('a new epoch', () => {
  it('is announced for whatever lies in front of the messages, with all its causes', () => {
    const names = ['a', 'b', 'c', 'd', 'e']
    const { sources } = announceSnapshotToMonitor(createCacheMonitor(), 'sdk', [
      { kind: 'model', from: 'x', to: 'y' },
      { kind: 'tools', names },
      { kind: 'sections', names: ['git'] },
      { kind: 'parameters', names: ['betas', 'speed'] },
    ])
    const act =
      'changed the model from x to y, defined tools a, b, c and 2 more, rewrote section git, changed parameters betas, speed'
    const zones = ['model', 'tools', 'system', 'other']
    expect(sources.get('repl_main_thread')?.announced).toEqual(
      zones.map((zone) => ({ kind: 'rewrite', zone, act })),
    )
  })
})
