/**
 * `npm run bench:replay -- FOLDER… [--window N] [--ttl 5m|1h] [--policy JSON]`: replays the logs in folders under Tidemark
 * and under the policies of others, and reports cost and fidelity (definitions: README.md beside this file). Reads only;
 * prints nothing of a session but figures. A log that cannot be read or replayed is named and left out.
 */
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type PolicyOverrides, presets } from '@tidemark/core'
import {
  createEnginePolicy,
  isPresetName,
  type RecordedSession,
  type ReplayPolicy,
  type ReplayTotals,
  readRecordedSession,
  replaySession,
} from 'tidemark/internal'
import { readRecords } from '../../scripts/plan-table/linear.ts'
import { table } from '../../scripts/table.ts'
import { runScript, WrongUse } from '../../scripts/wrong-use.ts'
import { createFidelityTotals, FidelityMeter, type FidelityTotals, type Share } from './fidelity.ts'
import { createDoNothing, listPeerPolicies } from './peer-policies.ts'

interface NamedSession {
  readonly name: string
  readonly session: RecordedSession
}

interface PolicyResult {
  readonly name: string
  readonly each: readonly ReplayTotals[]
  readonly fidelity: FidelityTotals
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

await runScript('bench:replay', async () => {
  const { positionals, values } = parseArgs({
    allowPositionals: true,
    options: {
      window: { type: 'string', default: '200000' },
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
  if (half !== undefined && half !== 'tuned' && half !== 'held')
    throw new WrongUse('--half takes tuned or held')
  const window = Number(values.window)
  for (const folder of positionals) {
    const sessions = readSessions(folder, half)
    if (sessions.length === 0) throw new WrongUse(`no session log in ${folder}`)
    const engine = values.policy.map(parseNamedPolicy).map(({ name, policy }) =>
      createEnginePolicy({
        name,
        policy: withLifetime(policy, ttl),
        window,
        model: values.model,
      }),
    )
    const peers = listPeerPolicies({ ttl, window })
    const policies = [createDoNothing('5m'), ...(values.peers ? peers : peers.slice(0, 1)), ...engine]
    await compare(folder, sessions, policies, values.each)
  }
  return 0
})

/** Reads `NAME=JSON`, the name of a preset, or JSON alone. */
function parseNamedPolicy(text: string): { readonly name: string; readonly policy: PolicyOverrides } {
  const [, name = 'tidemark', json = '{}'] = /^(?:([^={]+)=)?(\{.*\})$/s.exec(text) ?? []
  if (isPresetName(text)) return { name: `tidemark ${text}`, policy: presets[text] }
  if (!text.endsWith('}'))
    throw new WrongUse(`--policy takes NAME=JSON or ${Object.keys(presets).join(', ')}`)
  return { name, policy: JSON.parse(json) as PolicyOverrides }
}

function withLifetime(policy: PolicyOverrides, ttl: '5m' | '1h'): PolicyOverrides {
  return { ...policy, cache: { ttl, ...policy.cache } }
}

async function compare(
  folder: string,
  sessions: readonly NamedSession[],
  policies: readonly ReplayPolicy[],
  each: boolean,
): Promise<void> {
  const results: PolicyResult[] = []
  for (const policy of policies) results.push(await replayAll(sessions, policy))
  const base = sum(results[0]?.each ?? [])
  const peer = sum(results[1]?.each ?? [])
  const rows = results.flatMap(({ name, each: all }) => [
    toCostRow(name, sum(all), base.cost, peer.cost),
    ...(each
      ? all.map((totals, index) =>
          toCostRow(
            `  ${sessions[index]?.name ?? ''}`,
            totals,
            results[0]?.each[index]?.cost ?? 0,
            results[1]?.each[index]?.cost ?? 0,
          ),
        )
      : []),
  ])
  const calls = sessions.reduce((count, { session }) => count + session.steps.filter(isResponse).length, 0)
  console.log(`\n${folder}: ${sessions.length} sessions, ${calls} recorded calls`)
  console.log(table(COST_HEAD, rows))
  console.log(
    `\n${table(
      VIEW_HEAD,
      results.map(({ name, fidelity }) => toViewRow(name, fidelity)),
    )}`,
  )
}

function isResponse({ kind }: RecordedSession['steps'][number]): boolean {
  return kind === 'response'
}

/** The halves are drawn by name, every second log: `tuned` is looked at while a policy is tuned, `held` only afterwards. */
function readSessions(folder: string, half: 'tuned' | 'held' | undefined): readonly NamedSession[] {
  if (!existsSync(folder)) throw new WrongUse(`there is no folder ${folder}`)
  const files = readdirSync(folder).filter((name) => /^(?:claude|codex).*\.jsonl(?:\.gz)?$/.test(name))
  const chosen = files
    .toSorted()
    .filter((_, index) => half === undefined || (index % 2 === 0) === (half === 'tuned'))
  return chosen.flatMap((file) => {
    const name = file.slice(0, 32)
    try {
      return [{ name, session: readRecordedSession(readRecords(join(folder, file))) }]
    } catch (error) {
      console.error(`left out: ${name}: ${error instanceof Error ? error.message : String(error)}`)
      return []
    }
  })
}

async function replayAll(sessions: readonly NamedSession[], policy: ReplayPolicy): Promise<PolicyResult> {
  const fidelity = createFidelityTotals()
  const each: ReplayTotals[] = []
  for (const [index, { session, name }] of sessions.entries()) {
    if (process.stderr.isTTY)
      process.stderr.write(`\r${policy.name}: ${index + 1} of ${sessions.length}\u001b[K`)
    const meter = new FidelityMeter(session, fidelity)
    try {
      each.push(
        await replaySession(session, policy, {
          onRequest: (request, step, rewrites) => meter.measure(request, step, rewrites),
        }),
      )
    } catch (error) {
      throw new Error(`${policy.name} on ${name}: ${error instanceof Error ? error.stack : String(error)}`)
    }
  }
  if (process.stderr.isTTY) process.stderr.write('\r\u001b[K')
  return { name: policy.name, each, fidelity }
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
    (cost / base).toFixed(3),
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
