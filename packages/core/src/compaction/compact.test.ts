/** Compacting with the notes: every branch of the decision, the kept messages, and what is left if it is refused. */
import { createFakeClock, type FakeClock, SessionBuilder } from '@tidemark/core/testing'
import { describe, expect, it } from 'vitest'
import {
  addLargeRound,
  BOUND,
  changeRoom,
  compactNow,
  eventsOfType,
  openRounds,
  openTestSession,
  perform,
  SESSION,
  SUMMARY,
  sentText,
  type TestSession,
  type TestSessionOptions,
  undoNow,
} from '../../test/engine/test-session.ts'
import { type RewriteRefusalReason, refuseRewrite } from '../engine/events.ts'
import type { HostSummaryWriter, NotesServices } from '../engine/host.ts'
import type { NotesStore, StoredNotes } from '../engine/ports.ts'
import { isCompactionBreakerOpen, NO_COMPACTION_FAILURES } from '../engine/session-state.ts'
import {
  formatNotes,
  NOTES_SECTION_NAMES,
  NOTES_SECTION_TEMPLATES,
  NOTES_TEMPLATE,
} from '../notes/notes-file.ts'
import { type BranchNotesKeeper, createBranchNotesKeeper } from '../notes/render-notes.ts'
import { presets } from '../policy/presets.ts'
import { compact, countCompactionFailure, hasUsableNotes } from './compact.ts'
import type { CompactionOptions } from './plan-compaction.ts'

const NOTES = formatNotes(
  NOTES_SECTION_NAMES.map((name) => ({
    ...NOTES_SECTION_TEMPLATES[name],
    body: name === 'state' ? 'The login is being mended in /src/login.ts.' : '',
  })),
)

/** A conversation of so many rounds of 5,000 tokens, and the uuid of the last record of each. */
function talk(
  rounds: number,
  thinks = false,
  prompt = 'look at the login',
): { builder: SessionBuilder; ends: readonly string[] } {
  const builder = new SessionBuilder(SESSION)
  builder.user(prompt)
  const ends: string[] = []
  for (let round = 0; round < rounds; round += 1) {
    addLargeRound(builder, 5_000, thinks)
    ends.push(builder.records.at(-1)?.uuid ?? '')
  }
  return { builder, ends }
}

interface Given {
  readonly stored?: Partial<StoredNotes> | null
  /** When a running update began, by the clock of the session; null if none runs. */
  readonly claimedAt?: (clock: FakeClock) => number | null
  readonly store?: Partial<NotesStore>
  readonly options?: TestSessionOptions
  readonly rounds?: number
  readonly covered?: number
  readonly thinks?: boolean
  /** The first message of the user. */
  readonly prompt?: string
  /** Tokens of a result that no response has answered; default none. */
  readonly newest?: number
  /** Notes from the log, for where those of the model cannot be used. */
  readonly fallback?: BranchNotesKeeper
}

interface Opened {
  readonly session: TestSession
  readonly clock: FakeClock
  readonly written: StoredNotes[]
}

async function open(given: Given = {}): Promise<Opened> {
  const { stored = {}, rounds = 7, covered = 6, thinks = false } = given
  const { builder, ends } = talk(rounds, thinks, given.prompt)
  if (given.newest !== undefined) {
    const input = { file_path: '/src/long.ts' }
    builder.assistant('newest', [{ type: 'tool_use', id: 'newest', name: 'Read', input }])
    builder.result('newest', 'abc '.repeat(given.newest))
  }
  const clock = createFakeClock(Date.UTC(2026, 5, 1))
  const written: StoredNotes[] = []
  const coveredUuid = ends[covered - 1] ?? null
  const notes: StoredNotes | null =
    stored === null ? null : { text: NOTES, coveredUuid, writtenAt: 0, writtenBy: 'model', ...stored }
  const store: NotesStore = {
    read: async () => notes,
    write: async (_, next) => void written.push(next),
    readOverrides: async () => ({}),
    path: () => '/notes/summary.md',
    claim: async () => null,
    readClaim: async () => given.claimedAt?.(clock) ?? null,
    ...given.store,
  }
  const { fallback } = given
  const services: NotesServices = { store, local: null, ...(fallback === undefined ? {} : { fallback }) }
  const { room, host, policy, ...options } = given.options ?? {}
  const session = await openTestSession(builder.records, {
    window: 64_000,
    ...options,
    policy: { switches: { microcompactEnabled: false }, ...policy },
    room: { notes: services, ...room },
    host: { clock, ...host },
  })
  return { session, clock, written }
}

const AUTO: Partial<CompactionOptions> = { trigger: 'auto', cause: 'threshold', firedBy: 'threshold' }

async function play(given: Given = {}, asked: Partial<CompactionOptions> = AUTO) {
  const { session } = await open(given)
  const end = await compactNow(session, asked)
  const refused = eventsOfType(session, 'sm-compact-refused').map(({ reason }) => reason)
  return { session, end, refused, by: end.ok ? end.compaction.summarizer : end.reason }
}

describe('an automatic compaction uses the notes', () => {
  it('as its summary, without a model call, and keeps the newest messages as they were', async () => {
    const { session, end } = await play({ options: { byChain: true } })
    if (!end.ok) throw new Error(end.message)
    expect(end.compaction).toMatchObject({ summarizer: 'notes', usage: { calls: 0 }, fallbackReason: null })
    const { lines } = session.room.scaled.known ? session.room.scaled : { lines: null }
    expect(end.compaction).toMatchObject({ threshold: lines?.autoCompact, source: session.host.source })
    expect(session.asked).toEqual([])
    const text = sentText(session)
    expect(text).toContain('The login is being mended in /src/login.ts.')
    expect(text).toContain('look at the login') // what the user said is put back by the gate
    expect(eventsOfType(session, 'sm-compact')[0]).toMatchObject({ by: 'model', cut: [] })
    expect(eventsOfType(session, 'compact')).toHaveLength(1)
  })

  it('with a long message of the user, which is cut if system prompt and tools leave little room', async () => {
    const prompt = `first ${'plan '.repeat(5_100)} last`
    const read = async (description: string): Promise<string> => {
      const tools = [{ name: 'Read', description, input_schema: { type: 'object' } }]
      const host = { readOfferedPrefix: () => ({ tools, model: 'model-a', parameters: { max_tokens: 100 } }) }
      const { session, end } = await play({ prompt, covered: 7, options: { host } })
      expect(end.ok).toBe(true)
      return sentText(session)
    }
    expect(await read('short')).toContain(prompt)
    const cut = await read('word '.repeat(8_000))
    expect(cut).not.toContain(prompt)
    expect(cut).toMatch(/first plan .* last/s)
  })

  it('and an undo gives the requests from before', async () => {
    const { session } = await open()
    const before = sentText(session)
    await compactNow(session, AUTO)
    expect(sentText(session)).not.toBe(before)
    expect((await undoNow(session)).ok).toBe(true)
    expect(sentText(session)).toBe(before)
  })
})

/** Keeps rounds that are larger than the messages that are kept by default. */
const KEEPS_MORE = { notes: { kept: { minimumTokens: 10_000, maximumTokens: 40_000 } } }

const cases: readonly {
  readonly name: string
  readonly given?: Given
  readonly asked?: Partial<CompactionOptions>
  readonly refused: readonly string[]
  /** Who wrote the summary in the end; `host`: the summary of tier 2. */
  readonly by?: string
}[] = [
  { name: 'manual compactions', asked: { trigger: 'manual', cause: 'person' }, refused: [] },
  { name: 'compactions after a refusal by the provider', asked: { ...AUTO, cause: 'reactive' }, refused: [] },
  {
    name: 'conversations of source compact',
    given: { options: { host: { source: 'compact' } } },
    refused: [],
  },
  {
    name: 'conversations of source session_memory',
    given: { options: { host: { source: 'session_memory' } } },
    refused: [],
  },
  { name: 'notes switched off', given: { options: { policy: { notes: { enabled: false } } } }, refused: [] },
  { name: 'no notes', given: { stored: null }, refused: ['no-notes'] },
  { name: 'the empty template', given: { stored: { text: NOTES_TEMPLATE } }, refused: ['empty-notes'] },
  { name: 'unknown coverage', given: { stored: { coveredUuid: null } }, refused: ['unknown-coverage'] },
  {
    name: 'coverage of a record that is not in the context',
    given: { stored: { coveredUuid: 'gone' } },
    refused: ['not-in-context'],
  },
  {
    name: 'notes that cannot be read',
    given: {
      store: {
        read: async () => {
          throw new Error('disk')
        },
      },
    },
    refused: ['store'],
  },
  {
    name: 'a store that fails while its claim is looked at',
    given: {
      store: {
        readClaim: async () => {
          throw new Error('disk')
        },
      },
    },
    refused: ['store'],
  },
  {
    name: 'a path that cannot be told',
    given: {
      store: {
        path: () => {
          throw new Error('no path')
        },
      },
    },
    refused: ['error'],
  },
  {
    name: 'a conversation of which everything would be kept',
    given: { rounds: 2, covered: 2, options: { policy: KEEPS_MORE, window: 200_000 } },
    refused: ['refused'],
  },
]

describe('a summary is written instead, with', () => {
  it.each(cases)('$name', async ({ given = {}, asked = AUTO, refused }) => {
    const done = await play(given, asked)
    expect(done.refused).toEqual(refused)
    expect(done.by).toBe('model')
    expect(sentText(done.session)).toContain(SUMMARY.split('\n')[1])
    expect(eventsOfType(done.session, 'sm-compact')).toEqual([])
  })

  it('a result that would reach the threshold again', async () => {
    // Covered is only the first round, so that six rounds of 5,000 tokens would stay.
    const done = await play({ covered: 1, rounds: 9 })
    expect(done.refused).toEqual([])
    const [exceeded] = eventsOfType(done.session, 'sm-compact-threshold-exceeded')
    expect(exceeded?.tokens).toBeGreaterThanOrEqual(exceeded?.threshold ?? Number.POSITIVE_INFINITY)
    expect(done.by).toBe('model')
  })

  it('a result that may reach the threshold by the upper bound of its estimate', async () => {
    const done = await play({ covered: 2, rounds: 9 })
    const [exceeded] = eventsOfType(done.session, 'sm-compact-threshold-exceeded')
    expect(exceeded?.tokens).toBeGreaterThanOrEqual(exceeded?.threshold ?? Number.POSITIVE_INFINITY)
    expect(done.by).toBe('model')
  })
})

describe('notes of the model that lag behind', () => {
  // By its estimate, the result may reach the threshold with 1 or 2 of 9 rounds covered: surely, or by the upper bound.
  it.each([1, 2])(
    '(%i of 9 rounds) give way to notes from the log, and no model is asked',
    async (covered) => {
      const given = { covered, rounds: 9, fallback: createBranchNotesKeeper(), options: { byChain: true } }
      const { session, by, refused } = await play(given)
      expect([by, refused, session.asked]).toEqual(['notes', [], []])
      expect(eventsOfType(session, 'sm-compact')).toMatchObject([
        { by: 'local', fallbackReason: 'threshold' },
      ])
      expect(eventsOfType(session, 'sm-compact-threshold-exceeded')).toEqual([])
    },
  )

  it('run the PreCompact hooks once, also if notes from the log take their place', async () => {
    const seen: string[] = []
    const preCompact = [{ name: 'guard', run: async () => void seen.push('ran') }]
    const options = { room: { hooks: { preCompact } } }
    const { by } = await play({ covered: 2, rounds: 9, fallback: createBranchNotesKeeper(), options })
    expect([by, seen]).toEqual(['notes', ['ran']])
  })
})

describe('a PreCompact hook', () => {
  const hook = (output: object, seen: string[] = []) => ({
    preCompact: [
      {
        name: 'guard',
        run: async () => {
          seen.push('ran')
          return output
        },
      },
    ],
  })

  it('may block: then no summary is written either, and the hook runs once', async () => {
    const seen: string[] = []
    const { session, end, refused } = await play({
      options: { room: { hooks: hook({ block: 'not now' }, seen) } },
    })
    expect(end).toMatchObject({ ok: false, reason: 'blocked' })
    expect([refused, seen]).toEqual([['blocked'], ['ran']])
    expect(sentText(session)).not.toContain(SUMMARY.split('\n')[1])
  })

  it('that blocks is told as the reason, also if nothing but the notes may be used, and may let them through later', async () => {
    const answers: object[] = [{ block: 'not now' }, {}]
    const preCompact = [{ name: 'guard', run: async () => answers.shift() ?? {} }]
    const asked = { ...AUTO, notesOnly: true }
    const { session, end } = await play({ options: { room: { hooks: { preCompact } } } }, asked)
    expect(end).toMatchObject({ ok: false, reason: 'blocked' })
    expect(await compactNow(session, asked)).toMatchObject({ ok: true, compaction: { summarizer: 'notes' } })
  })

  it('runs once for a compaction, and its instructions reach the summary that is written in the end', async () => {
    const seen: string[] = []
    const instructions: string[] = []
    const hooks = hook({ newCustomInstructions: 'Name the tests.' }, seen)
    const writeSummary: HostSummaryWriter = async (input) => {
      instructions.push(input.instructions ?? '')
      return SUMMARY
    }
    const done = await play({ covered: 2, rounds: 9, options: { room: { hooks, writeSummary } } })
    expect(eventsOfType(done.session, 'sm-compact-threshold-exceeded')).toHaveLength(1)
    expect([done.by, seen, instructions]).toEqual(['model', ['ran'], ['Name the tests.']])
  })

  it('may not instruct: the notes stay as they are', async () => {
    const { session, by } = await play({
      options: { room: { hooks: hook({ newCustomInstructions: 'Write a poem.' }) } },
    })
    expect([by, sentText(session).includes('poem')]).toEqual(['notes', false])
  })
})

describe('an update of the notes that is running', () => {
  it('is waited for, at most 15 seconds; then the notes are used as they are', async () => {
    const { session, clock } = await open({ claimedAt: (now) => started ?? now.now() })
    const started = clock.now()
    const compacting = compactNow(session, AUTO)
    for (let second = 0; second < 14; second += 1) await clock.advance(1_000)
    expect(eventsOfType(session, 'sm-compact')).toEqual([])
    expect(eventsOfType(session, 'phase')[0]?.phase).toBe('waiting for the notes')
    for (let step = 0; step < 8; step += 1) await clock.advance(250)
    expect(await compacting).toMatchObject({ ok: true, compaction: { summarizer: 'notes' } })
  })

  it('is waited for only until it ends', async () => {
    let claimed: number | null = 0
    const { session, clock } = await open({ claimedAt: () => claimed })
    claimed = clock.now()
    const compacting = compactNow(session, AUTO)
    await clock.advance(500)
    claimed = null
    await clock.advance(250)
    expect(await compacting).toMatchObject({ ok: true, compaction: { summarizer: 'notes' } })
  })

  it('is not waited for if it began a minute ago: it is dead', async () => {
    const { session } = await open({ claimedAt: (clock) => clock.now() - 60_000 })
    expect(await compactNow(session, AUTO)).toMatchObject({ ok: true, compaction: { summarizer: 'notes' } })
  })

  it('ends its wait when the turn is aborted, and nothing changes', async () => {
    const { session, clock } = await open({ claimedAt: (now) => now.now() })
    const signal = { aborted: false }
    const run = { ...session.run, signal }
    const before = sentText(session)
    const compacting = perform(session, compact(run, { trigger: 'auto', cause: 'threshold' }))
    signal.aborted = true
    await clock.advance(250)
    expect(await compacting).toMatchObject({ ok: false, reason: 'aborted' })
    expect(sentText(session)).toBe(before)
  })
})

describe('a compaction that only saves money', () => {
  const PRICE = { trigger: 'auto', cause: 'price', firedBy: 'price', notesOnly: true } as const

  it('uses the notes as they are, without a wait for their update', async () => {
    const { session } = await open({ claimedAt: (clock) => clock.now() })
    expect(await compactNow(session, PRICE)).toMatchObject({ ok: true, compaction: { summarizer: 'notes' } })
    expect(eventsOfType(session, 'phase').map(({ phase }) => phase)).not.toContain('waiting for the notes')
  })

  it('writes no summary if the notes cannot be used, and is not tried again before they are updated', async () => {
    const { session } = await open({ stored: { text: NOTES_TEMPLATE } })
    const places = [-1, -2].map((place) => session.run.state.view.entries.at(place)?.record.uuid ?? '')
    const isReady = (coveredUuid = '') => {
      const notes = { ...session.room.notes, readStored: () => ({ coveredUuid }) } as NotesServices
      return { now: hasUsableNotes(session.run.state, changeRoom(session, { notes }).host) }
    }
    const { now } = isReady(places[1])
    const before = sentText(session)
    const end = await perform(session, compact(session.run, PRICE))
    expect([now, end.ok, eventsOfType(session, 'sm-compact-refused').length]).toEqual([true, false, 1])
    expect([sentText(session), eventsOfType(session, 'compact-failed')]).toEqual([before, []])
    expect([isReady(places[1]).now, isReady(places[0]).now]).toEqual([false, true])
  })
})

describe('a compaction before the auto-compact threshold', () => {
  it('uses the notes as they are, without a wait for their update', async () => {
    const { session } = await open({ claimedAt: (clock) => clock.now() })
    const asked = { ...AUTO, notesOnly: true }
    expect(await compactNow(session, asked)).toMatchObject({ ok: true, compaction: { summarizer: 'notes' } })
    expect(eventsOfType(session, 'phase').map(({ phase }) => phase)).not.toContain('waiting for the notes')
  })
})

describe('the kept messages', () => {
  it('under the preset claude-code-like have all of their 40,000 tokens', async () => {
    const like = presets['claude-code-like']
    const policy = { ...like, notes: { kept: { ...like.notes?.kept, minimumMessages: 50 } } }
    const { session } = await play({ rounds: 14, covered: 14, options: { window: 200_000, policy } })
    const { tokens } = eventsOfType(session, 'sm-compact')[0]?.kept ?? { tokens: 0 }
    expect([tokens > 32_000, tokens <= 40_000]).toEqual([true, true])
  })

  it('are all that the notes do not cover, whatever their size', async () => {
    const { session } = await play({ rounds: 12, covered: 7, options: { window: 100_000 } })
    expect(sentText(session).match(/"read \/src/g)).toHaveLength(5)
    expect(eventsOfType(session, 'sm-compact')[0]?.kept.tokens).toBeGreaterThan(25_000)
  })

  it('are at least the newest ones by tokens and by number, although the notes cover all', async () => {
    const { session } = await play({
      rounds: 14,
      covered: 14,
      options: { window: 200_000, policy: KEEPS_MORE },
    })
    const [done] = eventsOfType(session, 'sm-compact')
    // Five messages with text: two rounds have one each, so growth goes on beyond 10,000 tokens.
    expect(done?.kept.tokens).toBeGreaterThanOrEqual(20_000)
    expect(done?.kept.tokens).toBeLessThanOrEqual(40_000)
  })

  it('grow no further than the largest size', async () => {
    const { session } = await play({
      rounds: 14,
      covered: 14,
      options: {
        window: 200_000,
        policy: { notes: { kept: { ...KEEPS_MORE.notes.kept, minimumMessages: 50 } } },
      },
    })
    const { tokens } = eventsOfType(session, 'sm-compact')[0]?.kept ?? { tokens: 0 }
    expect([tokens > 25_000, tokens <= 40_000]).toEqual([true, true])
  })

  it('begin at a whole round: no result without its call', async () => {
    const { session } = await play({
      rounds: 14,
      covered: 14,
      options: { window: 200_000, policy: KEEPS_MORE },
    })
    const messages = JSON.parse(sentText(session)) as {
      content: { type: string; id?: string; tool_use_id?: string }[]
    }[]
    const blocks = messages.flatMap(({ content }) => (typeof content === 'string' ? [] : content))
    const calls = new Set(blocks.flatMap((block) => (block.type === 'tool_use' ? [block.id] : [])))
    const results = blocks.flatMap((block) => (block.type === 'tool_result' ? [block.tool_use_id] : []))
    expect(results.length).toBeGreaterThan(0)
    expect(results.filter((id) => !calls.has(id))).toEqual([])
  })

  it('lose their thinking where a model binds it to what came before, and the plan says so', async () => {
    const { session, end } = await play({ thinks: true, options: { profile: BOUND } })
    if (!end.ok) throw new Error(end.message)
    expect(end.compaction.notes.join()).toContain('no longer sent')
    expect(sentText(session)).not.toContain('"thinking"')
    expect((await undoNow(session)).ok).toBe(true)
    expect(sentText(session)).toContain('"thinking"')
  })

  it('keep their thinking elsewhere', async () => {
    const { session, end } = await play({ thinks: true })
    if (!end.ok) throw new Error(end.message)
    expect(end.compaction.notes).toEqual([])
    expect(sentText(session)).toContain('"thinking"')
  })
})

describe('a result that the model has not seen', () => {
  it('stays although the threshold is passed with it, as long as it fits the window', async () => {
    const given = { stored: null, fallback: createBranchNotesKeeper(), options: { byChain: true } }
    const { session, by } = await play({ ...given, newest: 33_000 })
    expect([by, session.asked]).toEqual(['notes', []])
    expect(sentText(session)).toContain('"tool_use_id":"newest","content":"abc abc')
    // A compaction that only saves money waits instead.
    expect((await play({ ...given, newest: 33_000 }, { ...AUTO, notesOnly: true })).end.ok).toBe(false)
  })

  it('is summarized if it does not fit the window', async () => {
    const { by } = await play({ stored: null, fallback: createBranchNotesKeeper(), newest: 120_000 })
    expect(by).not.toBe('notes')
  })
})

describe('sections over their limit', () => {
  it('are cut below their heading, without hints and empty sections, and the mark names the file', async () => {
    const lines = Array.from({ length: 2_000 }, (_, line) => `- step ${line}`).join('\n')
    const text = `${NOTES}\n${lines}\n`
    const { session } = await play({ stored: { text } })
    const sent = sentText(session)
    expect(eventsOfType(session, 'sm-compact')[0]?.cut).toEqual(['Worklog'])
    expect(sent).toContain('# Worklog\\n\\n- step 0\\n')
    expect(sent).not.toContain('# Learnings')
    expect(sent).toContain('[This section was cut here. Its whole text is in /notes/summary.md]')
    expect(sent).not.toContain('- step 1999')
  })
})

describe('the breaker', () => {
  const count = (session: TestSession, reasons: readonly RewriteRefusalReason[]) =>
    reasons.flatMap((reason) => [...countCompactionFailure(session.run, refuseRewrite(reason, 'No.'))])
  const isOpen = ({ run, host }: TestSession): boolean =>
    isCompactionBreakerOpen(run.state.context?.breaker ?? NO_COMPACTION_FAILURES, host.policy.turn.auto)

  it.each<[string, readonly RewriteRefusalReason[], boolean]>([
    ['nothing tried', [], false],
    ['two failures', ['no-summary', 'no-summary'], false],
    ['three in a row', ['no-summary', 'no-summary', 'no-summary'], true],
    [
      'what is no failure neither counts nor resets',
      ['no-summary', 'aborted', 'no-summary', 'blocked', 'nothing-to-summarise', 'no-summary'],
      true,
    ],
  ])('%s', async (_, reasons, open) => {
    const session = await openRounds()
    expect(count(session, reasons)).toEqual(
      open ? [{ type: 'breaker-open', failures: 3, reason: 'No.' }] : [],
    )
    expect(isOpen(session)).toBe(open)
  })

  it('a success between', async () => {
    const session = await openRounds()
    count(session, ['no-summary', 'no-summary'])
    expect((await compactNow(session)).ok).toBe(true)
    count(session, ['no-summary'])
    expect(isOpen(session)).toBe(false)
  })

  it('remembers why, and when', async () => {
    const session = await openRounds()
    count(session, ['aborted', 'no-summary'])
    const at = session.run.state.session.records.length - 1
    expect(session.run.state.context?.breaker).toEqual({ failures: 1, lastReason: 'no-summary', at })
  })
})
