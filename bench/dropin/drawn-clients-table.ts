/** Clients with habits drawn at random, direct and with Tidemark: the worst ratio of the bills for each habit. */
import {
  type ClientHabits,
  drawHabits,
  findAllowedRatio,
  HABITS,
  runDrawnClient,
} from '../../test/drop-in/drawn-clients.ts'

export interface DrawnPair {
  readonly seed: number
  readonly habits: ClientHabits
  /** The bill with Tidemark divided by the direct one; null if the direct run does not end. */
  readonly ratio: number | null
  /** What Tidemark made worse. */
  readonly harm: readonly string[]
}

export async function runDrawnPair(seed: number): Promise<DrawnPair> {
  const habits = drawHabits(seed)
  const direct = await runDrawnClient('direct', habits)
  const managed = await runDrawnClient('managed', habits)
  const isCounted = direct.isComplete
  const ratio = isCounted ? (managed.bills.at(-1) ?? 0) / (direct.bills.at(-1) ?? 1) : null
  const allowed = findAllowedRatio(habits)
  return {
    seed,
    habits,
    ratio,
    harm: [
      ...(isCounted && !managed.isComplete ? [`does not end: ${managed.error ?? 'too many requests'}`] : []),
      ...(isCounted && managed.refused > direct.refused ? [`${managed.refused} requests refused`] : []),
      ...(ratio !== null && ratio > allowed ? [`${ratio.toFixed(3)} of the direct bill`] : []),
      ...new Set(managed.changes),
    ],
  }
}

/** One row for each habit: clients that have it and whose direct run ends, and their worst and median ratio. */
export function formatHabits(pairs: readonly DrawnPair[]): string {
  const counted = pairs.filter(({ ratio }) => ratio !== null)
  const head = `Bill with Tidemark divided by the direct one, ${pairs.length} clients with habits drawn at random, those counted whose direct run ends:`
  const rows = [['any', () => true] as const, ...Object.entries(HABITS)].map(([name, has]) => {
    const ratios = counted
      .filter(({ habits }) => has(habits))
      .map(({ ratio }) => ratio ?? 0)
      .toSorted((one, other) => one - other)
    const median = ratios[Math.floor(ratios.length / 2)]
    return [name, String(ratios.length), formatRatio(ratios.at(-1)), formatRatio(median)]
  })
  const table = [['habit', 'clients', 'worst ratio', 'median'], ['---', '---:', '---:', '---:'], ...rows]
  return `${head}\n\n${table.map((row) => `| ${row.join(' | ')} |`).join('\n')}`
}

function formatRatio(ratio: number | undefined): string {
  return ratio === undefined ? '–' : ratio.toFixed(3)
}
