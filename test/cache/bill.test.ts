/**
 * The bill of scripted sessions on every provider profile of the simulator. `session.money()`, the events, `inspect` of
 * the log and the simulator's own bill must agree, and every call must be judged or have a reason why not.
 */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { countPropertyRuns, createChoices, sampleCases } from '@tidemark/core/testing'
import { createManualClock, type RequestRecord } from '@tidemark/simulator'
import { modelCatalogue } from '@tidemark/wire/catalogue/catalogue'
import type { ModelEntry } from '@tidemark/wire/catalogue/model-entry'
import { createProviderProfile } from '@tidemark/wire/profiles/provider-profile'
import type { Session, SessionEvent } from 'tidemark'
import { createDeadlines } from 'tidemark/internal'
import { findLogs, inspectFiles } from 'tidemark/logs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestTidemark, type TestTidemark } from '../support/test-tidemark.ts'

/** One model for each set of rules about thinking, cache and context edits; models without a price have no bill. */
function listProfiles(): readonly ModelEntry[] {
  const found = new Map<string, ModelEntry>()
  for (const entry of modelCatalogue.models) {
    if (!entry.id.startsWith('claude-') || entry.prices.input === null) continue
    const { thinking, cache, contextEdits, capabilities } = createProviderProfile(entry)
    const key = JSON.stringify([thinking, { ...cache, minimumTokens: 0 }, contextEdits, capabilities])
    if (!found.has(key)) found.set(key, entry)
  }
  return [...found.values()]
}

/** One session for each profile in a short run; in the full one twenty, with and without summaries in the background. */
const SESSIONS = countPropertyRuns(20, 1) < 20 ? 1 : 20
const PROMPTS = SESSIONS === 1 ? 5 : 7

const MINUTE = 60_000
const ACTS = ['none', 'none', 'pause', 'long pause', 'evict', 'compact', 'undo'] as const

interface Played {
  readonly money: ReturnType<Session['money']>
  readonly events: readonly SessionEvent[]
  readonly requests: readonly RequestRecord[]
  readonly file: string
}

/** A session whose length, sizes and acts between prompts follow from its number. */
async function play(home: string, entry: ModelEntry, seed: number, background: boolean): Promise<Played> {
  const choices = createChoices(seed * 7919 + entry.id.length, 64)
  const clock = createManualClock()
  const events: SessionEvent[] = []
  const requests: RequestRecord[] = []
  const world = createTestTidemark({
    modelId: entry.id,
    home,
    clock,
    deadlines: createDeadlines(clock),
    turns: 5 + choices.below(8),
    resultTokens: 700 + choices.below(1_200),
    thinkingTokens: 30,
    window: choices.pick([40_000, 60_000]),
    system: 'You are a careful engineer. '.repeat(200),
    policy: { compact: { background } },
    onEvent: (event) => void events.push(event),
  })
  const id = `${entry.id}-${seed}-${background}`
  const session = await world.tide.open(id)
  for (let prompt = 0; prompt < PROMPTS; prompt += 1) {
    if (prompt > 0) await befall(choices.pick(ACTS), session, world, (ms) => clock.advance(ms))
    await clock.advance(20_000)
    const end = await session.run(`Do part ${prompt}.`, world.tools).outcome
    if (!end.ok) throw new Error(`${id}: ${end.message}`)
  }
  // A summary that is still being written would be paid for after the bill was asked for.
  while (session.status().preparedSummary === 'preparing') await new Promise(setImmediate)
  requests.push(...world.simulator.requests)
  const money = session.money()
  await session.close()
  return { money, events, requests, file: join(home, 'sessions', `${id}.jsonl`) }
}

async function befall(
  act: (typeof ACTS)[number],
  session: Session,
  { simulator }: TestTidemark,
  advance: (ms: number) => Promise<void>,
): Promise<void> {
  if (act === 'pause') await advance(6 * MINUTE)
  if (act === 'long pause') await advance(70 * MINUTE)
  if (act === 'evict') await simulator.fetch('http://simulator/_simulator/cache', { method: 'DELETE' })
  if (act === 'compact') await session.compact()
  if (act === 'undo') await session.undo()
}

/** How each call was judged, in the order of the calls: its outcome, or why it was not judged. */
function listJudgements(events: readonly SessionEvent[]): readonly string[] {
  return events.flatMap((event) => {
    if (event.type === 'cache-break') return [`broke: ${event.event.reason.kind}`]
    if (event.type === 'act-paid') return ['paid']
    if (event.type !== 'cache-judged') return []
    const { outcome } = event
    return [outcome.kind === 'not-judged' ? `not judged: ${outcome.why} (${event.source})` : outcome.kind]
  })
}

describe('the bill', () => {
  let home = ''
  beforeAll(async () => {
    home = await mkdtemp(join(tmpdir(), 'tidemark-bill-'))
  })
  afterAll(() => rm(home, { recursive: true, force: true }))

  it('of a log that no engine has judged shows what the provider cleared as clearings, not as breaks', async () => {
    const world = createTestTidemark({
      home,
      turns: 30,
      resultTokens: 1_500,
      thinkingTokens: 30,
      window: 60_000,
    })
    const session = await world.tide.open('unjudged')
    for (const part of [1, 2, 3]) await session.run(`Do part ${part}.`, world.tools).outcome
    const { spentOnClearing } = session.money()
    await session.close()
    const file = join(home, 'sessions', 'unjudged.jsonl')
    const unjudged = (await readFile(file, 'utf8')).replaceAll('"cacheLoss":', '"formerly":')
    await writeFile(file, unjudged)
    const { logs } = await findLogs([file])
    const [report] = (await inspectFiles(logs.map((log) => ({ ...log, file })))).sessions
    expect(report?.cacheBreaks).toEqual([])
    expect(spentOnClearing.total).toBeGreaterThan(0)
    expect(report?.money.spentOnClearings).toBeCloseTo(spentOnClearing.total ?? 0, 2)
  })

  it.each(
    sampleCases(
      listProfiles().map((entry, index) => [entry.id, entry, index] as const),
      3,
    ),
  )(
    'of %s is the same in money(), in the events, in inspect and at the provider, and every call is judged',
    async (_, entry, index) => {
      for (let number = 0; number < SESSIONS; number += 1)
        // In a short run, each profile has one of both.
        for (const background of SESSIONS === 1 ? [index % 2 === 1] : [false, true])
          await checkSession(home, entry, index * 20 + number, background)
    },
    600_000,
  )
})

async function checkSession(
  home: string,
  entry: ModelEntry,
  seed: number,
  background: boolean,
): Promise<void> {
  const { money, events, requests, file } = await play(home, entry, seed, background)
  const { logs } = await findLogs([file])
  const [report] = (await inspectFiles(logs.map((log) => ({ ...log, file })))).sessions
  const priced = events.findLast((event) => event.type === 'priced')
  const billed = requests.filter(({ usage }) => usage !== null)
  /** `inspect` rounds each amount to a millionth of a dollar, so sums may differ by a few of them. */
  const agree = (name: string, amounts: readonly (number | null | undefined)[]): void => {
    const apart = amounts.filter(
      (amount) => !(Math.abs((amount ?? Number.NaN) - (amounts[0] ?? Number.NaN)) < 1e-4),
    )
    expect({ name, seed, amounts, apart }).toMatchObject({ apart: [] })
  }
  const sum = (of: (event: SessionEvent) => number | null): number =>
    events.reduce((total, event) => total + (of(event) ?? Number.NaN), 0)
  agree('spent', [
    billed.reduce((total, { cost }) => total + (cost?.total ?? Number.NaN), 0),
    money.spent.total,
    priced?.totals.spent.total,
    report?.money.spent,
  ])
  agree('lost to breaks', [
    sum((event) => (event.type === 'cache-break' ? event.event.moneyLost : 0)),
    money.lostToBreaks.total,
    report?.money.lostToBreaks,
  ])
  agree('spent on clearing', [
    sum((event) => (event.type === 'act-paid' ? event.act.moneySpent : 0)),
    money.spentOnClearing.total,
    report?.money.spentOnClearings,
  ])
  agree('spent on compaction', [money.spentOnCompaction.total, report?.money.spentOnCompaction])
  // Calls in the background end in another order than they began, and what follows compares both.
  if (background) return
  const judged = listJudgements(events)
  expect(judged).toHaveLength(billed.length)
  // Not judged are: models that policy excludes, and calls with a prompt of their own, which share no cached prefix.
  const isExcluded = entry.id.includes('haiku')
  const reasons = isExcluded ? [] : judged.filter((each) => each.startsWith('not judged'))
  expect(new Set(reasons)).toEqual(new Set(reasons.length === 0 ? [] : ['not judged: not-watched (compact)']))
  // Nothing to compare with: the first call, and the first one after a compaction or an undo.
  const resets = events.filter(({ type }) => type === 'compact' || type === 'undone').length
  expect(judged.filter((each) => each === 'first').length).toBeLessThanOrEqual(1 + resets)
  const missed = judged.flatMap((each, at) => {
    const miss = billed[at]?.cache?.miss
    return each === 'read' && miss && miss.tokens > 2_000 ? [{ seed, at, ...miss }] : []
  })
  expect(missed).toEqual([])
}
