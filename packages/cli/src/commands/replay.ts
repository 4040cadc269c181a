/** `tidemark replay`: replays past sessions under policies, and prints each policy's cost and the edits that still saw their lines. */
import { performance } from 'node:perf_hooks'
import { formatCount, formatDollars } from '@tidemark/terminal/render/format-numbers'
import { formatJson } from '@tidemark/terminal/render/json-output'
import { printMisuse, printUnreadableLogs } from '@tidemark/terminal/render/print-errors'
import { createProgressLine } from '@tidemark/terminal/render/progress-line'
import { createScreen, type Screen } from '@tidemark/terminal/render/screen'
import { cutTextStart, formatPath, toSafeLine, wrapText } from '@tidemark/terminal/render/text'
import { type Terminal, toSignalOption } from '@tidemark/terminal/terminal'
import {
  type LogReplay,
  type NamedLog,
  type NamedPolicy,
  type PolicyReplay,
  redactStrings,
  replayLog,
} from 'tidemark/internal'
import { readLog } from 'tidemark/logs'
import { createNoSessionError, findSessionLogs, limitItems } from './inspect.ts'
import { readPolicies, toErrorClause } from './read-policies.ts'

export interface ReplayCommandOptions {
  /** Names of policies and files with policies, separated by commas. */
  readonly policy?: string
  readonly window?: number
  readonly limit?: number
  readonly json?: boolean
}

interface ReplayedLog extends Omit<LogReplay, 'ok'> {
  readonly file: string
}

/** Names of policies in the output, where they differ from the names on the command line. */
const SHOWN_NAMES: Readonly<Record<string, string>> = { default: 'Tidemark' }
const OPEN_LOOP = 'Open loop: the recorded model does not react to what it is shown; sizes are estimates.'

export async function runReplayCommand(
  paths: readonly string[],
  choices: ReplayCommandOptions,
  terminal: Terminal,
): Promise<number> {
  const policies = await readPolicies(choices.policy ?? 'default')
  if (typeof policies === 'string') return printMisuse(policies, terminal)
  const { limit } = choices
  const found = await findSessionLogs(paths, limit === undefined ? {} : { limit }, terminal)
  const { replayed, unreadable } = await replayFiles(limitItems(found.logs, limit ?? 0), policies, {
    ...choices,
    terminal,
  })
  const skipped = [...found.unreadable, ...unreadable]
  const code = printUnreadableLogs(skipped, terminal)
  const caveat = describeCaveat(replayed)
  if (choices.json === true)
    terminal.write(`${formatJson(redactStrings({ sessions: replayed, skipped, caveat }))}\n`)
  if (replayed.length === 0 && skipped.length === 0) throw createNoSessionError('replay', paths, {}, terminal)
  if (choices.json !== true && replayed.length > 0)
    terminal.write(renderReplays(replayed, caveat, createScreen(terminal)))
  return code
}

interface ReplayFilesOptions {
  readonly window?: number
  readonly terminal: Terminal
}

/** Replays one log after the other. A log that cannot be read, or cannot be replayed under one policy, is left out for all. */
async function replayFiles(
  logs: readonly NamedLog[],
  policies: readonly NamedPolicy[],
  { window, terminal }: ReplayFilesOptions,
): Promise<{
  readonly replayed: readonly ReplayedLog[]
  readonly unreadable: readonly { readonly file: string; readonly why: string }[]
}> {
  const replayed: ReplayedLog[] = []
  const unreadable: { readonly file: string; readonly why: string }[] = []
  const line = createProgressLine(terminal, () => performance.now())
  try {
    for (const [index, log] of logs.entries()) {
      const { file } = log
      const result = await replayFile(log, {
        policies,
        ...(window === undefined ? {} : { window }),
        ...toSignalOption(terminal),
        onProgress: (text) =>
          line.show(`replaying ${index + 1} of ${logs.length}: ${text}  ${formatPath(file)}`),
      })
      if (typeof result === 'string') unreadable.push({ file, why: result })
      else replayed.push(result)
    }
  } finally {
    line.clear()
  }
  return { replayed, unreadable }
}

/** Replays a log. If it is left out, returns a sentence instead that names the file and the reason. */
async function replayFile(
  log: NamedLog,
  options: Parameters<typeof replayLog>[1],
): Promise<ReplayedLog | string> {
  const { signal } = options
  try {
    const contents = await readLog(log, {
      keepsRawBlocks: false,
      ...(signal === undefined ? {} : { signal }),
    })
    if (!contents.ok) return contents.message
    const fault = contents.fault ?? null
    if (fault !== null) return `${log.file} is left out: ${fault.replace(/\.$/, '')}.`
    const replay = await replayLog(contents, options)
    if (!replay.ok) return `${log.file} is left out: ${replay.why}.`
    const { model, calls, recorded, policies } = replay
    return { file: log.file, model, calls, recorded, policies }
  } catch (error) {
    if (signal?.aborted === true) throw error
    return `${log.file} is left out, because its replay failed: ${toErrorClause(error)}.`
  }
}

/** Describes what the figures leave out, and how far they are off, which is known for logs without rewrites. */
function describeCaveat(replayed: readonly ReplayedLog[]): string {
  const known = replayed.flatMap(({ recorded: { usd, replayedUsd, breaksUsd } }) =>
    usd === null || replayedUsd === null ? [] : [{ usd, replayedUsd, breaksUsd }],
  )
  const sum = (field: 'usd' | 'replayedUsd' | 'breaksUsd'): number =>
    known.reduce((total, each) => total + each[field], 0)
  const usd = sum('usd')
  if (usd === 0) return OPEN_LOOP
  const sessions = known.length === 1 ? 'the session' : `the ${known.length} sessions`
  const off = formatChange(sum('replayedUsd') / usd - 1)
  const breaks = Math.round((100 * sum('breaksUsd')) / usd)
  const cause = breaks === 0 ? '' : `, of which cache breaks of the recording make −${breaks}%`
  return `${OPEN_LOOP} Replayed with nothing changed, ${sessions} without rewrites cost ${off}${cause}.`
}

/** Renders each session with its recorded cost and its cost under each policy, then the totals and the caveat. */
function renderReplays(
  replayed: readonly ReplayedLog[],
  caveat: string,
  { columns, colors }: Screen,
): string {
  const sessions = replayed.map(({ file, recorded, policies }) => ({
    title: formatPath(file),
    lines: formatReplay(recorded.usd, policies),
  }))
  const all = { title: formatCount(replayed.length, 'session'), lines: formatTotal(replayed) }
  const blocks = (replayed.length > 1 ? [...sessions, all] : sessions).map(({ title, lines }) => [
    colors.bold(cutTextStart(title, columns)),
    ...lines.flatMap((line) => wrapText(line, columns - 2)).map((line) => `  ${line}`),
  ])
  const text = [...blocks, ['', ...wrapText(caveat, columns)]].flat().join('\n')
  return `${text}\n`
}

/** Formats the recorded cost and one policy as one line; several policies as one line each, below the recorded cost. */
function formatReplay(recorded: number | null, policies: readonly PolicyReplay[]): readonly string[] {
  const first = `as recorded ${recorded === null ? '?' : formatDollars(recorded)}`
  const lines = policies.map(({ name, usd, anchors: { used, seen }, refused }) => {
    const change = recorded === null || recorded === 0 ? '' : ` (${formatChange(usd / recorded - 1)})`
    const view =
      used === 0
        ? 'no edits of lines shown before'
        : `edits that still saw their lines ${Math.round((100 * seen) / used)}%`
    const unmade = refused === 0 ? '' : ` · ${formatCount(refused, 'call')} not made: too long for the window`
    return `${SHOWN_NAMES[name] ?? toSafeLine(formatPath(name))} ${formatDollars(usd)}${change} · ${view}${unmade}`
  })
  return lines.length === 1 ? [`${first} · ${lines[0]}`] : [first, ...lines]
}

function formatTotal(replayed: readonly ReplayedLog[]): readonly string[] {
  const recorded = replayed.reduce<number | null>(
    (sum, one) => (sum === null || one.recorded.usd === null ? null : sum + one.recorded.usd),
    0,
  )
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
      refused: sum(({ refused }) => refused),
    }
  })
  return formatReplay(recorded, totals)
}

function formatChange(share: number): string {
  const percent = Math.round(100 * share)
  return `${percent > 0 ? '+' : percent < 0 ? '−' : '±'}${Math.abs(percent)}%`
}
