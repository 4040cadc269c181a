/**
 * `npm run bench:dropin [-- --only NAME] [--steps N] [--windows 200000,60000] [--drawn N] [--json] [--write]`: real clients
 * on the simulator, and clients with habits drawn at random, direct and with Tidemark. Exits 1 if Tidemark made anything
 * worse. Nothing is begun after four minutes, and what is left out is named. `--write` takes as long as it takes, and puts
 * the tables into docs/drop-in.md. `--long [--json] [--write]`: instead, runs past the window, also with the provider's
 * compaction and with a summary of the client's own.
 */
import { readFile, writeFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { runScript, WrongUse } from '../../scripts/wrong-use.ts'
import { installPackages } from '../harness/installed-packages.ts'
import type { Client } from './client.ts'
import { type DrawnPair, formatHabits, runDrawnPair } from './drawn-clients-table.ts'
import { findLongHarm, formatLongRuns, runLongLengths } from './long-runs-table.ts'
import type { ClientRun } from './run-client.ts'
import { findHarm, formatDelays, formatLengths, formatPairs, type Pair } from './tables.ts'

const RESULT_TOKENS = 2_000

/** A window in which every task fits: the final answer there is the one to be expected. */
const ROOMY = 1_000_000

/** Numbers of steps for a client that caches by itself, in the largest window: up to where direct no longer fits it. */
const LENGTHS = Array.from({ length: 15 }, (_, index) => 10 * (index + 1))

/** Time after which nothing more is begun, so that a run without arguments ends within five minutes. */
const MAX_START_MS = 4 * 60_000

/** Clients that are drawn; with `--write` all of them. */
const [FEW_HOSTS, ALL_HOSTS] = [60, 450]

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      only: { type: 'string', default: '' },
      steps: { type: 'string', default: '80' },
      windows: { type: 'string', default: '200000,60000' },
      drawn: { type: 'string' },
      json: { type: 'boolean' },
      write: { type: 'boolean' },
      long: { type: 'boolean' },
    },
  })
  if (values.long) return runLong(values)
  const budget = createBudget(values.write === true ? Number.POSITIVE_INFINITY : MAX_START_MS)
  const steps = readCount('--steps', values.steps)
  const windows = values.windows.split(',').map((text) => readCount('--windows', text))
  installPackages('bench/dropin', (line) => console.error(`bench:dropin: ${line}`))
  const clients = (await loadClients()).filter(({ name }) => name.includes(values.only))
  if (clients.length === 0) throw new WrongUse(`--only: no client has ${values.only} in its name`)
  // First, since they are what a run cut short by a busy machine must have; and they take the least time.
  const hosts = values.drawn === undefined ? null : readCount('--drawn', values.drawn)
  const drawn = await runDrawnPairs(hosts ?? (values.write === true ? ALL_HOSTS : FEW_HOSTS), budget)
  const pairs: Pair[] = []
  for (const client of clients)
    for (const window of windows)
      if (budget.begin(`${client.name}, window ${window}`)) pairs.push(await runPair(client, window, steps))
  const lengths = await runLengths(clients, Math.max(...windows), budget)
  const harm = [
    ...[...pairs, ...lengths].flatMap((pair) =>
      findHarm(pair).map(
        (text) => `${pair.direct.client}, window ${pair.direct.window}, ${pair.steps} steps: ${text}`,
      ),
    ),
    ...drawn.flatMap(({ seed, harm }) => harm.map((text) => `drawn host ${seed}: ${text}`)),
  ]
  const tables = formatTables(pairs, lengths, drawn)
  console.log(
    values.json ? JSON.stringify({ ok: harm.length === 0, harm, pairs, lengths, drawn }, null, 2) : tables,
  )
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

/** Loads the clients: only now are their packages sure to be installed. */
async function loadClients(): Promise<readonly Client[]> {
  const lists = await Promise.all([
    import('./clients/anthropic-sdk.ts').then((module) => module.anthropicClients),
    import('./clients/ai-sdk.ts').then((module) => module.aiSdkClients),
    import('./clients/langchain.ts').then((module) => module.langchainClients),
    import('./clients/mastra.ts').then((module) => module.mastraClients),
    import('./clients/claude-code.ts').then((module) => module.claudeCodeClients),
  ])
  return lists.flat()
}

async function runPair(client: Client, window: number, steps: number): Promise<Pair> {
  const { runClient } = await import('./run-client.ts')
  const settings = { window, steps, coder: { resultTokens: RESULT_TOKENS } }
  console.error(`bench:dropin: ${client.name}, window ${window}`)
  const direct: ClientRun = await runClient(client, { ...settings, isManaged: false })
  const managed: ClientRun = await runClient(client, { ...settings, isManaged: true })
  const expectedAnswer =
    direct.answer ?? (await runClient(client, { ...settings, window: ROOMY, isManaged: false })).answer
  return { direct, managed, caches: client.caches, expectedAnswer, steps }
}

/** Runs the client that sets cache markers in this process, if it is among those chosen, with several lengths. */
async function runLengths(
  clients: readonly Client[],
  window: number,
  budget: Budget,
): Promise<readonly Pair[]> {
  const client = clients.find(({ caches, door }) => caches && door === 'fetch')
  const pairs: Pair[] = []
  if (client !== undefined)
    for (const steps of LENGTHS)
      if (budget.begin(`${steps} steps`)) pairs.push(await runPair(client, window, steps))
  return pairs
}

function formatTables(pairs: readonly Pair[], lengths: readonly Pair[], drawn: readonly DrawnPair[]): string {
  const sorted = pairs.toSorted((one, other) => other.direct.window - one.direct.window)
  const delays = formatDelays(pairs.flatMap(({ direct, managed }) => [direct, managed]))
  const ends =
    lengths.length === 0
      ? ''
      : `\n\n${lengths[0]?.direct.client}, window of ${lengths[0]?.direct.window.toLocaleString('en')} tokens, by the number of steps:\n\n${formatLengths(lengths)}`
  const time = `Time that the way itself added to a request:\n\n${delays}`
  return `${formatPairs(sorted)}${ends}\n\n${time}\n\n${formatHabits(drawn)}`
}

const PAGE = new URL('../../docs/drop-in.md', import.meta.url)

/** Replaces what stands between the two comments of `name` on the page. */
async function writeTables(name: string, tables: string): Promise<void> {
  const [begin, end] = [`<!-- ${name} -->`, `<!-- end of ${name} -->`]
  const page = await readFile(PAGE, 'utf8')
  const [before, after] = [page.split(begin)[0], page.split(end)[1]]
  if (before === undefined || after === undefined) throw new Error(`docs/drop-in.md has no ${begin} … ${end}`)
  await writeFile(PAGE, `${before}${begin}\n${tables}\n${end}${after}`)
}

function readCount(option: string, text: string): number {
  const count = Number(text)
  if (Number.isInteger(count) && count > 0) return count
  throw new WrongUse(`${option}: expected whole numbers above 0, got ${text}`)
}

await runScript('bench:dropin', main)
