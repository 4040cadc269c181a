/**
 * `npm run bench:replay -- FOLDER… [options]`: replays the logs in folders under Tidemark and under the policies of others,
 * and reports cost and fidelity (options and definitions: README.md beside this file). Reads only; prints nothing of a
 * session but figures. A log that cannot be read or replayed is named and left out.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { parseArgs } from 'node:util'
import { gunzipSync } from 'node:zlib'
import { createPolicy, type PolicyOverrides } from '@tidemark/core/policy/create-policy'
import { presets } from '@tidemark/core/policy/presets'
import {
  createEnginePolicy,
  isPresetName,
  RELATIVE_RATES,
  type RecordedSession,
  type ReplayOptions,
  type ReplayPolicy,
  type ReplayTotals,
  readRecordedSession,
  replaySession,
} from 'tidemark/internal'
import { readLog } from 'tidemark/logs'
import { table } from '../../scripts/table.ts'
import { runScript, WrongUse } from '../../scripts/wrong-use.ts'
import { createFidelityTotals, FidelityMeter, type FidelityTotals, type Share } from './fidelity.ts'
import { createDoNothing, findOutputRoom, listPeerPolicies } from './peer-policies.ts'

type Half = 'tuned' | 'held'

interface NamedSession {
  readonly name: string
  readonly half: Half
  readonly session: RecordedSession
  /** Megabytes of the unpacked log, and seconds that it took to read it. */
  readonly megabytes: number
  readonly readSeconds: number
}

interface SessionReplay {
  readonly totals: ReplayTotals
  readonly fidelity: FidelityTotals
  readonly seconds: number
}

interface ReplayedSession extends NamedSession {
  /** One for each policy, in their order. */
  readonly replays: readonly SessionReplay[]
}

const COST_HEAD = [
  'policy',
  'cost',
  '× peer',
  'anchor@use',
  'calls',
  'context',
  'compacted',
  'cleared',
  'files',
  'shed',
  'refused',
]
const VIEW_HEAD = [
  'policy',
  'paths',
  'names',
  'commands',
  'lines',
  'needs@20',
  'words',
  'commands',
  'reasons',
  'prompts',
]

/** Largest part of the window, in percent, that a system prompt may take for a session to be replayed. */
const MOST_PREFIX = 50

await runScript('bench:replay', async () => {
  const { positionals, values } = parseArgs({
    allowPositionals: true,
    options: {
      window: { type: 'string', default: '200000' },
      prefix: { type: 'string' },
      prices: { type: 'string', default: '{}' },
      ttl: { type: 'string', default: '1h' },
      policy: { type: 'string', multiple: true, default: ['{}'] },
      model: { type: 'string', default: 'claude-opus-4-6' },
      half: { type: 'string' },
      peers: { type: 'boolean', default: true },
      each: { type: 'boolean', default: false },
    },
    allowNegative: true,
  })
  if (positionals.length === 0) throw new WrongUse('give a folder of recorded sessions')
  const { ttl, half } = values
  if (ttl !== '5m' && ttl !== '1h') throw new WrongUse('--ttl takes 5m or 1h')
  if (half !== undefined && half !== 'tuned' && half !== 'held' && half !== 'apart')
    throw new WrongUse('--half takes tuned, held or apart')
  const window = parseNumber('window', values.window, Number.MAX_SAFE_INTEGER)
  const share = values.prefix === undefined ? null : parseNumber('prefix', values.prefix, MOST_PREFIX) / 100
  const rates = parsePrices(values.prices)
  for (const folder of positionals) {
    const read = await readSessions(folder, half === 'apart' ? undefined : half)
    if (read.length === 0) throw new WrongUse(`no session log in ${folder}`)
    const sessions = read.flatMap((named) => fitPrefix(named, window, share))
    const engine = values.policy.map(parseNamedPolicy).map(({ name, policy }) =>
      createEnginePolicy({
        name,
        policy: withLifetime(policy, ttl),
        window,
        maxOutput: findOutputRoom(window),
        rates,
        model: values.model,
      }),
    )
    const peers = listPeerPolicies({ ttl, window })
    const policies = [createDoNothing('5m'), ...(values.peers ? peers : peers.slice(0, 1)), ...engine]
    const [unbounded] = policies
    const replay = (named: NamedSession, policy: ReplayPolicy): Promise<SessionReplay> =>
      replayOne(named, policy, { rates, ...(policy === unbounded ? {} : { window }) })
    const replayed = await replayAll(sessions, policies, replay)
    for (const part of half === 'apart' ? (['tuned', 'held'] as const) : [])
      compare(
        `${folder}, ${part}`,
        replayed.filter((one) => one.half === part),
        policies,
        values.each,
      )
    compare(folder, replayed, policies, values.each)
  }
  return 0
})

function parseNumber(name: string, text: string, most: number): number {
  const value = Number(text)
  if (!Number.isSafeInteger(value) || value < 1 || value > most)
    throw new WrongUse(`--${name} takes a whole number from 1 to ${most}`)
  return value
}

function parsePrices(text: string): typeof RELATIVE_RATES {
  const names = Object.keys(RELATIVE_RATES)
  try {
    const given = Object.entries(JSON.parse(text) as object)
    const isPrice = ([name, value]: readonly [string, unknown]): boolean =>
      names.includes(name) && typeof value === 'number' && value >= 0
    if (given.every(isPrice)) return { ...RELATIVE_RATES, ...Object.fromEntries(given) }
  } catch {}
  throw new WrongUse(`--prices takes a JSON object with numbers for ${names.join(', ')}`)
}

/**
 * Gives the session a prefix of at most `share` of the window. Without a share the recorded prefix stays, and a session of
 * which it takes more than half of the window is left out: no program works so, and what policies then do is no measure.
 */
function fitPrefix(named: NamedSession, window: number, share: number | null): readonly NamedSession[] {
  const { prefixTokens } = named.session
  const most = Math.floor(window * (share ?? MOST_PREFIX / 100))
  if (prefixTokens <= most) return [named]
  if (share !== null) return [{ ...named, session: { ...named.session, prefixTokens: most } }]
  const percent = Math.round((100 * prefixTokens) / window)
  leaveOut(
    named.name,
    `its system prompt and tools take ${percent}% of the window; --prefix scales them down`,
  )
  return []
}

/** Reads `NAME=JSON`, the name of a preset, or JSON alone. */
function parseNamedPolicy(text: string): { readonly name: string; readonly policy: PolicyOverrides } {
  if (isPresetName(text)) return { name: `tidemark ${text}`, policy: presets[text] }
  const [, name = 'tidemark', json] = /^(?:([^={]+)=)?(\{.*\})$/s.exec(text) ?? []
  const allowed = `--policy takes JSON, NAME=JSON or ${Object.keys(presets).join(', ')}`
  if (json === undefined) throw new WrongUse(allowed)
  try {
    const policy = JSON.parse(json) as PolicyOverrides
    createPolicy(policy)
    return { name, policy }
  } catch (error) {
    throw new WrongUse(`${allowed}; ${name}: ${describeError(error)}`)
  }
}

function describeError(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).replaceAll(/\s*\n\s*/g, ' ')
}

function withLifetime(policy: PolicyOverrides, ttl: '5m' | '1h'): PolicyOverrides {
  return { ...policy, cache: { ttl, ...policy.cache } }
}

function compare(
  folder: string,
  replayed: readonly ReplayedSession[],
  policies: readonly ReplayPolicy[],
  each: boolean,
): void {
  const pick = (index: number): readonly ReplayTotals[] =>
    replayed.flatMap(({ replays }) => replays[index]?.totals ?? [])
  const [base, peer] = [sum(pick(0)), sum(pick(1))]
  const rows = policies.flatMap(({ name }, index) => [
    toCostRow(name, sum(pick(index)), base.cost, peer.cost),
    ...(each
      ? replayed.flatMap(({ name: log, replays }) => {
          const { totals } = replays[index] ?? {}
          const [own, other] = replays
          if (totals === undefined) return []
          return [toCostRow(`  ${log}`, totals, own?.totals.cost ?? 0, other?.totals.cost ?? 0)]
        })
      : []),
  ])
  const calls = replayed.reduce((count, { session }) => count + session.steps.filter(isResponse).length, 0)
  console.log(`\n${folder}: ${replayed.length} sessions, ${calls} recorded calls`)
  console.log(table(COST_HEAD, rows))
  const views = policies.map(({ name }, index) =>
    toViewRow(name, sumFidelity(replayed.flatMap(({ replays }) => replays[index]?.fidelity ?? []))),
  )
  console.log(`\n${table(VIEW_HEAD, views)}`)
  console.log(describeSpeed(replayed, policies.length - 1))
}

/** The time of the last policy, Tidemark's, against that of reading the same logs. The measures of fidelity are in it. */
function describeSpeed(replayed: readonly ReplayedSession[], policy: number): string {
  const add = (read: (one: ReplayedSession) => number): number =>
    replayed.reduce((total, one) => total + read(one), 0)
  const megabytes = add((one) => one.megabytes)
  const seconds = add(({ replays }) => replays[policy]?.seconds ?? 0)
  const ratio =
    seconds /
    Math.max(
      0.001,
      add((one) => one.readSeconds),
    )
  return `\nreplay: ${(seconds / Math.max(0.001, megabytes)).toFixed(2)} s per MB of unpacked log (${megabytes.toFixed(1)} MB), ${ratio.toFixed(0)} × reading it`
}

function isResponse({ kind }: RecordedSession['steps'][number]): boolean {
  return kind === 'response'
}

/** The halves are drawn by name, every second log: `tuned` is looked at while a policy is tuned, `held` only afterwards. */
async function readSessions(folder: string, wanted: Half | undefined): Promise<readonly NamedSession[]> {
  if (!existsSync(folder)) throw new WrongUse(`there is no folder ${folder}`)
  const files = readdirSync(folder).filter((name) => /\.jsonl(?:\.gz)?$/.test(name))
  const read: NamedSession[] = []
  for (const [index, file] of files.toSorted().entries()) {
    const half = index % 2 === 0 ? 'tuned' : 'held'
    if (wanted !== undefined && wanted !== half) continue
    const name = file.slice(0, 32)
    try {
      read.push({ name, half, ...(await readSession(join(folder, file))) })
    } catch (error) {
      leaveOut(name, error)
    }
  }
  return read
}

async function readSession(path: string): Promise<Omit<NamedSession, 'name' | 'half'>> {
  const bytes = readFileSync(path)
  const { length } = path.endsWith('.gz') ? gunzipSync(bytes) : bytes
  const begunAt = performance.now()
  const log = await readLog(path, { withAgents: false })
  if (!log.ok) throw new Error(log.message)
  const readSeconds = (performance.now() - begunAt) / 1_000
  const session = readRecordedSession(log.records.map(({ record }) => record))
  if (!session.steps.some(isResponse)) throw new Error('it has no response of a model')
  return { session, megabytes: length / 1_000_000, readSeconds }
}

function leaveOut(name: string, error: unknown): void {
  console.error(`left out: ${name}: ${describeError(error)}`)
}

/** Replays each session under every policy. A session on which one policy fails is left out for all of them. */
async function replayAll(
  sessions: readonly NamedSession[],
  policies: readonly ReplayPolicy[],
  replay: (named: NamedSession, policy: ReplayPolicy) => Promise<SessionReplay>,
): Promise<readonly ReplayedSession[]> {
  const replayed: ReplayedSession[] = []
  for (const [index, named] of sessions.entries()) {
    const replays: SessionReplay[] = []
    for (const policy of policies) {
      if (process.stderr.isTTY)
        process.stderr.write(`\r${index + 1} of ${sessions.length}: ${policy.name}\u001b[K`)
      try {
        replays.push(await replay(named, policy))
      } catch (error) {
        leaveOut(`${named.name} (${policy.name})`, error)
        break
      }
    }
    if (replays.length === policies.length) replayed.push({ ...named, replays })
  }
  if (process.stderr.isTTY) process.stderr.write('\r\u001b[K')
  return replayed
}

async function replayOne(
  { session }: NamedSession,
  policy: ReplayPolicy,
  options: ReplayOptions,
): Promise<SessionReplay> {
  const fidelity = createFidelityTotals()
  const meter = new FidelityMeter(session, fidelity)
  const begunAt = performance.now()
  const totals = await replaySession(session, policy, {
    ...options,
    onRequest: (request, step, rewrites) => meter.measure(request, step, rewrites),
  })
  return { totals, fidelity, seconds: (performance.now() - begunAt) / 1_000 }
}

function sumFidelity(all: readonly FidelityTotals[]): FidelityTotals {
  const totals = createFidelityTotals()
  for (const one of all)
    for (const name of Object.keys(totals) as (keyof FidelityTotals)[]) {
      totals[name].found += one[name].found
      totals[name].wanted += one[name].wanted
    }
  return totals
}

function sum(all: readonly ReplayTotals[]): ReplayTotals {
  const names = Object.keys(all[0] ?? {}) as (keyof ReplayTotals)[]
  return Object.fromEntries(
    names.map((name) => [name, all.reduce((total, each) => total + each[name], 0)]),
  ) as unknown as ReplayTotals
}

function toCostRow(name: string, totals: ReplayTotals, base: number, peer: number): readonly string[] {
  const { calls, cost, edits, editsInView, compactions, clearings } = totals
  const per100 = (count: number): string => ((100 * count) / Math.max(1, calls)).toFixed(2)
  return [
    name,
    base === 0 ? '-' : (cost / base).toFixed(3),
    peer === 0 ? '-' : (cost / peer).toFixed(3),
    edits === 0 ? '-' : `${((100 * editsInView) / edits).toFixed(1)}% (${edits - editsInView}/${edits})`,
    String(calls),
    `${Math.round(totals.contextTokens / Math.max(1, calls) / 1_000)}k`,
    per100(compactions),
    per100(clearings),
    String(totals.filesKept),
    String(totals.filesShed),
    String(totals.refused),
  ]
}

function toViewRow(name: string, totals: FidelityTotals): readonly string[] {
  const { paths, identifiers, needCommands, linesToEdit, words, commands, reasons, prompts } = totals
  const needs = [paths, identifiers, needCommands, linesToEdit]
  const all = needs.reduce(
    (total, { found, wanted }) => ({ found: total.found + found, wanted: total.wanted + wanted }),
    { found: 0, wanted: 0 },
  )
  return [name, ...[...needs, all, words, commands, reasons, prompts].map(formatShare)]
}

function formatShare({ found, wanted }: Share): string {
  return wanted === 0 ? '-' : `${((100 * found) / wanted).toFixed(1)}%`
}
