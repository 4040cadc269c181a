/** The sample session that comes with the package: a log as any other, read as any other. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { createLineReader, type Damage, type SessionRecord } from '@tidemark/core'

/** Both `src/` and the built `dist/` stand beside `sample/`. */
const SAMPLE = new URL('../sample/login-bug.jsonl', import.meta.url)

/** Where it lies. It is only ever read. */
export const SAMPLE_PATH: string = fileURLToPath(SAMPLE)

export interface Sample {
  readonly records: readonly SessionRecord[]
  readonly damage: readonly Damage[]
}

export function readSample(): Sample {
  const lines = readFileSync(SAMPLE, 'utf8').split('\n')
  const reader = createLineReader()
  const rest = lines.pop()
  const records = lines.flatMap((line) => reader.take(line))
  const end = reader.end(rest)
  return { records: [...records, ...end.records], damage: end.damage }
}
