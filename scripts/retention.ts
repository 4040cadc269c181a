/**
 * What survives a compaction without a model, at each logged compaction of recorded sessions:
 * `node --conditions=tidemark-source scripts/retention.ts FOLDER`.
 */
import { existsSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { type RecordedHistory, readHistories } from './recorded/history.ts'
import { heldIn, nextEdits, type SessionFacts, sessionFacts } from './recorded/retention.ts'
import { estimatorFor, summarise } from './recorded/summarise.ts'
import { table } from './table.ts'
import { runScript, WrongUse } from './wrong-use.ts'

const CLASSES: readonly (keyof SessionFacts)[] = [
  'editedFiles',
  'userMessages',
  'openErrors',
  'settledErrors',
  'readFiles',
]

await runScript('retention', async () => {
  const { positionals } = parseArgs({ allowPositionals: true })
  const [folder] = positionals
  if (folder === undefined || positionals.length > 1 || !existsSync(folder))
    throw new WrongUse('give the folder that holds the recorded sessions, and nothing else')
  const rows = readHistories(folder).flatMap((history) =>
    history.compactions.map((place) => rowFor(history, place)),
  )
  const heads = [
    'session',
    'calls',
    'edited',
    'messages',
    'errors',
    'settled',
    'read',
    'next edits',
    'tokens',
    'ms',
  ]
  console.log(table(heads, [...rows.map(({ cells }) => cells), totalOf(rows)]))
  return 0
})

interface Row {
  readonly cells: readonly string[]
  readonly counts: readonly (readonly [held: number, of: number])[]
}

function rowFor({ name, models, records }: RecordedHistory, place: number): Row {
  const before = records.slice(0, place)
  const { text, tokens, milliseconds } = summarise(before, estimatorFor(models[0]))
  const facts = sessionFacts(before)
  const { seen, named } = nextEdits(records, place, text)
  const counts: readonly (readonly [number, number])[] = [
    ...CLASSES.map((kind) => [heldIn(text, facts[kind]), facts[kind].length] as const),
    [named, seen],
  ]
  const calls = new Set(before.flatMap((record) => (record.type === 'assistant' ? [record.message.id] : [])))
  const figures = counts.map(([held, of]) => `${held}/${of}`)
  return { cells: [name, String(calls.size), ...figures, String(tokens), milliseconds.toFixed(0)], counts }
}

function totalOf(rows: readonly Row[]): readonly string[] {
  const shares = [...CLASSES, 'next'].map((_, column) => {
    const held = sum(rows.map(({ counts }) => counts[column]?.[0] ?? 0))
    const of = sum(rows.map(({ counts }) => counts[column]?.[1] ?? 0))
    return of === 0 ? 'none' : `${((100 * held) / of).toFixed(1)}% of ${of}`
  })
  return ['all', '', ...shares, '', '']
}

function sum(figures: readonly number[]): number {
  return figures.reduce((total, figure) => total + figure, 0)
}
