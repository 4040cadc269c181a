/** Several acts on one session at once, in an order that a scheduler chooses, and what must hold afterwards. */
import fc from 'fast-check'
import { type Session, user } from 'tidemark'
import type { MemoryStore } from 'tidemark/testing'
import { expect } from 'vitest'
import {
  AT_ONCE,
  copyStore,
  createWait,
  openScheduledSession,
  readLines,
  type ScheduledOptions,
  type Wait,
} from './scheduled-session.ts'

/** Records of what calls cost. They are written whatever the outcome, and no model is shown them. */
const SPENDING = new Set(['model_call', 'cache_loss'])

export interface Interference {
  /** Messages appended through the session itself, one after the other. */
  readonly own: number
  /** Messages that another process appends. */
  readonly others: number
  /** Waits before each message. */
  readonly pause: number
  /** Waits before the act is aborted; null: it is not. */
  readonly patience: number | null
}

export const interferences: fc.Arbitrary<Interference> = fc.record({
  own: fc.nat({ max: 3 }),
  others: fc.nat({ max: 2 }),
  pause: fc.nat({ max: 12 }),
  patience: fc.option(fc.nat({ max: 25 }), { freq: 2 }),
})

/** Three turns and an unanswered message. */
export async function createStartedStore(): Promise<MemoryStore> {
  const store: MemoryStore = new Map()
  const session = await openScheduledSession({ store, wait: AT_ONCE, prefix: 'started' })
  for (let number = 1; number <= 3; number += 1)
    expect(await session.run(`Prompt ${number}: read on.`).outcome).toMatchObject({ ok: true })
  await session.append(user(UNANSWERED))
  await session.close()
  return store
}

const UNANSWERED = 'Not answered yet: and then?'

/** How often each outcome came up in all runs, so that a test can require that the interesting ones did. */
export class OutcomeCounts {
  readonly counts: Record<string, number> = {}

  meet(what: string): void {
    this.counts[what] = (this.counts[what] ?? 0) + 1
  }
}

export interface ConcurrencyCase {
  readonly started: MemoryStore
  readonly scheduler: fc.Scheduler
  readonly crowd: Interference
  readonly met: OutcomeCounts
}

interface Scene {
  readonly store: MemoryStore
  readonly session: Session
  readonly mine: readonly string[]
  readonly theirs: readonly string[]
  /** New records, without those about cost. */
  readonly news: readonly Line[]
}

interface Line {
  readonly type: string
  readonly subtype?: string
  readonly message?: { readonly content?: unknown }
  readonly isCompactSummary?: boolean
}

type Act<End> = (session: Session, signal: AbortSignal) => Promise<End>

/** Runs the act, the messages of both processes and the abort at the same time. */
async function playAll<End>(
  { started, scheduler, crowd }: ConcurrencyCase,
  act: Act<End>,
  spoken?: ScheduledOptions['spoken'],
): Promise<Scene & { readonly end: End }> {
  const [store, wait] = [copyStore(started), createWait(scheduler)]
  const more = spoken === undefined ? {} : { spoken }
  const session = await scheduler.waitFor(openScheduledSession({ store, wait, prefix: 'one', ...more }))
  const other = await openScheduledSession({ store, wait: AT_ONCE, prefix: 'other' })
  const caller = new AbortController()
  const [mine, theirs] = [buildMessages('one', crowd.own), buildMessages('other', crowd.others)]
  const [end] = await scheduler.waitFor(
    Promise.all([
      act(session, caller.signal),
      appendAll(session, mine, () => waitSteps(wait, crowd.pause)),
      appendAll(other, theirs, () => waitSteps(wait, crowd.pause)),
      crowd.patience === null ? null : waitSteps(wait, crowd.patience).then(() => caller.abort()),
    ]),
  )
  // Another process may have appended since the last read.
  await scheduler.waitFor(session.planCompaction())
  expect(readLines(store).slice(0, readLines(started).length)).toEqual(readLines(started))
  const news = readLines(store)
    .slice(readLines(started).length)
    .map((line): Line => JSON.parse(line))
    .filter(({ subtype = '' }) => !SPENDING.has(subtype))
  return { store, session, mine, theirs, news, end }
}

function buildMessages(who: string, count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => `${who} says "${index}" meanwhile.`)
}

async function appendAll(
  session: Session,
  words: readonly string[],
  pause: () => Promise<void>,
): Promise<void> {
  for (const text of words) {
    await pause()
    await session.append(user(text))
  }
}

async function waitSteps(wait: Wait, count: number): Promise<void> {
  for (let waited = 0; waited <= count; waited += 1) await wait('time')
}

/** A compaction: if aborted, log and request are unchanged; messages appended meanwhile come after the summary. */
export async function checkCompaction(happening: ConcurrencyCase): Promise<void> {
  const scene = await playAll(happening, (session, signal) => session.compact({ signal }))
  const { store, session, mine, theirs, news, end } = scene
  const messages = JSON.stringify((await reopen(store)).messages())
  expect(JSON.stringify(session.messages())).toBe(messages)
  for (const words of [mine, theirs]) expectOnceInOrder(messages, words)
  if (end.ok) {
    for (const text of [UNANSWERED, ...mine, ...theirs])
      expect(findText(messages, text)).toBeGreaterThan(messages.indexOf('Summary:'))
  } else {
    expect(news.map(({ type }) => type)).toEqual([...mine, ...theirs].map(() => 'user'))
    expect(messages).toBe(await messagesWith(happening.started, news.map(readText)))
  }
  const boundary = news.findIndex(({ subtype }) => subtype === 'compact_boundary')
  happening.met.meet(end.ok ? (boundary > 0 ? 'committed behind words' : 'committed') : end.reason)
  expect(await (await reopen(store)).next()).toMatchObject({ ok: true })
}

/**
 * A turn whose first request is refused as too long, so that it compacts and asks again. However it ends, no word is
 * lost, and the next turn goes through.
 */
export async function checkTurn(happening: ConcurrencyCase): Promise<void> {
  const prompt = 'Prompt 4: read on.'
  const act: Act<string> = async (session, signal) => {
    const end = await session.run(prompt, { signal }).outcome
    return end.ok ? 'ok' : end.reason
  }
  const scene = await playAll(happening, act, async function* (events, call) {
    if (call > 0) yield* events
    else yield { type: 'reply-failed', failure: OVERFLOW, reply: null }
  })
  const { store, session, mine, theirs, news, end } = scene
  const said = news
    .filter(({ type, isCompactSummary }) => type === 'user' && isCompactSummary !== true)
    .map(readText)
  for (const words of [mine, theirs, end === 'conflict' ? [] : [prompt]].filter((words) => words.length > 0))
    if (end !== 'aborted' || words[0] !== prompt)
      expect(said.filter((text) => words.includes(text))).toEqual(words)
  expect(JSON.stringify((await reopen(store)).messages())).toBe(JSON.stringify(session.messages()))
  const compacted = news.some(({ subtype }) => subtype === 'compact_boundary')
  happening.met.meet(`${end}${compacted ? ', compacted' : ''}`)
  const later = await reopen(store)
  expect(await later.run('And now?').outcome).toMatchObject({ ok: true })
  const messages = JSON.stringify(later.messages())
  expect(
    [UNANSWERED, ...said.filter((text) => text !== '')].filter((text) => findText(messages, text) === -1),
  ).toEqual([])
}

/** A draft is prepared while a turn runs and committed after it: the messages of the turn come after the summary. */
export async function checkPreparedDraft(happening: ConcurrencyCase): Promise<void> {
  const prompt = 'Prompt 4: read on.'
  const act: Act<string> = async (session, signal) => {
    const plan = await session.planCompaction()
    if (!plan.ok) return plan.reason
    const [draft] = await Promise.all([
      session.prepare(plan, { signal }),
      session.run(prompt, { signal }).outcome,
    ])
    const end = draft.ok ? await session.commit(draft, { signal }) : draft
    return end.ok ? 'committed' : end.reason
  }
  const { store, session, mine, theirs, news, end } = await playAll(happening, act)
  const later = await reopen(store)
  const messages = JSON.stringify(later.messages())
  expect(JSON.stringify(session.messages())).toBe(messages)
  for (const words of [mine, theirs]) expectOnceInOrder(messages, words)
  const turned = news.some(({ type }) => type === 'assistant')
  happening.met.meet(`${end}${turned ? ' behind a turn' : ''}`)
  if (end === 'committed')
    for (const { text } of shownTexts(news))
      expect(findText(messages, text)).toBeGreaterThan(messages.indexOf('Summary:'))
  expect(await later.run('And now?').outcome).toMatchObject({ ok: true })
}

/** The user messages that were appended while the draft was prepared. */
function shownTexts(news: readonly Line[]): readonly { readonly text: string }[] {
  return news
    .filter(({ type, isCompactSummary }) => type === 'user' && isCompactSummary !== true)
    .map((line) => ({ text: readText(line) }))
    .filter(({ text }) => text !== '')
}

const OVERFLOW = { kind: 'overflow', retryable: false, message: 'prompt is too long' } as const

function readText({ message }: Line): string {
  return typeof message?.content === 'string' ? message.content : ''
}

function findText(messages: string, text: string): number {
  return messages.indexOf(JSON.stringify(text).slice(1, -1))
}

function expectOnceInOrder(messages: string, texts: readonly string[]): void {
  const counts = texts.map((text) => messages.split(JSON.stringify(text).slice(1, -1)).length - 1)
  expect(counts).toEqual(texts.map(() => 1))
  const places = texts.map((text) => findText(messages, text))
  expect(places).toEqual(places.toSorted((one, other) => one - other))
}

/** The messages as they would be if only these texts had been appended. */
async function messagesWith(started: MemoryStore, said: readonly string[]): Promise<string> {
  const session = await openScheduledSession({ store: copyStore(started), wait: AT_ONCE, prefix: 'control' })
  for (const text of said) await session.append(user(text))
  return JSON.stringify(session.messages())
}

/** Opened from the log alone. */
async function reopen(store: MemoryStore): Promise<Session> {
  return openScheduledSession({ store: copyStore(store), wait: AT_ONCE, prefix: 'later' })
}
