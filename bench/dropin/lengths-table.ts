/** The same client with tasks of several lengths, because a rewrite of the context costs first, and pays for itself later. */
import type { Pair } from '../clients/clients-table.ts'

export function formatLengths(pairs: readonly Pair[]): string {
  const rows = pairs.map(({ direct, managed, steps }) => [
    String(steps),
    `$${direct.cost.toFixed(3)}${direct.error === null ? '' : ` (${direct.steps} steps)`}`,
    `$${managed.cost.toFixed(3)}`,
    direct.error === null ? formatChange(managed.cost / direct.cost - 1) : 'direct failed',
    String(managed.door.clearings),
    String(managed.door.compactions),
  ])
  const head = ['steps', 'direct', 'Tidemark', 'change', 'clearings', 'compactions']
  return [head, head.map(() => '---:'), ...rows].map((row) => `| ${row.join(' | ')} |`).join('\n')
}

function formatChange(change: number): string {
  return `${change < 0 ? '−' : '+'}${(Math.abs(change) * 100).toFixed(1)} %`
}
