/**
 * `npm run bench:dropin [-- --drawn N] [--json] [--write]`: clients with habits drawn at random, and one with tasks of
 * several lengths, on the simulator, direct and with Tidemark. Exits 1 if Tidemark made anything worse. Nothing is begun
 * after four minutes, and what is left out is named. `--write` takes as long as it takes, and puts the tables into
 * docs/drop-in.md. `--long [--json] [--write]`: instead, runs past the window, also with the provider's compaction and
 * with a summary of the client's own. Real clients: `npm run clients`.
 */
import { parseArgs } from 'node:util'
import { runScript, WrongUse } from '../../scripts/wrong-use.ts'
import { anthropicClients } from '../clients/agents/anthropic-sdk.ts'
import { findHarm, type Pair } from '../clients/clients-table.ts'
import { runBoth } from '../clients/run-clients.ts'
import { writeTables } from '../harness/written-tables.ts'
import { type DrawnPair, formatHabits, runDrawnPair } from './drawn-clients-table.ts'
import { formatLengths } from './lengths-table.ts'
import { findLongHarm, formatLongRuns, runLongLengths } from './long-runs-table.ts'

/** The window, and one in which every task fits: the final answer there is the one to be expected. */
const [WINDOW, ROOMY] = [200_000, 1_000_000]

/** Numbers of steps for a client that caches by itself: up to where direct no longer fits the window. */
const LENGTHS = Array.from({ length: 15 }, (_, index) => 10 * (index + 1))

/** Time after which nothing more is begun, so that a run without arguments ends within five minutes. */
const MAX_START_MS = 4 * 60_000

/** Clients that are drawn; with `--write` all of them. */
const [FEW_HOSTS, ALL_HOSTS] = [60, 450]

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      drawn: { type: 'string' },
      json: { type: 'boolean' },
      write: { type: 'boolean' },
      long: { type: 'boolean' },
    },
  })
  if (values.long) return runLong(values)
  const budget = createBudget(values.write === true ? Number.POSITIVE_INFINITY : MAX_START_MS)
  // First, since they are what a run cut short by a busy machine must have.
  const hosts = values.drawn === undefined ? null : readCount('--drawn', values.drawn)
  const drawn = await runDrawnPairs(hosts ?? (values.write === true ? ALL_HOSTS : FEW_HOSTS), budget)
  const lengths = await runLengths(budget)
  const harm = [
    ...lengths.flatMap((pair) => findHarm(pair).map((text) => `${pair.steps} steps: ${text}`)),
    ...drawn.flatMap(({ seed, harm }) => harm.map((text) => `drawn host ${seed}: ${text}`)),
  ]
  const tables = formatTables(lengths, drawn)
  console.log(values.json ? JSON.stringify({ ok: harm.length === 0, harm, lengths, drawn }, null, 2) : tables)
  if (budget.skipped.length > 0)
    console.error(`bench:dropin: left out after four minutes: ${budget.skipped.join(', ')}`)
  for (const line of harm) console.error(`bench:dropin: ${line}`)
  if (values.write) await writeTables('bench:dropin', tables)
  return harm.length === 0 ? 0 : 1
}

async function runLong(options: { readonly json?: boolean; readonly write?: boolean }): Promise<number> {
  const lengths = await runLongLengths((line) => console.error(`bench:dropin: ${line}`))
  const harm = lengths.flatMap(findLongHarm)
  const table = formatLongRuns(lengths)
  console.log(options.json ? JSON.stringify({ ok: harm.length === 0, harm, lengths }, null, 2) : table)
  for (const line of harm) console.error(`bench:dropin: ${line}`)
  if (options.write) await writeTables('bench:dropin --long', table)
  return harm.length === 0 ? 0 : 1
}

interface Budget {
  /** Returns true if there is time for one more part; else its name is kept. */
  readonly begin: (part: string) => boolean
  readonly skipped: readonly string[]
}

function createBudget(ms: number): Budget {
  const [start, skipped] = [Date.now(), [] as string[]]
  const begin = (part: string): boolean => {
    const isInTime = Date.now() - start < ms
    if (!isInTime) skipped.push(part)
    return isInTime
  }
  return { begin, skipped }
}

async function runDrawnPairs(count: number, budget: Budget): Promise<readonly DrawnPair[]> {
  const drawn: DrawnPair[] = []
  for (let seed = 1; seed <= count; seed += 1) {
    if (!budget.begin(`drawn hosts from ${seed} on`)) break
    drawn.push(await runDrawnPair(seed))
  }
  return drawn
}

/** Runs the client that sets cache markers with several lengths. */
async function runLengths(budget: Budget): Promise<readonly Pair[]> {
  const client = anthropicClients.find(({ caches }) => caches)
  if (client === undefined) return []
  const pairs: Pair[] = []
  for (const steps of LENGTHS) {
    if (!budget.begin(`${steps} steps`)) continue
    const settings = { window: WINDOW, steps, isLive: false }
    const runs = await runBoth(client, settings)
    const roomy = runs.direct.error === null ? runs : await runBoth(client, { ...settings, window: ROOMY })
    pairs.push({ ...runs, caches: client.caches, expectedAnswer: roomy.direct.answer, steps })
  }
  return pairs
}

function formatTables(lengths: readonly Pair[], drawn: readonly DrawnPair[]): string {
  const client = lengths[0]?.direct.client
  const title = `${client}, window of ${WINDOW.toLocaleString('en')} tokens, by the number of steps:`
  return `${title}\n\n${formatLengths(lengths)}\n\n${formatHabits(drawn)}`
}

function readCount(option: string, text: string): number {
  const count = Number(text)
  if (Number.isInteger(count) && count > 0) return count
  throw new WrongUse(`${option}: expected whole numbers above 0, got ${text}`)
}

await runScript('bench:dropin', main)
