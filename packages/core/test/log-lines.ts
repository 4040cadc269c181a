/** Lines of a log as tests write them, and a log as tests look at it once it was read. */
import { createLogLineReader, type LogReadResult } from '../src/log/decode-log.ts'
import type { SessionRecord } from '../src/log/record.ts'

export const HEADER: string =
  '{"type":"tidemark","format":"tidemark-session","version":1,"sessionId":"s","timestamp":"t"}'

export function alone(seq: number): string {
  return JSON.stringify({ type: 'note', uuid: `r${seq}`, seq })
}

export function part(seq: number, id: string, [index, of]: readonly [number, number]): string {
  return JSON.stringify({ type: 'note', uuid: `${id}${index}`, seq, batch: { id, index, of } })
}

export interface Read extends Omit<LogReadResult, 'records'> {
  readonly uuids: readonly (string | undefined)[]
}

/** The lines with a newline behind each, and `rest` behind the last newline. */
export function read(lines: readonly string[], rest?: string): Read {
  const reader = createLogLineReader()
  const taken: SessionRecord[] = []
  for (const line of lines) taken.push(...reader.readLine(line))
  const { records, ...end } = reader.finish(rest)
  return { ...end, uuids: [...taken, ...records].map((record) => record.uuid) }
}

export function found({ uuids, position, damage }: Read): unknown {
  return { uuids, position, damage: damage.map(({ kind, line }) => `${kind} ${line}`) }
}

/** A line of another tool: it has no position. */
export function foreign(uuid: string): string {
  return JSON.stringify({ type: 'note', uuid })
}

/** A log of batches of the given sizes, as text. */
export function textOf(sizes: readonly number[]): string {
  let seq = 0
  const lines = sizes.flatMap((of, batch) =>
    Array.from({ length: of }, (_, index) => {
      seq += 1
      return of === 1 ? alone(seq) : part(seq, `b${batch}`, [index, of])
    }),
  )
  return [HEADER, ...lines].map((line) => `${line}\n`).join('')
}
