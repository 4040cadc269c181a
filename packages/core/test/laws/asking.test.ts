import {
  continueSession,
  countMaximumSummaryCalls,
  type GeneratedSession,
  GeneratorChoices,
  generateSession,
  listRepairs,
} from '@tidemark/core/testing'
import { defineMessagesProfile } from '@tidemark/wire/profiles/provider-profile'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type ContextEntry, isVisibleToModel } from '../../src/context/context-entry.ts'
import { flattenContext, toApiMessages } from '../../src/context/flatten-context.ts'
import type { MessageRepair } from '../../src/context/message-repair.ts'
import { isAttemptsOutcome } from '../../src/summary/attempt-chain.ts'
import type {
  AttemptResult,
  AttemptsInput,
  SummaryAttempt,
  SummaryAttemptsOutcome,
} from '../../src/summary/attempt-types.ts'
import {
  type CompactionForm,
  type CompactionSpan,
  chooseCompactionSpan,
  listKeptUuids,
} from '../../src/summary/select-span.ts'
import { validateRequest } from '../../src/validate/validate-request.ts'
import {
  answerWith,
  buildLongSession,
  createContext,
  failWith,
  GOOD_SUMMARY,
  runAttempts,
  selectSpan,
} from '../summarize/summary-attempts.ts'
import { generatedSessions } from './generated-sessions.ts'

const form = fc.constantFrom<CompactionForm>('full', 'from', 'up_to')
const uuids = (entries: readonly ContextEntry[]): readonly string[] =>
  entries.map((entry) => entry.record.uuid)

function choice(
  { builder }: Pick<GeneratedSession, 'builder'>,
  how: CompactionForm,
  pick: number,
  pins: readonly number[],
) {
  const shown = uuids(builder.view.entries.toArray())
  const targets = pins.flatMap((pin) => shown[pin % Math.max(1, shown.length)] ?? [])
  const pivot = shown[pick % Math.max(1, shown.length)] ?? 'none'
  return {
    shown,
    pivot,
    chosen: chooseCompactionSpan(builder.view, {
      form: how,
      pivot,
      pins: { targets, budgetTokens: 6, countTokens: () => 1 },
    }),
  }
}

/** The compaction as the engine would write it. */
function commit({ builder }: Pick<GeneratedSession, 'builder'>, span: CompactionSpan): void {
  builder.batch(() => {
    const [boundaryUuid, summaryUuid, lastUuid] = [
      builder.id('boundary'),
      builder.id('summary'),
      builder.id('todo'),
    ]
    const kept = listKeptUuids(span)
    const unanswered = span.unanswered.map(({ record }) => record.uuid)
    const preservedMessages = { anchorUuid: span.form === 'from' ? boundaryUuid : summaryUuid, uuids: kept }
    const unansweredMessages = { anchorUuid: lastUuid, uuids: unanswered }
    builder.notice('compact_boundary', {
      uuid: boundaryUuid,
      parentUuid: null,
      logicalParentUuid: builder.tip,
      compactMetadata: {
        trigger: 'manual',
        preTokens: 1,
        messagesSummarized: span.summarised.length,
        ...(kept.length === 0 ? {} : { preservedMessages }),
        ...(unanswered.length === 0 ? {} : { unansweredMessages }),
      },
    })
    builder.user('Summary:\nx', {
      uuid: summaryUuid,
      isCompactSummary: true,
      isVisibleInTranscriptOnly: true,
    })
    builder.attachment({ type: 'todo', content: 'x', context: 'post-compact' }, { uuid: lastUuid })
  })
}

/** Told of what was so before, now that something stands behind it: a search that never ended, a missing prompt. */
const BENIGN: ReadonlySet<string> = new Set(['no-first-prompt', 'open-server-call'])
/** A result without its call is called by another name once the call is summarised. */
const repairKey = ({ kind, id, origin }: MessageRepair): string =>
  kind.endsWith('-result') && kind !== 'missing-result' ? `stray ${id} ${origin}` : `${kind} ${id ?? origin}`
const profile = defineMessagesProfile({
  roles: { consecutive: 'merged', prefill: 'allowed', system: 'placed' },
  thinking: { closing: 'not-at-end', firstInModes: [], binding: 'none' },
})
/** Sessions in which a response repeats the id of an earlier call, and only that response is pinned. */
const REPEATED_IDS: [number[], CompactionForm, number[]][] = [
  [
    [
      0, 8487, 0, 0, 26236, 0, 0, 0, 0, 130, 0, 2861, 0, 0, 0, 0, 0, 0, 0, 0, 0, 27489, 554, 0, 0, 0, 0, 0,
      51974, 0, 6445,
    ],
    'full',
    [9, 0, 0],
  ],
  [
    [
      0, 8685, 0, 0, 19951, 0, 0, 0, 0, 0, 0, 17509, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 34664, 0, 41419, 0, 0, 0,
      0, 0, 0, 0, 0, 0,
    ],
    'full',
    [1024163762, 0],
  ],
]
const tools = ['Read', 'Bash', 'Edit'].map((name) => ({ name, input_schema: { type: 'object' } }))

describe('law 3: conservation, as far as a span decides it', () => {
  it('every record of the view is in exactly one class, and more is kept than was asked for, never less', () => {
    const seen = { full: 0, from: 0, up_to: 0, pinned: 0, unanswered: 0, moved: 0, refused: 0 }
    fc.assert(
      fc.property(
        generatedSessions(),
        form,
        fc.nat(),
        fc.array(fc.nat(), { maxLength: 3 }),
        (session, how, pick, pins) => {
          const { shown, pivot, chosen } = choice(session, how, pick, pins)
          if (!chosen.ok) {
            seen.refused += 1
            expect(chosen.message.length).toBeGreaterThan(20)
            return
          }
          const { span } = chosen
          const { summarised, kept, pinned, unanswered } = span
          const classed = uuids([summarised, kept, pinned, unanswered].flat())
          const aside = [...session.builder.view.entries].filter((entry) => !isVisibleToModel(entry))
          const notSent = uuids(aside).filter((uuid) => !classed.includes(uuid))
          expect([...classed, ...notSent].toSorted()).toEqual(shown.toSorted())
          expect(summarised.length).toBeGreaterThan(0)
          if (how !== 'full') {
            const at = shown.indexOf(pivot)
            const wanted = how === 'from' ? shown.slice(0, at) : shown.slice(at)
            const gone = new Set(uuids(summarised))
            expect(wanted.filter((uuid) => gone.has(uuid))).toEqual([])
          }
          seen[how] += 1
          seen.pinned += pinned.length
          seen.unanswered += unanswered.length
          seen.moved += span.movedFrom === null ? 0 : 1
        },
      ),
      { numRuns: 300 },
    )
    for (const [what, count] of Object.entries(seen)) expect(count, what).toBeGreaterThan(0)
  })

  it('a compaction along a span breaks nothing: the request is valid, no call or result loses its partner', () => {
    let committed = 0
    fc.assert(
      fc.property(
        fc.array(fc.nat({ max: 0xffff }), { minLength: 20, maxLength: 160 }),
        form,
        fc.array(fc.nat(), { minLength: 2, maxLength: 4 }),
        (numbers, how, picks) => {
          const session = generateSession(new GeneratorChoices(numbers), { settled: true })
          for (const pick of picks) {
            const { chosen } = choice(session, how, pick, [pick + 1])
            if (!chosen.ok) continue
            const before = new Set(listRepairs(flattenContext(session.builder.view)).map(repairKey))
            commit(session, chosen.span)
            committed += 1
            const flat = flattenContext(session.builder.view)
            const mixed = new Set(uuids(chosen.span.unanswered))
            const news = listRepairs(flat).filter(
              (repair) => !before.has(repairKey(repair)) && !mixed.has(repair.origin),
            )
            expect(news.filter(({ kind }) => !BENIGN.has(kind))).toEqual([])
            const messages = toApiMessages(flat)
            expect(validateRequest({ model: 'm', max_tokens: 9, tools, messages }, profile)).toEqual([])
            for (const entry of chosen.span.unanswered)
              expect(uuids(session.builder.view.entries.toArray())).toContain(entry.record.uuid)
            continueSession(session.builder, new GeneratorChoices([pick, pick + 7, pick * 3]), {
              settled: true,
            })
          }
        },
      ),
      { numRuns: 120, examples: REPEATED_IDS },
    )
    expect(committed).toBeGreaterThan(50)
  })
})

const outcome: fc.Arbitrary<AttemptResult> = fc.oneof(
  { weight: 2, arbitrary: fc.constant(GOOD_SUMMARY) },
  fc.constantFrom(
    answerWith(''),
    answerWith('x', 'cut'),
    answerWith('no', 'refused'),
    answerWith('<analysis>only</analysis>'),
    answerWith('<summary>x</summary>', 'window'),
    answerWith(`<summary>${'long '.repeat(100_000)}</summary>`),
    { kind: 'stalled', message: 'nothing came' } as const,
    { kind: 'unavailable', message: 'no parent' } as const,
    {
      kind: 'answer',
      content: [{ type: 'tool_use', id: 'c', name: 'Read', input: {} }],
      stop: 'tools',
    } as const,
  ),
  {
    weight: 3,
    arbitrary: fc
      .constantFrom('server', 'overloaded', 'auth', 'not-found', 'invalid-request')
      .map((kind) => failWith(kind)),
  },
  {
    weight: 4,
    arbitrary: fc
      .record({
        over: fc.option(fc.nat({ max: 4_000 })),
        limit: fc.option(fc.integer({ min: 500, max: 8_000 })),
      })
      .map(({ over, limit }) =>
        failWith('overflow', { ...(over === null ? {} : { over }), ...(limit === null ? {} : { limit }) }),
      ),
  },
)

const settings = fc.record({
  fork: fc.boolean(),
  isWarm: fc.boolean(),
  local: fc.constantFrom('last' as const, 'never' as const),
  retries: fc.nat({ max: 3 }),
  drops: fc.nat({ max: 3 }),
  window: fc.constantFrom(null, 2_500, 6_000, 200_000),
  other: fc.boolean(),
  charactersPerToken: fc.constantFrom(1, 4),
})

interface Settings {
  readonly fork: boolean
  readonly isWarm: boolean
  readonly local: 'last' | 'never'
  readonly retries: number
  readonly drops: number
  readonly window: number | null
  readonly other: boolean
  readonly charactersPerToken: number
}

function contextFor(span: CompactionSpan, given: Settings): AttemptsInput {
  const { fork, isWarm, local, retries, drops, window, other, charactersPerToken } = given
  return createContext({
    span,
    policy: { compact: { chain: { fork, local }, direct: { retries }, headDrop: { retries: drops } } },
    direct: { window, outputTokens: 600, ...(other ? { model: 'other' } : {}) },
    context: {
      isWarm,
      countEntryTokens: (entry) => Math.ceil(JSON.stringify(entry.record).length / charactersPerToken),
    },
  })
}

/** What would go out: deadlines and counts aside. */
function sent(ask: SummaryAttempt): string {
  if (ask.kind === 'direct') return JSON.stringify(ask.payload)
  return ask.kind === 'fork' ? JSON.stringify([ask.kind, ask.message]) : ask.kind
}

function checkEnd(done: SummaryAttemptsOutcome, span: CompactionSpan, local: string): void {
  if (!done.ok) {
    expect([local, done.message.length > 20]).toEqual(['never', true])
    return
  }
  const covered = uuids(done.coveredLocally)
  expect(new Set(covered).size).toBe(covered.length)
  expect(uuids(span.summarised)).toEqual(expect.arrayContaining([...covered]))
  expect(done.summary.trim().length).toBeGreaterThan(5)
}

describe('law 9: asking ends', () => {
  it('whatever comes back: within the calls allowed, never the same request twice, every request one a provider takes', () => {
    const seen = { local: 0, model: 0, failed: 0, drops: 0 }
    const strict = defineMessagesProfile({ window: 200_000 })
    fc.assert(
      fc.property(
        fc.oneof(
          generatedSessions({ settled: true }),
          fc.nat({ max: 40 }).map((rounds) => ({ builder: buildLongSession(rounds) })),
        ),
        form,
        fc.nat(),
        fc.array(outcome, { minLength: 1, maxLength: 12 }),
        settings,
        (session, how, pick, outcomes, given) => {
          const { chosen } = choice(session, how, pick, [])
          if (!chosen.ok) return
          const context = contextFor(chosen.span, given)
          const { asks, done } = runAttempts(context, outcomes, 'Summary:\nx')
          const models = asks.filter((ask) => ask.kind !== 'local')
          expect(models.length).toBeLessThanOrEqual(countMaximumSummaryCalls(context.policy))
          const texts = asks.map(sent)
          expect(new Set(texts).size).toBe(texts.length)
          for (const ask of asks)
            if (ask.kind === 'direct') expect(validateRequest(ask.payload, strict)).toEqual([])
          seen.drops += asks.filter((ask) => ask.rung === 3).length
          const isTiny = done.trace.some(({ rung, reason }) => rung === 4 && reason === 'too-large')
          if (isAttemptsOutcome(done) && !isTiny) checkEnd(done, chosen.span, given.local)
          seen[done.ok ? (done.summarizer === 'local' ? 'local' : 'model') : 'failed'] += 1
        },
      ),
      { numRuns: 250 },
    )
    for (const [what, count] of Object.entries(seen)) expect(count, what).toBeGreaterThan(0)
  })
})

describe('law 3: only what a summariser was shown may leave the view', () => {
  it('each summarised record was in a call whose answer was taken, or is handed back for the local extractor', () => {
    let seen = 0
    const some = fc.constantFrom(
      GOOD_SUMMARY,
      GOOD_SUMMARY,
      answerWith('no'),
      failWith('overflow'),
      failWith('overflow', { over: 900 }),
    )
    const rounds = fc.integer({ min: 1, max: 60 })
    fc.assert(
      fc.property(
        rounds,
        fc.array(some, { maxLength: 8 }),
        fc.constantFrom(null, 5_000),
        (count, chosen, window) => {
          const outcomes = [...chosen, GOOD_SUMMARY]
          const span = selectSpan(buildLongSession(count))
          const context = createContext({
            span,
            context: { isWarm: false },
            direct: { window, outputTokens: 1_000 },
          })
          const { asks, done } = runAttempts(context, outcomes)
          if (!done.ok || done.summarizer === 'local') return
          const taken = asks.filter((_, at) => outcomes[Math.min(at, outcomes.length - 1)] === GOOD_SUMMARY)
          const shown = JSON.stringify(taken)
          const covered = new Set(uuids(done.coveredLocally))
          for (let round = 0; round < count; round += 1) {
            expect([round, shown.includes(`content ${round} `)]).toEqual([round, !covered.has(`r${round}`)])
          }
          seen += covered.size
        },
      ),
      { numRuns: 150 },
    )
    expect(seen).toBeGreaterThan(5)
  })
})
