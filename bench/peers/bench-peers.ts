/** `npm run bench:peers [-- --json] [--sizes 100,1000]`: figures, no contest with a bound. Exits 1 where something broke. */
import { parseArgs } from 'node:util'
import { runScript, WrongUse } from '../../scripts/wrong-use.ts'
import { installPackages } from '../harness/installed-packages.ts'
import type { Contender } from './contender.ts'
import { livingContest, type Pair, wholeContest } from './contests.ts'
import { isWell, peersJson, peersTables, type SizeResult } from './tables.ts'
import { tidemarkClearing, tidemarkOpening, tidemarkSession, tidemarkSummary } from './tidemark.ts'

const SIZES = '100,1000,2500'

async function main(): Promise<number> {
  const { values } = parseArgs({ options: { json: { type: 'boolean' }, sizes: { type: 'string' } } })
  const sizes = (values.sizes ?? SIZES).split(',').map(readSize)
  installPackages('bench/peers', (line) => console.error(`bench:peers: ${line}`))
  // Only now are they sure to be there.
  const { peers } = await import('./peers.ts')
  const results: SizeResult[] = []
  for (const steps of sizes) {
    console.error(`${results.length + 1}/${sizes.length} ${steps} steps`)
    const living = await livingContest(steps, tidemarkSession, peers)
    results.push({ steps, living, whole: await wholeContest(steps, pairsOf(peers)) })
  }
  console.log(values.json ? peersJson(results) : peersTables(results))
  return results.every(isWell) ? 0 : 1
}

function pairsOf(peers: readonly Contender[]): readonly Pair[] {
  const ours = [tidemarkOpening, tidemarkClearing, tidemarkSummary]
  const counterpart = ({ kind }: Contender): Contender =>
    kind === 'summary' ? tidemarkSummary : tidemarkClearing
  return [
    ...ours.map((contender) => ({ contender, against: contender })),
    ...peers.map((contender) => ({ contender, against: counterpart(contender) })),
  ]
}

function readSize(text: string): number {
  const size = Number(text)
  if (Number.isInteger(size) && size > 0) return size
  throw new WrongUse(`--sizes: expected whole numbers above 0 with commas between, got ${text}`)
}

await runScript('bench:peers', main)
