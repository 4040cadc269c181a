/**
 * Real logs, read where they lie, against the figures that were counted from them by other means. Skips, and
 * says so, where the folder is absent.
 */

import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'
import { buildContextView } from '@tidemark/core/context/context-view'
import { readUserInputs } from '@tidemark/core/facts/user-input'
import { isToolResult, isToolUse, toBlocks } from '@tidemark/core/log/block'
import type { JsonObject } from '@tidemark/core/log/json'
import {
  type AssistantRecord,
  isCompactBoundary,
  isKnownRecord,
  isMicrocompactBoundary,
  type KnownRecord,
  SYNTHETIC_MODEL,
} from '@tidemark/core/log/record'
import { buildSessionLog } from '@tidemark/core/log/session-log'
import { isFullRun, sampleCases } from '@tidemark/core/testing'
import { afterAll, describe, expect, it } from 'vitest'
import { type LogContents, readLog } from '../src/logs/read-log.ts'
import { repairLog } from '../src/logs/repair-log.ts'

interface Figures {
  readonly file: string
  readonly agent: string
  readonly lines: number
  readonly api_calls: number
  readonly tool_calls: number
  readonly tool_results: number
  readonly user_messages: number
  readonly models: readonly string[]
  readonly input_tokens: number
  readonly cache_read_input_tokens?: number
  readonly cached_input_tokens?: number
  readonly cache_creation_input_tokens?: number
  readonly output_tokens_logged: number
  readonly compactions: readonly { readonly pre_tokens: number }[]
  readonly microcompactions?: readonly { readonly pre_tokens: number }[]
  readonly context_window?: number
}

const folder = fileURLToPath(new URL('../../../../shared/transcripts/', import.meta.url))
const isThere = existsSync(join(folder, 'manifest.json'))
const figures: readonly Figures[] = isThere
  ? JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8'))
  : []
const title = isThere ? 'real logs' : 'real logs (skipped: ../shared/transcripts is absent)'

async function read(file: string): Promise<LogContents> {
  const log = await readLog(join(folder, file))
  if (!log.ok) throw new Error(log.message)
  return log
}

function knownIn(log: LogContents): readonly KnownRecord[] {
  return log.records.map(({ record }) => record).filter(isKnownRecord)
}

/** What Claude Code wrote itself in the model's place was no call. */
function isResponse(record: KnownRecord): record is AssistantRecord {
  if (record.type !== 'assistant' || record.message.usage === undefined) return false
  return record.message.model !== SYNTHETIC_MODEL
}

/** One response on several lines is one call; the figures of a stream only grow. */
function usagesIn(records: readonly KnownRecord[]): readonly JsonObject[] {
  const calls = new Map<string, JsonObject>()
  for (const { message } of records.filter(isResponse))
    if (message.usage) calls.set(message.id, message.usage)
  return [...calls.values()]
}

function countedIn(log: LogContents): object {
  const records = knownIn(log)
  const usages = usagesIn(records)
  const sum = (field: string): number => usages.reduce((total, usage) => total + Number(usage[field] ?? 0), 0)
  const blocks = records.flatMap((record) =>
    record.type === 'user' || record.type === 'assistant' ? toBlocks(record.message.content) : [],
  )
  return {
    lines: log.lines,
    damage: log.damage,
    calls: usages.length,
    toolCalls: new Set(blocks.filter(isToolUse).map(({ id }) => id)).size,
    toolResults: new Set(blocks.filter(isToolResult).map(({ tool_use_id: id }) => id)).size,
    userMessages: records.filter((record) => readUserInputs(record).some(({ kind }) => kind === 'prompt'))
      .length,
    models: [...new Set(records.filter(isResponse).map(({ message }) => message.model))],
    input: sum('input_tokens'),
    cacheRead: sum('cache_read_input_tokens'),
    cacheWritten: sum('cache_creation_input_tokens'),
    output: sum('output_tokens'),
    compactions: records.filter(isCompactBoundary).map((record) => record.compactMetadata.preTokens),
    clearings: records.filter(isMicrocompactBoundary).map((record) => record.microcompactMetadata.preTokens),
  }
}

/** Codex counts cached input as input; what we call input is the rest. */
function expectedOf(given: Figures): object {
  const cacheRead = given.cache_read_input_tokens ?? given.cached_input_tokens ?? 0
  return {
    lines: given.lines,
    damage: [],
    calls: given.api_calls,
    toolCalls: given.tool_calls,
    toolResults: given.tool_results,
    userMessages: given.user_messages,
    models: given.models,
    input: given.agent === 'codex' ? given.input_tokens - cacheRead : given.input_tokens,
    cacheRead,
    cacheWritten: given.cache_creation_input_tokens ?? 0,
    output: given.output_tokens_logged,
    compactions: given.compactions.map(({ pre_tokens: tokens }) => tokens),
    clearings: (given.microcompactions ?? []).map(({ pre_tokens: tokens }) => tokens),
  }
}

describe.skipIf(!isThere)(title, () => {
  const temporary = mkdtempSync(join(tmpdir(), 'tidemark-'))
  afterAll(() => rmSync(temporary, { recursive: true }))

  it.each(sampleCases(figures, 6))('$file has the figures of the manifest', async (given) => {
    const log = await read(given.file)
    expect(log.format).toBe(given.agent)
    expect(countedIn(log)).toEqual(expectedOf(given))
  })

  it.each(figures.filter(({ agent }) => agent === 'codex'))(
    '$file: the view right behind the compaction is the history that Codex wrote down',
    async ({ file, context_window: window }) => {
      const lines = gunzipSync(readFileSync(join(folder, file)))
        .toString('utf8')
        .split('\n')
      const line = lines.findIndex((text) => text.includes('"type":"compacted"')) + 1
      const { payload } = JSON.parse(lines[line - 1] ?? '')
      const log = await read(file)
      expect(log.meta.contextWindow).toBe(window)
      const upTo = log.records.filter((read) => read.line <= line).map(({ record }) => record)
      const entries = [...buildContextView(buildSessionLog(upTo)).entries].map(({ record }) => record)
      const shown = entries.flatMap((record) =>
        record.type === 'user' || record.type === 'assistant'
          ? [{ role: record.message.role, text: textOf(record.message.content) }]
          : [],
      )
      expect(shown.filter(({ text }) => text !== '')).toEqual(
        payload.replacement_history.map((item: { role: string; content: readonly { text: string }[] }) => ({
          role: item.role === 'developer' ? 'user' : item.role,
          text: item.content.map(({ text }) => text).join('\n'),
        })),
      )
    },
  )

  it.each(figures.filter(({ agent }) => agent === 'claude-code').slice(0, isFullRun() ? 4 : 2))(
    '$file: a copy of it is repaired into one that folds without damage and shows the same',
    async ({ file }) => {
      const out = join(temporary, `${file}.clean.jsonl`)
      const repaired = await repairLog(join(folder, file), out)
      expect(repaired.ok && repaired.leftOut).toEqual([])
      const [before, after] = [await read(file), await readLog(out)]
      if (!after.ok) throw new Error(after.message)
      const [was, is] = [before, after].map((log) => buildSessionLog(log.records.map(({ record }) => record)))
      expect([...(is?.damage ?? [])]).toEqual([])
      expect(is && uuidsIn(is)).toEqual(was && uuidsIn(was))
    },
  )
})

function textOf(content: Parameters<typeof toBlocks>[0]): string {
  return toBlocks(content)
    .map(({ text }) => String(text ?? ''))
    .join('\n')
}

/** But for the answers that the repair added. */
function uuidsIn(session: ReturnType<typeof buildSessionLog>): readonly string[] {
  const records = [...buildContextView(session).entries].map(({ record }) => record)
  const own = records.filter(
    (record) => !JSON.stringify(record).includes('was interrupted and returned no result'),
  )
  return own.map(({ uuid }) => uuid)
}
