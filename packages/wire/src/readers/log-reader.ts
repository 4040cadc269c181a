/** What every reader of logs does: lines in, records out, and at the end what was wrong and whose log it was. */
import type { Damage, SessionRecord } from '@tidemark/core'
import type { LogMeta } from './log-meta.ts'

export type LogFormat = 'claude-code' | 'codex' | 'tidemark'

/** A record and the line of the file it was made from, 1 for the first. */
export interface ReadRecord {
  readonly record: SessionRecord
  readonly line: number
}

/**
 * Reads one log, line by line, in order. It keeps what it needs to understand the next line and nothing more:
 * a record may be given a few lines late (when its batch or its response is complete), never out of order.
 */
export interface LogReader {
  readonly format: LogFormat
  /** The next line, without its newline. An empty text counts as a line and gives nothing. */
  line(text: string): readonly ReadRecord[]
  /** After the last newline: `rest` is what stands behind it. */
  end(rest?: string): ReadEnd
}

export interface ReadEnd {
  readonly records: readonly ReadRecord[]
  /** In the order of lines. */
  readonly damage: readonly Damage[]
  readonly meta: LogMeta
}

export const NO_RECORDS: readonly ReadRecord[] = []
