/** The figures of a copy that `tidemark compact -o` writes are those of the original log. */
import { readFileSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  emptySessionCost,
  type FindModelPrices,
  sumSessionCost,
  updateSessionCost,
} from '@tidemark/core/cost/session-cost'
import { createLogLineReader } from '@tidemark/core/log/decode-log'
import { AppendList } from '@tidemark/core/log/persistent-collections'
import { runStepsAtOnce } from '@tidemark/core/log/work-steps'
import { lookUpModel, modelCatalogue, pricesAtDate } from '@tidemark/wire/catalogue/catalogue'
import { readAnthropicReport } from '@tidemark/wire/providers/message-usage'
import { beforeEach, expect, it } from 'vitest'
import { type LogFolder, logFolder } from '../../test/log-folder.ts'
import { workingSession } from '../../test/working-session.ts'
import { findNamedLogs, inspectFiles, sumSessions } from '../inspect/inspect-files.ts'
import type { SessionReport } from '../inspect/report.ts'
import { readLog } from '../logs/read-log.ts'
import { compactLog } from './compact-log.ts'
import { writeLogAndBlobs } from './write-log.ts'

let folder: LogFolder
beforeEach(() => {
  folder = logFolder()
})

/** Compacts a log into a new file of the folder, and returns the path of the copy. */
async function copyLog(path: string, name: string): Promise<string> {
  const out = join(folder.path, `${name}.jsonl`)
  const log = await readLog(path)
  if (!log.ok) throw new Error(log.message)
  const outcome = await compactLog(log, { transcript: out, maximumPercent: 100 })
  if (!outcome.ok) throw new Error(outcome.message)
  expect(await writeLogAndBlobs(out, outcome.written)).toMatchObject({ ok: true })
  return out
}

async function inspect(...paths: readonly string[]): Promise<readonly SessionReport[]> {
  const { logs } = await findNamedLogs(paths)
  const { sessions } = await inspectFiles(logs, { timeZone: 'UTC' })
  return sessions
}

/** The figures that do not depend on the compaction which only the copy has. */
async function readFigures(path: string): Promise<object> {
  const [report] = await inspect(path)
  if (report === undefined) throw new Error(`${path} was not read`)
  const { apiCalls, callsWithoutUsage, toolCalls, userMessages, usage, hitRate, project, agents } = report
  const { costUsd, money, outputEstimatedCalls, outputTokensEstimated, spending, startedAt } = report
  const { window, windowFrom, autoCompact } = report.context
  return {
    ...{ apiCalls, callsWithoutUsage, toolCalls, userMessages, usage, hitRate, project, agents, startedAt },
    ...{ costUsd, money, outputEstimatedCalls, outputTokensEstimated, spending },
    ...{ window, windowFrom, autoCompact },
    breaks: report.cacheBreaks.map(({ at, costUsd: lost, cause }) => ({ at, lost, cause })),
  }
}

/** What `session.money()` of a resumed session returns for the calls so far. */
function readSpent(path: string): { readonly total: number | null; readonly priced: number } {
  const reader = createLogLineReader({ readReport: readAnthropicReport })
  const lines = readFileSync(path, 'utf8').trimEnd().split('\n')
  const records = [...lines.flatMap((line) => reader.readLine(line)), ...reader.finish().records]
  const findPrices: FindModelPrices = (name, at) => {
    const found = lookUpModel(modelCatalogue, name)
    return found.found ? pricesAtDate(found.model, at) : null
  }
  const costs = runStepsAtOnce(updateSessionCost(emptySessionCost(), AppendList.of(records), findPrices))
  const { total, priced } = sumSessionCost(costs).spent
  return { total, priced }
}

/** A session of Claude Code whose usage has the output tokens from the start of the stream, with a compaction. */
function writeClaudeCodeLog(): string {
  const text = 'The harbour list has one entry for each tide table. '.repeat(20)
  const lines = workingSession().map((line) => {
    const { message } = line as { readonly message?: { readonly usage?: object; readonly content: object[] } }
    if (message?.usage === undefined) return line
    const content = [...message.content, { type: 'text', text }]
    return { ...line, message: { ...message, content, usage: { ...message.usage, output_tokens: 1 } } }
  })
  const [first, ...rest] = lines
  const boundary = {
    ...first,
    ...{ type: 'system', subtype: 'compact_boundary', message: undefined, uuid: 'boundary' },
    ...{ parentUuid: null, logicalParentUuid: first?.uuid, timestamp: '2026-03-09T09:00:00.500Z' },
    compactMetadata: { trigger: 'auto', preTokens: 150_000 },
  }
  const said = { role: 'user', content: 'Summary: the tide tables are to be renamed.' }
  const summary = { ...first, uuid: 'summary', parentUuid: 'boundary', isCompactSummary: true, message: said }
  const agent = lines[1] as { readonly message?: object }
  const side = { ...agent, uuid: 'side', parentUuid: null, isSidechain: true, agentId: 'scout' }
  const log = [
    first,
    boundary,
    summary,
    { ...rest[0], parentUuid: 'summary' },
    { ...side, message: { ...agent.message, id: 'msg_side' } },
    ...rest.slice(1),
  ]
  return folder.file('working.jsonl', log.map((line) => `${JSON.stringify(line)}\n`).join(''), 60)
}

/** A session of Codex with a window of its own, and a response that was cut off before its usage was logged. */
function writeCodexLog(): string {
  const line = (type: string, payload: object) => ({ timestamp: '2026-01-02T03:04:05.000Z', type, payload })
  const say = (role: string, text: string) => {
    const content = [{ type: role === 'assistant' ? 'output_text' : 'input_text', text }]
    return line('response_item', { type: 'message', role, content })
  }
  const count = (total: readonly number[], last: readonly number[]) => {
    const toUsage = ([input_tokens, cached_input_tokens, output_tokens]: readonly number[]) => ({
      ...{ input_tokens, cached_input_tokens, output_tokens },
      total_tokens: (input_tokens ?? 0) + (output_tokens ?? 0),
    })
    const usage = { total_token_usage: toUsage(total), last_token_usage: toUsage(last) }
    return line('event_msg', { type: 'token_count', info: { ...usage, model_context_window: 258_400 } })
  }
  const call = { name: 'shell', arguments: '{"command":"ls"}', call_id: 'call-1' }
  const output = { call_id: 'call-1', output: 'Hamburg, Bremen, Kiel. '.repeat(800) }
  const session = { id: 'rollout-1', cwd: '/projects/boat', timestamp: '2026-01-02T03:00:00.000Z' }
  const lines = [
    line('session_meta', { ...session, cli_version: '0.1.0' }),
    line('turn_context', { model: 'gpt-5.4', cwd: '/projects/boat' }),
    say('user', `List the harbours. ${'One line for each of them, please. '.repeat(400)}`),
    line('response_item', { type: 'function_call', ...call }),
    line('response_item', { type: 'function_call_output', ...output }),
    count([9_000, 0, 400], [9_000, 0, 400]),
    say('assistant', 'Three harbours.'),
    count([23_000, 8_000, 430], [14_000, 8_000, 30]),
    say('user', 'And the tides?'),
    say('assistant', 'High at'),
  ]
  return folder.file('rollout.jsonl', lines.map((each) => `${JSON.stringify(each)}\n`).join(''), 60)
}

it.each([
  ['Claude Code', writeClaudeCodeLog],
  ['Codex', writeCodexLog],
])('a copy of a log of %s has the calls, cost, window and project of the original', async (_, write) => {
  const original = write()
  const figures = await readFigures(original)
  const copy = await copyLog(original, 'copy')
  expect(await readFigures(copy)).toEqual(figures)
  expect(await readFigures(await copyLog(copy, 'copy-of-copy'))).toEqual(figures)
  const [report] = await inspect(original)
  expect(readSpent(copy).total).toBeCloseTo(report?.costUsd ?? Number.NaN, 6)
})

it('the copy of a log whose output tokens were estimated says so, and costs more than its logged usage', async () => {
  const original = writeClaudeCodeLog()
  const copy = await copyLog(original, 'copy')
  const [report] = await inspect(copy)
  expect(report).toMatchObject({ format: 'tidemark', copiedFrom: 'claude-code', outputEstimated: true })
  expect(report?.outputTokensEstimated).toBeGreaterThan(10 * (report?.usage.output ?? 0))
  expect(readSpent(copy).priced).toBeGreaterThan(readSpent(original).priced)
})

it('an original keeps its calls where a newer file is a copy of it, and the total counts them once', async () => {
  const original = writeClaudeCodeLog()
  const copy = await copyLog(original, 'copy')
  const [alone] = await inspect(original)
  const calls = alone?.apiCalls ?? 0
  // The original went on after it was copied, so its file is the newer one.
  for (const [one, other] of [
    [original, copy],
    [copy, original],
  ] as const) {
    utimesSync(one, 1_700_000_000, 1_700_000_000)
    utimesSync(other, 1_700_000_900, 1_700_000_900)
    const sessions = await inspect(folder.path)
    expect(sessions.map(({ file }) => file)).toEqual([other, one])
    const counted = sessions.map((each) => [each.file, each.apiCalls, each.copiedCalls, each.costUsd])
    expect(counted).toContainEqual([original, calls, 0, alone?.costUsd])
    expect(counted).toContainEqual([copy, 0, calls, 0])
    expect(sumSessions(sessions)).toMatchObject({ apiCalls: calls, costUsd: alone?.costUsd })
  }
})

it('inspect shows re-attached files of the copy with the size that the plan had for them', async () => {
  const original = writeClaudeCodeLog()
  const log = await readLog(original)
  if (!log.ok) throw new Error(log.message)
  const outcome = await compactLog(log)
  if (!outcome.ok) throw new Error(outcome.message)
  const out = join(folder.path, 'copy.jsonl')
  await writeLogAndBlobs(out, outcome.written)
  const [before] = await inspect(original)
  const [after] = await inspect(out)
  const { session, plan } = outcome.report
  expect(plan.comesBack.records).toBeGreaterThan(0)
  // The plan corrects its estimates by the usage in the log, inspect does not.
  const { total = 0, summaries = 0 } = before?.tokensByClass ?? {}
  const scale = session.tokens / (total - summaries)
  expect(scale * (after?.tokensByClass.attachments ?? 0)).toBeCloseTo(plan.comesBack.tokens, -1)
})

it('where the provider counts more than the estimate, the plan counts what is re-attached likewise', async () => {
  const plans = await Promise.all(
    [1, 2].map(async (factor) => {
      const lines = workingSession().map((line) => multiplyUsage(line, factor))
      const text = lines.map((line) => `${JSON.stringify(line)}\n`).join('')
      const log = await readLog(folder.file(`times-${factor}.jsonl`, text, 60))
      const outcome = log.ok ? await compactLog(log) : log
      if (!outcome.ok) throw new Error(outcome.message)
      return outcome.report
    }),
  )
  const [once, twice] = plans
  const ratio = (twice?.plan.goes.tokens ?? 0) / (once?.plan.goes.tokens ?? 1)
  expect(ratio).toBeGreaterThan(1.2)
  const measureBack = (report = once) => [
    report?.plan.comesBack.tokens ?? 0,
    ...(report?.trace ?? []).flatMap(({ tokens }) => tokens ?? []),
  ]
  measureBack(twice).forEach((tokens, index) => {
    expect(tokens / (measureBack(once)[index] ?? 1)).toBeCloseTo(ratio, 2)
  })
})

function multiplyUsage(line: object, factor: number): object {
  const { message } = line as { readonly message?: { readonly usage?: Readonly<Record<string, number>> } }
  if (message?.usage === undefined) return line
  const usage = Object.entries(message.usage).map(([name, count]) => [name, count * factor])
  return { ...line, message: { ...message, usage: Object.fromEntries(usage) } }
}

it('a copy keeps the conversation of a subagent apart from the main one', async () => {
  const copy = await copyLog(writeClaudeCodeLog(), 'copy')
  const log = await readLog(copy)
  expect(log.ok && log.agents.map(({ agent, records }) => [agent, records.length])).toEqual([['scout', 1]])
})

it('a copy from before the header named the original is read as before', async () => {
  const copy = await copyLog(writeCodexLog(), 'copy')
  const text = readFileSync(copy, 'utf8')
  const header = text.slice(0, text.indexOf('\n'))
  const { copiedFrom, ...old } = JSON.parse(header)
  expect(copiedFrom).toMatchObject({ format: 'codex', contextWindow: 258_400, cwd: '/projects/boat' })
  writeFileSync(copy, text.replace(header, JSON.stringify(old)))
  const [report] = await inspect(copy)
  expect(report).toMatchObject({ copiedFrom: null, project: '/projects/boat' })
})
