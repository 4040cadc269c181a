/** Whether another policy would have been cheaper: the sentence above the replays of a session. */
import { formatDollars, formatWholePercent } from '@tidemark/terminal/render/format-numbers'
import type { PagePolicyReplay, PageSessionReport } from 'tidemark/report'

export interface NamedPolicyResult extends PagePolicyReplay {
  readonly title: string
}

/**
 * Returns the recorded dollars that replays can be compared with: without cache breaks that no replay repeats, such as those by
 * changed tools, because no policy would have avoided them. Null if a price is unknown.
 */
export function computeComparableCost(
  { costUsd }: Pick<PageSessionReport, 'costUsd'>,
  results: readonly NamedPolicyResult[],
): number | null {
  return costUsd === null ? null : Math.max(0, costUsd - (results[0]?.breaksUsd ?? 0))
}

/** How exact replays are: one that changes nothing differs from the recorded cost by up to this share. */
const ERROR_SHARE = 0.05

/** Returns the cheapest policy that could have made every call, except `nothing`, whose window has no end; undefined if none. */
function findCheapest(results: readonly NamedPolicyResult[]): NamedPolicyResult | undefined {
  const possible = results.filter(({ name, refused }) => name !== 'nothing' && refused === 0)
  return possible.toSorted((one, other) => one.usd - other.usd)[0]
}

/** Returns the policy that would have been cheaper by more than a replay may be wrong; undefined if there is none. */
export function findCheaperPolicy(
  report: Pick<PageSessionReport, 'costUsd'>,
  results: readonly NamedPolicyResult[],
): NamedPolicyResult | undefined {
  const [best, recorded] = [findCheapest(results), computeComparableCost(report, results)]
  return best !== undefined && recorded !== null && best.usd <= recorded * (1 - ERROR_SHARE)
    ? best
    : undefined
}

export function formatPolicyVerdict(
  report: Pick<PageSessionReport, 'costUsd'>,
  results: readonly NamedPolicyResult[],
): string {
  const best = findCheapest(results)
  if (best === undefined) return 'None of these policies could have made every call.'
  const { title, usd, anchors } = best
  const recorded = computeComparableCost(report, results)
  const sight =
    anchors.used === 0
      ? ''
      : ` ${formatWholePercent(anchors.seen / anchors.used)} of edits would still have seen the lines they change.`
  if (recorded === null) return `Cheapest: ${title}, ${formatDollars(usd)}.${sight}`
  const left = (report.costUsd ?? 0) - recorded
  const without =
    left < 0.005 ? '' : ` (recorded, without ${formatDollars(left)} of cache breaks that are not replayed)`
  const paid = `${formatDollars(usd)} instead of ${formatDollars(recorded)}${without}`
  if (usd >= recorded) return `No reason to change: the cheapest of these, ${title}, would have cost ${paid}.`
  const less = `${title} would have cost ${formatWholePercent(1 - usd / recorded)} less: ${paid}.`
  if (usd > recorded * (1 - ERROR_SHARE))
    return `No clear reason to change, since a replay is not that exact. ${less}`
  return `${less}${sight}`
}
