/**
 * Fits the constants of the token estimate to recorded sessions, and tells how each session fares with
 * constants fitted to the others: `node --conditions=tidemark-source scripts/fit-estimator.ts FOLDER [--write]`.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { replaceConstants } from './estimator/constants-file.ts'
import {
  type EstimatorError,
  measurePredictionError,
  type PredictedGrowth,
} from './estimator/estimator-error.ts'
import { fitConstants } from './estimator/fitted.ts'
import { entryOf, FAMILY, leftOutTurns, rowsOfEach } from './estimator/leave-out.ts'
import { type RecordedSession, readSessions } from './estimator/sessions.ts'
import { table } from './table.ts'
import { runScript, WrongUse } from './wrong-use.ts'

const TARGET = fileURLToPath(
  new URL('../packages/wire/src/catalogue/estimator-constants.ts', import.meta.url),
)

await runScript('fit-estimator', async () => {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { write: { type: 'boolean' } },
  })
  const [folder] = positionals
  if (folder === undefined || positionals.length > 1 || !existsSync(folder))
    throw new WrongUse('give the folder that holds the recorded sessions, and nothing else but --write')
  const sessions = readSessions(folder, (model) => entryOf(model)?.tokenizer === FAMILY)
  if (sessions.length < 2) throw new WrongUse(`${folder} holds fewer than two sessions of ${FAMILY}`)
  console.log(report(sessions, leftOutTurns(sessions)))
  if (values.write === true) write(sessions)
  return 0
})

function report(
  sessions: readonly RecordedSession[],
  turns: readonly (readonly PredictedGrowth[])[],
): string {
  const rows = sessions.map(({ name, model }, index) =>
    rowFor(name, entryOf(model)?.id ?? model, measurePredictionError(turns[index] ?? [])),
  )
  const pooled = rowFor('all', '', measurePredictionError(turns.flat()))
  return table(['session', 'model', 'turns', 'excluded', 'median', 'bias'], [...rows, pooled])
}

function rowFor(name: string, model: string, error: EstimatorError): readonly string[] {
  const excluded = error.excluded.map(({ reason, count }) => `${count} ${reason}`).join(', ')
  const bias = `${(100 * error.bias).toFixed(1)}%`
  return [name, model, String(error.turns), excluded, String(error.medianAbsError), bias]
}

function write(sessions: readonly RecordedSession[]): void {
  const rows = rowsOfEach(sessions).flat()
  const models = [...new Set(sessions.map(({ model }) => entryOf(model)?.id ?? model))].toSorted()
  const asOf = new Date().toISOString().slice(0, 10)
  const provenance = { sessions: sessions.length, turns: rows.length, models, asOf }
  writeFileSync(TARGET, replaceConstants(readFileSync(TARGET, 'utf8'), fitConstants(rows), provenance))
  execFileSync('biome', ['format', '--write', TARGET], { stdio: 'ignore' })
  console.log(`written: ${rows.length} turns of ${sessions.length} sessions`)
}
