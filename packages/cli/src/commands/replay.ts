/** `tidemark replay`: replays past sessions under policies, and prints what each would have cost and kept in view. */
import { readFile } from 'node:fs/promises'
import { performance } from 'node:perf_hooks'
import { createPolicy, presets, TidemarkError } from '@tidemark/core'
import {
  findDefaultLogs,
  findNamedLogs,
  findSessionPath,
  isPresetName,
  type LogReplay,
  listDefaultLogFolders,
  type NamedLog,
  type NamedPolicy,
  type PolicyReplay,
  redactStrings,
  replayLog,
} from 'tidemark/internal'
import { inspectFiles, readLog } from 'tidemark/logs'
import { formatDollars } from '../render/format-numbers.ts'
import { createProgressLine } from '../render/progress-line.ts'
import { formatPath } from '../render/text.ts'
import { type Terminal, toSignalOption } from '../terminal.ts'
import { EXIT_CODES } from './exit-codes.ts'
import { printError } from './print-errors.ts'

export interface ReplayCommandOptions {
  /** Names of policies and files with policies, separated by commas. */
  readonly policy?: string
  readonly window?: number
  readonly limit?: number
  readonly json?: boolean
}

interface ReplayedLog {
  readonly file: string
  readonly model: string
  readonly calls: number
  /** Dollars as the log's own usage gives them, as `inspect` shows them; null if a price is unknown. */
  readonly recorded: { readonly usd: number | null }
  readonly policies: readonly PolicyReplay[]
}

const DEFAULT_POLICIES = 'default'
/** Number of newest sessions that are replayed if no path is given. */
const DEFAULT_SESSIONS = 10
const CAVEAT =
  'Open loop: the recorded model does not react to what it is shown. Sizes are estimates; prices are those of the date.'

export async function runReplayCommand(
  paths: readonly string[],
  { policy: given = DEFAULT_POLICIES, window, limit, json = false }: ReplayCommandOptions,
  terminal: Terminal,
): Promise<number> {
  const policies = await Promise.all(given.split(',').map((name) => readNamedPolicy(name.trim())))
  const { logs, problems } = await findSessions(paths, limit, terminal)
  const skipped = [...problems]
  const replayed: ReplayedLog[] = []
  const line = createProgressLine(terminal, () => performance.now())
  for (const [index, log] of logs.entries()) {
    const where = `${index + 1} of ${logs.length}: ${formatPath(log.file)}`
    const result = await replayFile(log, policies, {
      window,
      terminal,
      show: (text) => line.show(`${where}  ${text}`),
    })
    if (result.ok) replayed.push(result)
    else skipped.push(`${formatPath(log.file)} is left out: ${result.why}.`)
  }
  line.clear()
  for (const message of skipped) printError(message, terminal)
  if (json) terminal.write(`${JSON.stringify(redactStrings(toJson(replayed, skipped)))}\n`)
  else if (replayed.length > 0) terminal.write(renderReplays(replayed))
  if (replayed.length === 0 && skipped.length === 0)
    return printError('No session was found. Name a file or a folder: tidemark replay FILE.', terminal)
  return skipped.length > 0 ? EXIT_CODES.failed : EXIT_CODES.done
}

/** Reads a policy by its name, or from a JSON file of settings. */
async function readNamedPolicy(name: string): Promise<NamedPolicy> {
  if (isPresetName(name)) return { name, policy: presets[name] }
  const text = await readFile(name, 'utf8').catch(() => {
    const known = Object.keys(presets).join(', ')
    throw new TidemarkError(
      'bad-option',
      `There is no policy "${name}": give ${known}, or a JSON file of settings.`,
    )
  })
  try {
    const policy = JSON.parse(text)
    createPolicy(policy)
    return { name, policy }
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw new TidemarkError('bad-option', `${name} is not a policy: ${why}`)
  }
}

async function findSessions(
  paths: readonly string[],
  limit: number | undefined,
  terminal: Terminal,
): Promise<{ readonly logs: readonly NamedLog[]; readonly problems: readonly string[] }> {
  if (paths.length > 0) {
    const files = await Promise.all(paths.map((path) => findSessionPath(path, terminal.env)))
    const { logs, unreadable } = await findNamedLogs(files, terminal.interrupted)
    return {
      logs: limit === undefined ? logs : logs.slice(0, limit),
      problems: unreadable.map(({ why }) => why),
    }
  }
  const found = await findDefaultLogs(toSignalOption(terminal), listDefaultLogFolders(terminal.env))
  const newest = found.logs.slice(0, limit ?? DEFAULT_SESSIONS)
  return {
    logs: newest.map((log) => ({ ...log, file: log.path })),
    problems: found.problems.map(({ message }) => message),
  }
}

interface FileContext {
  readonly window: number | undefined
  readonly terminal: Terminal
  readonly show: (text: string) => void
}

async function replayFile(
  log: NamedLog,
  policies: readonly NamedPolicy[],
  { window, terminal, show }: FileContext,
): Promise<({ readonly ok: true } & ReplayedLog) | { readonly ok: false; readonly why: string }> {
  show('reading')
  const contents = await readLog(log, { keepsRawBlocks: false, ...toSignalOption(terminal) })
  if (!contents.ok) return { ok: false, why: contents.message.replace(/\.$/, '') }
  const [report] = (await inspectFiles([log], toSignalOption(terminal))).sessions
  let replay: LogReplay
  try {
    replay = await replayLog(contents, {
      policies,
      ...(window === undefined ? {} : { window }),
      ...toSignalOption(terminal),
      onProgress: (name) => show(name),
    })
  } catch (error) {
    if (terminal.interrupted?.aborted === true) throw error
    return { ok: false, why: error instanceof Error ? error.message.replace(/\.$/, '') : String(error) }
  }
  if (!replay.ok) return replay
  return { ...replay, file: log.file, recorded: { usd: report?.costUsd ?? null } }
}

function toJson(replayed: readonly ReplayedLog[], skipped: readonly string[]) {
  const sessions = replayed.map(({ file, model, calls, recorded, policies }) => ({
    file,
    model,
    calls,
    recorded,
    policies,
  }))
  return { sessions, skipped, caveat: CAVEAT }
}

/** One line for each session, one for all of them, and the caveat. */
function renderReplays(replayed: readonly ReplayedLog[]): string {
  const lines = replayed.map(
    (one) => `${formatPath(one.file)}\n  ${formatReplay(one.recorded.usd, one.policies)}`,
  )
  const total = replayed.length < 2 ? [] : [`all ${replayed.length} sessions\n  ${formatTotal(replayed)}`]
  return `${[...lines, ...total].join('\n')}\n\n${CAVEAT}\n`
}

function formatReplay(recorded: number | null, policies: readonly PolicyReplay[]): string {
  const parts = policies.map(({ name, usd, anchors: { used, seen }, compactions, clearings }) => {
    const change = recorded === null || recorded === 0 ? '' : ` (${formatChange(usd / recorded - 1)})`
    const view =
      used === 0 ? 'no edits' : `${Math.round((100 * seen) / used)}% of ${used} edits still saw their lines`
    return `${name} ${formatDollars(usd)}${change} · ${view} · ${compactions} compactions, ${clearings} clearings`
  })
  const first = recorded === null ? 'as recorded: price unknown' : `as recorded ${formatDollars(recorded)}`
  return [first, ...parts].join('\n  ')
}

function formatTotal(replayed: readonly ReplayedLog[]): string {
  const known = replayed.every(({ recorded }) => recorded.usd !== null)
  const recorded = known ? replayed.reduce((sum, one) => sum + (one.recorded.usd ?? 0), 0) : null
  const names = replayed[0]?.policies.map(({ name }) => name) ?? []
  const totals = names.map((name, index): PolicyReplay => {
    const own = replayed.flatMap(({ policies }) => policies[index] ?? [])
    const sum = (read: (one: PolicyReplay) => number): number => own.reduce((all, one) => all + read(one), 0)
    return {
      name,
      usd: sum(({ usd }) => usd),
      anchors: { used: sum(({ anchors }) => anchors.used), seen: sum(({ anchors }) => anchors.seen) },
      compactions: sum(({ compactions }) => compactions),
      clearings: sum(({ clearings }) => clearings),
    }
  })
  return formatReplay(recorded, totals)
}

function formatChange(share: number): string {
  const percent = Math.round(100 * share)
  return `${percent > 0 ? '+' : percent < 0 ? '−' : '±'}${Math.abs(percent)}%`
}
