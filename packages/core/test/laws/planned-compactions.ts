/** Generated sessions that are compacted again and again by the engine, and what is compared before and after. */
import {
  countPropertyRuns,
  GeneratorChoices,
  generateSession,
  type SessionBuilder,
} from '@tidemark/core/testing'
import fc from 'fast-check'
import { expect } from 'vitest'
import type { CompactionOptions } from '../../src/compaction/plan-compaction.ts'
import { type ContextEntry, isVisibleToModel } from '../../src/context/context-entry.ts'
import { listTracedMessages } from '../../src/context/flatten-context.ts'
import type { RewriteRefusalReason } from '../../src/engine/events.ts'
import type { HostSummaryInput, TurnHost } from '../../src/engine/host.ts'
import { buildNextRequest } from '../../src/engine/next-request.ts'
import type { SessionState } from '../../src/engine/session-state.ts'
import { appendUnlinkedRecords, type UnlinkedRecord } from '../../src/engine/session-writer.ts'
import { toModelCallInput } from '../../src/request/build-request.ts'
import { setRecordPin } from '../../src/turn/pin.ts'
import { prepareNextRequest } from '../../src/turn/turn.ts'
import {
  addLargeRound,
  compactNow,
  LENIENT,
  openTestSession,
  PROVIDER_RULES,
  perform,
  SUMMARY,
  type TestSession,
  textCarrier,
} from '../engine/test-session.ts'

export interface CompactionPlan {
  /** The choices that the session before is generated from. */
  readonly numbers: readonly number[]
  /** The compactions, one after the other. */
  readonly acts: readonly PlannedCompaction[]
  readonly carriersFirst: boolean
  /** Whose rules the requests follow (`PROVIDER_RULES`). */
  readonly provider: string
}

export interface PlannedCompaction {
  readonly form: 'full' | 'from' | 'up_to'
  /** Position of the pivot in the view, in thousandths. */
  readonly pivot: number
  /** User messages before it that nobody answers. */
  readonly prompts: number
  /** Rounds of work before those. */
  readonly rounds: number
  readonly pin: number | null
}

const plannedCompaction: fc.Arbitrary<PlannedCompaction> = fc.record({
  form: fc.constantFrom('full', 'full', 'from', 'up_to'),
  pivot: fc.nat({ max: 999 }),
  prompts: fc.nat({ max: 2 }),
  rounds: fc.integer({ min: 1, max: 4 }),
  pin: fc.option(fc.nat({ max: 999 }), { freq: 3 }),
})

export function compactionPlans(rounds = 3): fc.Arbitrary<CompactionPlan> {
  return fc.record({
    numbers: fc.array(fc.nat({ max: 0xffff }), { minLength: 0, maxLength: 120, size: 'max' }),
    acts: fc.array(plannedCompaction, { minLength: 1, maxLength: rounds }),
    carriersFirst: fc.boolean(),
    provider: fc.constantFrom(...Object.keys(PROVIDER_RULES)),
  })
}

export function buildSession({ numbers }: CompactionPlan): SessionBuilder {
  const { builder } = generateSession(new GeneratorChoices(numbers), { settled: true })
  builder.user('go on with the work')
  for (let round = 0; round < 3; round += 1) addLargeRound(builder, 1_500, round % 2 === 0)
  return builder
}

/** The record at so many thousandths of the view. */
export function entryAt({ view }: SessionState, thousandths: number): ContextEntry | undefined {
  const shown = view.entries.toArray().filter(isVisibleToModel)
  return shown[Math.floor((thousandths * shown.length) / 1000)]
}

export function toCompactAsked(
  state: SessionState,
  { form, pivot }: PlannedCompaction,
): Partial<CompactionOptions> {
  const picked = entryAt(state, pivot)?.record.uuid
  return form === 'full' || picked === undefined ? { form: 'full' } : { form, pivot: picked }
}

export function listUuids(entries: Iterable<ContextEntry>): readonly string[] {
  return [...entries].map(({ record }) => record.uuid)
}

export function shownUuids({ view }: SessionState): readonly string[] {
  return listUuids(view.entries.toArray().filter(isVisibleToModel))
}

/** The request that would be sent now, to the byte, markers included. */
export function requestBytes(state: SessionState, host: TurnHost): string {
  const { current: standing } = state.prefix
  if (standing === null) return JSON.stringify(listTracedMessages(state.flat).map(({ message }) => message))
  const { payload, raw } = toModelCallInput(buildNextRequest(state, standing, host).request)
  return JSON.stringify([payload, raw?.map((texts) => (texts === undefined ? null : [...texts]))])
}

/** The messages without markers, which also stand where the last answered request ended. */
export function messageBytes(state: SessionState): string {
  return JSON.stringify(
    listTracedMessages(state.flat).map(({ message, raw }) => [message, raw === undefined ? null : [...raw]]),
  )
}

export const TODO = { text: 'todo: mend the login' }
export const PLAN = { text: 'plan: read, then write' }

export interface OpenedSession extends TestSession {
  readonly questions: HostSummaryInput[]
}

export async function openPlanned(
  story: CompactionPlan,
  profile = PROVIDER_RULES[story.provider] ?? LENIENT,
  builder = buildSession(story),
): Promise<OpenedSession> {
  const questions: HostSummaryInput[] = []
  const made = await openTestSession(builder.records, {
    profile,
    // Compactions only: clearing has laws of its own.
    policy: { compact: { carriersFirst: story.carriersFirst }, switches: { microcompactEnabled: false } },
    room: {
      sources: [textCarrier('todos', TODO), textCarrier('plan', PLAN)],
      writeSummary: async (question) => {
        questions.push(question)
        return SUMMARY
      },
    },
  })
  await perform(made, prepareNextRequest(made.run, 'prompt'))
  return { ...made, questions }
}

function largeRecords(id: string, thinks: boolean): readonly UnlinkedRecord[] {
  const thinking = thinks ? [{ type: 'thinking', thinking: 'hm', signature: `sign-${id}` }] : []
  const message = (name: string, content: readonly object[]): UnlinkedRecord =>
    ({
      type: 'assistant',
      message: { id: `${name}-${id}`, role: 'assistant', model: 'model-a', content },
    }) as UnlinkedRecord
  return [
    message('m', [
      ...thinking,
      { type: 'tool_use', id: `c-${id}`, name: 'Read', input: { file_path: `/src/${id}.ts` } },
    ]),
    {
      type: 'user',
      message: {
        role: 'user',
        content: [{ type: 'tool_result', tool_use_id: `c-${id}`, content: 'abc '.repeat(900) }],
      },
    },
    message('n', [{ type: 'text', text: `read ${id}` }]),
  ]
}

let count = 0

/** Rounds of work, a pin, and user messages that nobody answers. Returns these messages. */
export async function addWork(made: OpenedSession, asked: PlannedCompaction): Promise<readonly string[]> {
  TODO.text = `todo: mend the login, ${count} done`
  for (let round = 0; round < asked.rounds; round += 1) {
    count += 1
    await perform(made, appendUnlinkedRecords(made.run, largeRecords(String(count), round % 2 === 0)))
  }
  const target = asked.pin === null ? undefined : entryAt(made.run.state, asked.pin)?.record.uuid
  if (target !== undefined) await perform(made, setRecordPin(made.run, target, true))
  const words = Array.from({ length: asked.prompts }, (_, index) => `unanswered ${count} ${index} "q" é`)
  for (const content of words)
    await perform(
      made,
      appendUnlinkedRecords(made.run, [{ type: 'user', message: { role: 'user', content } }]),
    )
  return words
}

const NO_COMPACTION: ReadonlySet<RewriteRefusalReason> = new Set<RewriteRefusalReason>([
  'empty-side',
  'pending-call',
  'nothing-to-summarise',
  'not-smaller',
  'empty-conversation',
])

/** Checks each compaction of a plan, with the state before it. */
async function checkCompactions(
  story: CompactionPlan,
  check: (
    made: OpenedSession,
    step: {
      readonly before: OpenedSession['run']['state']
      readonly asked: PlannedCompaction
      readonly words: readonly string[]
      readonly question: HostSummaryInput
    },
  ) => Promise<void> | void,
): Promise<void> {
  const made = await openPlanned(story)
  for (const asked of story.acts) {
    const words = await addWork(made, asked)
    const before = made.run.state
    const end = await compactNow(made, toCompactAsked(before, asked))
    if (!end.ok) {
      expect(NO_COMPACTION).toContain(end.reason)
      expect(made.run.state.view).toBe(before.view)
      continue
    }
    done += 1
    const question = made.questions.at(-1)
    if (question === undefined) throw new Error('no summary was asked for')
    await check(made, { before, asked, words, question })
  }
}

let done = 0

/** A plan in which a `from` compaction keeps a system message and summarizes the response to it. */
const LOST_RESPONSE: CompactionPlan = {
  numbers: [0, 0, 0, 0, 0, 0, 0, 19281, 12704, 0, 0, 0, 0, 0, 0, 0, 0, 0, 43801, 2541, 0, 0, 0, 0, 0, 1007],
  acts: [
    { form: 'from', pivot: 72, prompts: 2, rounds: 2, pin: null },
    { form: 'full', pivot: 0, prompts: 0, rounds: 1, pin: null },
  ],
  carriersFirst: false,
  provider: 'messages',
}

/** Checks every compaction of generated plans, of which there must be enough. */
export async function checkEachCompaction(check: Parameters<typeof checkCompactions>[1]): Promise<void> {
  done = 0
  const runs = countPropertyRuns(30)
  await fc.assert(
    fc.asyncProperty(compactionPlans(), (story) => checkCompactions(story, check)),
    { numRuns: runs, examples: [[LOST_RESPONSE]] },
  )
  expect(done).toBeGreaterThan(runs / 2)
}
