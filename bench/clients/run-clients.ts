/**
 * `npm run clients [-- --only NAME] [--steps N] [--windows 60000,200000] [--codex] [--json] [--write]`: installs real
 * clients of Anthropic's and OpenAI's APIs and runs each on the simulator, direct and with Tidemark, in a window in which
 * its task does not fit and in one in which it does. Exits 1 if Tidemark made anything worse.
 */
import { parseArgs } from 'node:util'
import { runScript, WrongUse } from '../../scripts/wrong-use.ts'
import { writeTables } from '../harness/written-tables.ts'
import type { Client } from './client.ts'
import { loadClients } from './client-list.ts'
import { type ClientPairs, findClientHarm, formatClients, type Pair } from './clients-table.ts'
import { runClient } from './run-client.ts'

const RESULT_TOKENS = 2_000

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      only: { type: 'string', default: '' },
      steps: { type: 'string', default: '80' },
      windows: { type: 'string', default: '60000,200000' },
      codex: { type: 'boolean', default: false },
      json: { type: 'boolean' },
      write: { type: 'boolean' },
    },
  })
  const steps = readCount('--steps', values.steps)
  const [small, large] = values.windows.split(',').map((text) => readCount('--windows', text))
  if (small === undefined || large === undefined) throw new WrongUse('--windows: expected two numbers')
  const clients = (await loadClients(values.codex, print)).filter(({ name }) => name.includes(values.only))
  if (clients.length === 0) throw new WrongUse(`--only: no client has ${values.only} in its name`)
  const all: ClientPairs[] = []
  for (const client of clients) {
    print(client.name)
    all.push(await runInBothWindows(client, { small, large, steps }))
  }
  const harm = all.flatMap(findClientHarm)
  const table = formatClients(all)
  console.log(values.json ? JSON.stringify({ ok: harm.length === 0, harm, clients: all }, null, 2) : table)
  for (const line of harm) print(line)
  if (values.write) await writeTables('clients', table)
  return harm.length === 0 ? 0 : 1
}

function print(line: string): void {
  console.error(`clients: ${line}`)
}

/** Streams come live in the small window; in the large one they come at their end, as through some proxies, and are timed. */
async function runInBothWindows(
  client: Client,
  { small, large, steps }: { readonly small: number; readonly large: number; readonly steps: number },
): Promise<ClientPairs> {
  const [narrow, wide] = [
    await runBoth(client, { window: small, steps, isLive: true }),
    await runBoth(client, { window: large, steps, isLive: false }),
  ]
  const expectedAnswer = wide.direct.answer
  const toPair = (runs: Pick<Pair, 'direct' | 'managed'>): Pair => ({
    ...runs,
    caches: client.caches,
    expectedAnswer,
    steps,
  })
  const { name, isStream = false } = client
  return { client: { name, isStream }, small: toPair(narrow), large: toPair(wide) }
}

/** Runs a client direct and with Tidemark. */
export async function runBoth(
  client: Client,
  given: { readonly window: number; readonly steps: number; readonly isLive: boolean },
): Promise<Pick<Pair, 'direct' | 'managed'>> {
  const settings = { ...given, coder: { resultTokens: RESULT_TOKENS } }
  const direct = await runClient(client, { ...settings, isManaged: false })
  const managed = await runClient(client, { ...settings, isManaged: true })
  return { direct, managed }
}

function readCount(option: string, text: string): number {
  const count = Number(text)
  if (Number.isInteger(count) && count > 0) return count
  throw new WrongUse(`${option}: expected whole numbers above 0, got ${text}`)
}

if (import.meta.main) await runScript('clients', main)
