/**
 * The agent left alone with a long task: real files, real commands, a small window, and a provider that fails again and
 * again. Returns the figures that the tests judge.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ProviderProfile } from '@tidemark/core/policy/provider-profile'
import type { Finding } from '@tidemark/core/validate/findings'
import { validateRequest } from '@tidemark/core/validate/validate-request'
import { createCoder, type RequestRecord } from '@tidemark/simulator'
import { anthropic, type RunOutcome, type SessionEvent } from 'tidemark'
import { expect } from 'vitest'
import { openAgent } from '../src/agent/agent.ts'
import type { Agent } from '../src/agent/agent-options.ts'
import { createHeapWatch, type HeapGrowth } from './heap-growth.ts'
import { type SimulatorTotals, startSimulateProcess } from './simulate-process.ts'

export interface UnattendedOptions {
  readonly turns: number
  readonly window: number
  readonly resultTokens: number
  readonly seed: string
  /** One request in so many fails. */
  readonly faultEvery: number
  /** After these numbers of answers the heap is measured. */
  readonly heapAt?: readonly [first: number, last: number]
}

export interface UnattendedRun {
  readonly outcome: RunOutcome
  /** Files of the task that are missing or differ from what the coder wanted, by path. */
  readonly wrongFiles: readonly string[]
  readonly files: number
  /** What the engine's validator says of the requests that were sent. */
  readonly findings: readonly Finding[]
  /** Requests that the simulator refused without a fault. */
  readonly refused: readonly RequestRecord[]
  /** Kinds of the faults that happened, with how often. */
  readonly faults: Readonly<Record<string, number>>
  readonly events: EventCounts
  /** Number of requests whose usage the client was told, at least at the start of the reply. */
  readonly reported: number
  /** Dollars that the session counted. */
  readonly spent: number | null
  readonly billed: SimulatorTotals
  /** Dollars billed for what no usage reported to the client, because the reply broke off or never began. */
  readonly untold: UntoldCosts
  /** Dollars in `spent` that the client estimated from what arrived of replies that broke off. */
  readonly estimated: number
  /** Part of the prompt tokens that were read from the cache. */
  readonly hitRate: number
  readonly heap: HeapGrowth | null
  readonly durationMs: number
}

interface UntoldCosts {
  /** Of whole requests: the connection was reset before the first byte. */
  readonly requests: number
  /** Of the output of replies that were cut or ended in an error: usage reports it only at the end. */
  readonly output: number
}

export interface EventCounts {
  readonly answers: number
  readonly compactions: number
  readonly clearings: number
  /** Calls whose cache read was judged, by verdict; `not-judged: REASON` for those that were not. */
  readonly verdicts: Readonly<Record<string, number>>
  /** Milliseconds in which the turn waited for compactions. */
  readonly blockedMs: number
  readonly longestBlockMs: number
}

/** One request in `every` fails, each time in the next of these ways. */
export function createFaultCycle(every: number): readonly object[] {
  const faults = ['status=429', 'cut', 'status=529', 'error-at=4', 'reset']
  return faults.map((fault, at) => ({ fault, every: every * faults.length, skip: every * (at + 1) - 1 }))
}

export async function runUnattended(options: UnattendedOptions): Promise<UnattendedRun> {
  const { turns, window, resultTokens, seed, faultEvery } = options
  const root = mkdtempSync(join(tmpdir(), 'tidemark-unattended-'))
  const script = `coder?turns=${turns}&resultTokens=${resultTokens}&seed=${seed}`
  const simulator = await startSimulateProcess({ script, window })
  const watch = createEventWatch(options.heapAt)
  const checked = createCheckedFetch()
  const model = anthropic(MODEL, {
    apiKey: 'any',
    baseUrl: simulator.url,
    window,
    fetch: checked.fetch,
  })
  checked.useProfile(model.profile)
  const agent = await openAgent({
    folder: root,
    home: join(root, '.home'),
    sessionId: 'unattended',
    model,
    settings: { permissions: { allow: [], ask: [], deny: [] }, env: {}, notices: [] },
    mode: 'allow-all',
    // Memory files of whoever runs the test must not change its figures.
    env: { ...process.env, HOME: root },
    onEvent: watch.add,
  })
  try {
    await simulator.scheduleFaults(createFaultCycle(faultEvery))
    const startedAt = performance.now()
    const outcome = await runToEnd(agent, 'Raise the limits.')
    const requests = await simulator.readRequests()
    const billed = await simulator.readTotals()
    const { input, cacheRead, write5m, write1h } = billed.usage
    const wanted = createCoder({ turns, resultTokens, seed }).clientFiles(turns)
    return {
      outcome,
      wrongFiles: listWrongFiles(join(root, 'tidemark-coder'), wanted),
      files: wanted.size,
      findings: checked.findings,
      refused: requests.filter(({ status, fault }) => status >= 400 && fault === null),
      faults: countBy(requests.flatMap(({ fault }) => fault ?? [])),
      events: watch.counts(),
      reported: requests.filter(({ status, fault }) => status === 200 && fault !== 'reset').length,
      spent: agent.session.money().spent.total,
      billed,
      untold: sumUntoldCosts(requests),
      estimated: sumEstimatedCosts(join(root, '.home', 'sessions', 'unattended.jsonl')),
      hitRate: cacheRead / (input + cacheRead + write5m + write1h),
      heap: watch.heap(),
      durationMs: performance.now() - startedAt,
    }
  } finally {
    await agent.close()
    await simulator.close()
    rmSync(root, { recursive: true, force: true, maxRetries: 10 })
  }
}

/** What must be true of every run, however long. */
export function expectGoodRun(run: UnattendedRun): void {
  const { outcome, wrongFiles, findings, refused, events, billed, spent, untold, estimated } = run
  expect(outcome).toMatchObject({ ok: true, stopReason: 'end_turn' })
  expect({ wrongFiles, findings, refused }).toEqual({ wrongFiles: [], findings: [], refused: [] })
  // Each call that reported its usage is judged, or it is said why not.
  const verdicts = Object.values(events.verdicts).reduce((sum, count) => sum + count, 0)
  expect(verdicts).toBe(run.reported)
  expect(events.verdicts).not.toHaveProperty('broke')
  // What was reported is counted exactly. What arrived of a reply that broke off is estimated, within a factor of two.
  const reported = billed.cost.total - untold.requests - untold.output
  expect((spent ?? 0) - estimated).toBeCloseTo(reported, 9)
  expect(estimated).toBeGreaterThanOrEqual(untold.output / 2)
  expect(estimated).toBeLessThanOrEqual(untold.output * 2)
  expect(billed.unpriced).toBe(0)
}

async function runToEnd(agent: Agent, prompt: string): Promise<RunOutcome> {
  const run = agent.run(prompt)
  // Events that nobody reads would be kept until the end.
  for await (const _ of run);
  return run.outcome
}

function sumUntoldCosts(requests: readonly RequestRecord[]): UntoldCosts {
  let untold: UntoldCosts = { requests: 0, output: 0 }
  for (const { fault, usage, cost, at } of requests) {
    if (usage === null || cost === null) continue
    if (fault === 'reset') untold = { ...untold, requests: untold.requests + (cost.total ?? 0) }
    if (fault === 'cut' || fault === 'error-event')
      untold = { ...untold, output: untold.output + priceOutput(usage.output - STARTING_OUTPUT, at) }
  }
  return untold
}

/** Sums the output that the log marks as estimated, beyond what the first event of the stream reported. */
function sumEstimatedCosts(log: string): number {
  const records = readFileSync(log, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  return records.reduce((sum, { timestamp, modelCall }) => {
    const { output_tokens: output, output_tokens_estimated: isEstimated } = modelCall?.usage ?? {}
    return isEstimated === true ? sum + priceOutput(output - STARTING_OUTPUT, timestamp) : sum
  }, 0)
}

function priceOutput(tokens: number, at: string): number {
  return (tokens * (MODEL_PRICES(MODEL, at)?.output ?? 0)) / 1e6
}

/** Output tokens that the first event of a stream reports. */
const STARTING_OUTPUT = 1

const MODEL = 'claude-sonnet-5-5'
const MODEL_PRICES = anthropic(MODEL, { apiKey: 'any' }).priceList

/** Returns the paths of the files that are not as wanted. */
export function listWrongFiles(folder: string, wanted: ReadonlyMap<string, string>): readonly string[] {
  return [...wanted].flatMap(([path, text]) => {
    const file = join(folder, path)
    return existsSync(file) && readFileSync(file, 'utf8') === text ? [] : [path]
  })
}

function createCheckedFetch(): {
  readonly fetch: typeof globalThis.fetch
  readonly findings: readonly Finding[]
  useProfile(profile: ProviderProfile): void
} {
  const findings: Finding[] = []
  let rules: ProviderProfile | null = null
  return {
    fetch(input, init) {
      const betas = new Headers(init?.headers).get('anthropic-beta')?.split(',') ?? []
      const payload = { ...JSON.parse(String(init?.body)), betas }
      if (rules !== null) findings.push(...validateRequest(payload, rules))
      return globalThis.fetch(input, init)
    },
    findings,
    useProfile(profile) {
      rules = profile
    },
  }
}

function createEventWatch(heapAt: UnattendedOptions['heapAt']) {
  let [answers, compactions, clearings, blockedMs, longestBlockMs] = [0, 0, 0, 0, 0]
  let blockedSince: number | null = null
  const verdicts: string[] = []
  const heap = createHeapWatch()
  return {
    add(event: SessionEvent): void {
      heap.add(event)
      if (event.type === 'compact') compactions += 1
      if (event.type === 'microcompact') clearings += 1
      const verdict = describeVerdict(event)
      if (verdict !== null) verdicts.push(verdict)
      if (event.type === 'phase' && event.phase !== 'done') blockedSince ??= performance.now()
      if (event.type === 'phase' && event.phase === 'done' && blockedSince !== null) {
        const waited = performance.now() - blockedSince
        blockedMs += waited
        longestBlockMs = Math.max(longestBlockMs, waited)
        blockedSince = null
      }
      if (event.type !== 'answered') return
      answers += 1
      if (heapAt?.includes(answers) === true) heap.measure()
    },
    counts: (): EventCounts => ({
      answers,
      compactions,
      clearings,
      verdicts: countBy(verdicts),
      blockedMs,
      longestBlockMs,
    }),
    heap: heap.growth,
  }
}

/** Returns how the cache read of a main call was judged; null for other events. */
function describeVerdict(event: SessionEvent): string | null {
  if (event.type === 'cache-break') return 'broke'
  if (event.type === 'act-paid') return 'ours'
  if (event.type !== 'cache-judged') return null
  const { outcome } = event
  return outcome.kind === 'not-judged' ? `not-judged: ${JSON.stringify(outcome.why)}` : outcome.kind
}

function countBy(names: readonly string[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1
  return counts
}
