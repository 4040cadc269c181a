/**
 * How much of what the next calls use a ledger holds, at each logged compaction of recorded sessions and at cuts a
 * fixed number of calls apart: `node --conditions=tidemark-source scripts/ledger-recall.ts FOLDER [--every CALLS]`.
 */

import { existsSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { buildLedger } from '../packages/core/test/summarize/summary-rules.ts'
import { type RecordedHistory, readHistories } from './recorded/history.ts'
import { artificialPlaces, foundIn, type PathRule, wantedAfter } from './recorded/recall.ts'
import { estimatorFor } from './recorded/summarise.ts'
import { table } from './table.ts'
import { runScript, WrongUse } from './wrong-use.ts'

const BUDGETS = [500, 1_000, 1_500, 2_000]
const RULES: readonly PathRule[] = ['base', 'two', 'full']
const RULE_NAMES = { base: 'last part of a path', two: 'last two', full: 'whole path' }
const HEADS = ['session', 'places', 'names', ...BUDGETS.map(String)]

await runScript('ledger-recall', async () => {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { every: { type: 'string' } },
  })
  const [folder] = positionals
  const every = Number(values.every ?? 100)
  if (folder === undefined || positionals.length > 1 || !existsSync(folder) || !(every > 0))
    throw new WrongUse('give the folder that holds the recorded sessions, and --every CALLS if you like')
  const histories = readHistories(folder)
  print('At logged compactions', histories, ({ compactions }) => compactions)
  print(`Every ${every} calls`, histories, (history) => artificialPlaces(history, every))
  return 0
})

function print(title: string, histories: readonly RecordedHistory[], placesOf: PlacesOf): void {
  const trials = histories.map((history) => trialOf(history, placesOf(history)))
  const rows = trials.map((trial) => rowFor(trial.name, [trial], 'base'))
  const pooled = RULES.map((rule) => rowFor(`all, by ${RULE_NAMES[rule]}`, trials, rule))
  const without = trials.map((left) =>
    sharesOf(
      trials.filter((trial) => trial !== left),
      'base',
    ),
  )
  const least = BUDGETS.map((_, at) => percent(Math.min(...without.map((shares) => shares[at] ?? 1))))
  console.log(
    `${title}\n${table(HEADS, [...rows, ...pooled, ['least, any one left out', '', '', ...least]])}\n`,
  )
}

type PlacesOf = (history: RecordedHistory) => readonly number[]

interface Trial {
  readonly name: string
  readonly places: number
  /** By rule, then by budget. */
  readonly found: Readonly<Record<PathRule, readonly number[]>>
  readonly of: Readonly<Record<PathRule, number>>
}

function trialOf(history: RecordedHistory, places: readonly number[]): Trial {
  const estimate = estimatorFor(history.models[0])
  const found = { base: zeros(), two: zeros(), full: zeros() }
  const of = { base: 0, two: 0, full: 0 }
  for (const place of places) {
    const wanted = wantedAfter(history, place)
    const before = history.records.slice(0, place)
    const texts = BUDGETS.map((tokens) => buildLedger(before, { tokens, estimate }).text)
    for (const rule of RULES) {
      of[rule] += foundIn('', wanted, rule).of
      texts.forEach((text, at) => {
        found[rule][at] = (found[rule][at] ?? 0) + foundIn(text, wanted, rule).found
      })
    }
  }
  return { name: history.name, places: places.length, found, of }
}

function zeros(): number[] {
  return BUDGETS.map(() => 0)
}

function sharesOf(trials: readonly Trial[], rule: PathRule): readonly number[] {
  const of = trials.reduce((total, trial) => total + trial.of[rule], 0)
  return BUDGETS.map((_, at) => trials.reduce((total, trial) => total + (trial.found[rule][at] ?? 0), 0) / of)
}

function rowFor(name: string, trials: readonly Trial[], rule: PathRule): readonly string[] {
  const places = trials.reduce((total, trial) => total + trial.places, 0)
  const of = trials.reduce((total, trial) => total + trial.of[rule], 0)
  return [name, String(places), String(of), ...sharesOf(trials, rule).map(percent)]
}

function percent(share: number): string {
  return Number.isNaN(share) ? '' : `${(100 * share).toFixed(1)}%`
}
