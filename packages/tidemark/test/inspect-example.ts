/** Logs built by hand, and their reports, for the tests of `inspect`. */
import type { MessageContent } from '@tidemark/core/log/block'
import type { JsonObject } from '@tidemark/core/log/json'
import type { SessionRecord } from '@tidemark/core/log/record'
import { SessionBuilder } from '@tidemark/core/testing'
import { modelCatalogue } from '@tidemark/wire/catalogue/catalogue'
import { readAnthropicReport } from '@tidemark/wire/providers/message-usage'
import type { LogFormat } from '@tidemark/wire/readers/log-reader'
import { inspectLog } from '../src/inspect/inspect-log.ts'
import type { SessionReport } from '../src/inspect/report.ts'
import { createDayFormatter } from '../src/inspect/spending.ts'
import type { AgentLog, LogContents } from '../src/logs/read-log.ts'

export const MODEL = 'claude-opus-4-5-20251101'

export interface AnswerFields {
  readonly usage?: JsonObject
  readonly model?: string
  readonly requestId?: string
}

export function usage(read: number, written: number, given: JsonObject = {}): JsonObject {
  return {
    input_tokens: 10,
    output_tokens: 100,
    cache_read_input_tokens: read,
    cache_creation_input_tokens: written,
    cache_creation: { ephemeral_5m_input_tokens: written, ephemeral_1h_input_tokens: 0 },
    ...given,
  }
}

export function addAnswer(
  builder: SessionBuilder,
  id: string,
  content: MessageContent,
  given: AnswerFields = {},
): void {
  const { model = MODEL, requestId = `req-${id}`, usage: used } = given
  const message = {
    id,
    role: 'assistant' as const,
    model,
    content,
    ...(used === undefined ? {} : { usage: used }),
  }
  const report = readAnthropicReport(message)
  builder.assistant(id, content, { message, ...report, requestId } as Parameters<
    SessionBuilder['assistant']
  >[2])
}

export const NO_META: LogContents['meta'] = {
  sessionId: 'told',
  cwd: '/home/user/shop',
  project: 'shop',
  version: null,
  startedAt: '2026-03-09T09:00:00.000Z',
  endedAt: '2026-03-09T10:30:00.000Z',
  forkedFrom: null,
  parentSessionId: null,
  copiedFrom: null,
  agent: null,
  contextWindow: null,
}

export interface LogOptions {
  readonly format?: LogFormat
  readonly agents?: readonly AgentLog[]
  readonly seenCalls?: Set<string>
  readonly seenPrompts?: Set<string>
}

export function toReadRecords(records: readonly SessionRecord[]): LogContents['records'] {
  return records.map((record, index) => ({ record, line: index + 1 }))
}

export function createLog(
  builder: SessionBuilder,
  { format = 'claude-code', agents = [] }: LogOptions = {},
): LogContents {
  const records = toReadRecords(builder.records)
  const file = {
    ok: true,
    path: 'shop.jsonl',
    format,
    sizeBytes: 0,
    modifiedMs: 0,
    lines: records.length,
  } as const
  return { ...file, records, damage: [], meta: NO_META, agents }
}

export function inspectSession(
  tell: (builder: SessionBuilder) => void,
  given: LogOptions = {},
): SessionReport {
  const builder = new SessionBuilder()
  tell(builder)
  const { seenCalls = new Set<string>(), seenPrompts = new Set<string>() } = given
  return inspectLog(createLog(builder, given), {
    catalogue: modelCatalogue,
    toDay: createDayFormatter('UTC'),
    seenCalls,
    seenPrompts,
  })
}

export const read1 = {
  type: 'tool_use',
  id: 't1',
  name: 'Read',
  input: { file_path: '/home/user/shop/a.ts' },
}
export const read2 = { ...read1, id: 't2' }
export const TEXT = 'line of code\n'.repeat(200)

export function buildExample(builder: SessionBuilder): void {
  builder.user('please fix the login')
  builder.user('<command-name>/model</command-name>')
  builder.user('caveat', { isMeta: true })
  addAnswer(builder, 'm1', [{ type: 'text', text: 'I look.' }], {
    usage: usage(0, 20_000, { output_tokens: 1 }),
  })
  addAnswer(builder, 'm1', [read1], { usage: usage(0, 20_000) })
  builder.result('t1', TEXT)
  addAnswer(builder, 'm2', [read2], { usage: usage(20_000, 1_000) })
  builder.result('t2', TEXT)
  builder.notice('microcompact_boundary', {
    microcompactMetadata: {
      trigger: 'auto',
      preTokens: 900,
      tokensSaved: 400,
      compactedToolIds: ['t1'],
      clearedAttachmentUUIDs: [],
    },
  })
  addAnswer(builder, 'm3', 'done', { usage: usage(15_000, 6_000) })
  builder.notice('compact_boundary', {
    parentUuid: null,
    compactMetadata: { trigger: 'manual', preTokens: 21_010 },
  })
  builder.user('Summary: …', { isCompactSummary: true, isVisibleInTranscriptOnly: true })
  builder.user('and the tests?')
  addAnswer(builder, 'e1', 'API error', { model: '<synthetic>' })
  addAnswer(builder, 'm4', 'They pass.', { usage: usage(5_000, 3_000) })
}
