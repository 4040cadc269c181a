/** A log of Claude Code for tests, told line by line, and what is found in it. */
import type { Block } from '@tidemark/core/log/block'
import type { JsonObject } from '@tidemark/core/log/json'
import type { SessionRecord } from '@tidemark/core/log/record'
import { modelCatalogue } from '@tidemark/wire/catalogue/catalogue'
import type { RecordWithLine } from '@tidemark/wire/readers/log-reader'
import { fromStoredRecord } from '@tidemark/wire/readers/stored-records'
import { createCacheReport } from '../src/inspect/cache-breaks.ts'
import { listConversationCalls } from '../src/inspect/logged-calls.ts'
import type { CacheReport } from '../src/inspect/report.ts'
import type { LogContents } from '../src/logs/read-log.ts'

export const MODEL: string = 'claude-opus-4-5-20251101'
const START = Date.parse('2026-03-09T09:00:00.000Z')

export type Fields = { readonly [field: string]: unknown }

/** A log in the making: each line a second after the one before, unless told otherwise. */
export class LogBuilder {
  readonly records: RecordWithLine[] = []
  seconds = 0
  read = 0

  line(fields: Fields): this {
    this.seconds += 1
    const number = this.records.length + 1
    const record = {
      uuid: `u${number}`,
      parentUuid: number === 1 ? null : `u${number - 1}`,
      sessionId: 's',
      timestamp: new Date(START + this.seconds * 1000).toISOString(),
      ...fields,
    }
    this.records.push({ record: fromStoredRecord(record as unknown as SessionRecord), line: number })
    return this
  }

  wait(seconds: number): this {
    this.seconds += seconds
    return this
  }

  prompt(text = 'go on', fields: Fields = {}): this {
    return this.line({ type: 'user', message: { role: 'user', content: text }, ...fields })
  }

  /** A response that reads so much; all the rest of the context is written. */
  answer(read: number, given: AnswerOptions = {}): this {
    const {
      blocks = [{ type: 'text', text: 'done' }],
      model = MODEL,
      written = 1_000,
      lifetime = '5m',
    } = given
    const id = `m${this.records.length}`
    this.read = read + written
    const message = {
      id,
      role: 'assistant',
      model,
      content: blocks,
      usage: { ...usage(read, written, lifetime), ...given.usage },
    }
    return this.line({ type: 'assistant', message, ...given.fields })
  }

  call(name: string, input: Fields = {}): Block {
    return { type: 'tool_use', id: `c${this.records.length}`, name, input } as Block
  }

  result(id: string, fields: Fields = {}): this {
    const content = [{ type: 'tool_result', tool_use_id: id, content: 'ok' }]
    return this.line({ type: 'user', message: { role: 'user', content }, ...fields })
  }
}

export interface AnswerOptions {
  readonly blocks?: readonly Block[]
  readonly model?: string
  readonly written?: number
  readonly lifetime?: '5m' | '1h'
  readonly usage?: Fields
  readonly fields?: Fields
}

function usage(read: number, written: number, lifetime: '5m' | '1h'): JsonObject {
  const split = { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 }
  return {
    input_tokens: 0,
    output_tokens: 10,
    cache_read_input_tokens: read,
    cache_creation_input_tokens: written,
    cache_creation: { ...split, [`ephemeral_${lifetime}_input_tokens`]: written },
  }
}

/** A prompt and its answer, with 50,000 tokens cached behind it. */
export function startLog(lifetime: '5m' | '1h' = '5m', fields: Fields = {}): LogBuilder {
  return new LogBuilder().prompt('begin', fields).answer(0, { written: 50_000, lifetime })
}

interface Others {
  readonly agents?: LogContents['agents']
  readonly elsewhere?: ReadonlySet<string>
  readonly meta?: LogContents['meta']
}

export function reportBreaks({ records }: LogBuilder, others: Others = {}): CacheReport {
  const { agents = [], elsewhere = new Set(), meta } = others
  const own = listConversationCalls(
    records.map(({ record }) => record),
    { elsewhere },
  )
  const theirs = agents.flatMap(({ agent, records: said }) =>
    listConversationCalls(
      said.map(({ record }) => record),
      { elsewhere, agent },
    ),
  )
  const log = { records, agents, ...(meta === undefined ? {} : { meta }) }
  return createCacheReport(log, [...own, ...theirs], modelCatalogue)
}

/** An answer that read nothing. */
export const NOTHING_READ: AnswerOptions = { written: 52_000 }
