/** Appends a story to a session until it is killed. Prints each attempt before it and each acknowledgement after it. */
import { readFileSync, writeSync } from 'node:fs'
import type { NewRecord } from '@tidemark/core/engine/ports'
import { createFileJournal } from '../src/storage/file-journal.ts'

const [home = '', session = '', storyFile = ''] = process.argv.slice(2)
const units: NewRecord[][] = JSON.parse(readFileSync(storyFile, 'utf8'))

/** Writes synchronously, so that no line is lost when the process is killed. */
function print(line: string): void {
  writeSync(1, `${line}\n`)
}

async function appendAndPrint(after: number, records: readonly NewRecord[]): Promise<void> {
  print(`tried ${after + records.length}`)
  const outcome = await journal.append(session, after, records)
  print(outcome.ok ? `acknowledged ${outcome.position}` : `refused ${JSON.stringify(outcome)}`)
  if (!outcome.ok) process.exit(3)
}

function randomBelow(count: number): number {
  return Math.floor(Math.random() * count)
}

/** The units from `position` on. */
function unitsFrom(position: number): NewRecord[][] {
  let end = 0
  const first = units.findIndex((unit) => {
    end += unit.length
    return end > position
  })
  return first === -1 ? [] : units.slice(first)
}

const journal = createFileJournal({ home })
let { position } = await journal.read(session, () => {})
const left = unitsFrom(position)
print(`ready ${position}`)
while (left.length > 0) {
  const appends = Array.from({ length: 1 + randomBelow(3) }, () => {
    const records = left.splice(0, 1 + randomBelow(4)).flat()
    const after = position
    position += records.length
    return appendAndPrint(after, records)
  })
  await Promise.all(appends)
}
print('finished')
