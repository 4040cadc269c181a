/** One line about a flag of the chart, with the sign that marks it there. */
import { formatDollars } from '@tidemark/terminal/render/format-numbers'
import { type ChartFlag, FLAG_SIGN_PATHS } from '../chart/chart-flags.ts'
import { toRequestAddress, toSessionAddress } from './routes.ts'

interface FlagLineProps {
  readonly flag: ChartFlag
  /** Id of the session. If given, the line links to the view that explains the flag. */
  readonly id?: string
}

export function FlagLine({ flag, id }: FlagLineProps) {
  return (
    <p class={`flag-${flag.kind}`}>
      <FlagSign kind={flag.kind} /> {flag.title}: {flag.detail}
      {flag.usd === null ? '' : `, ${formatDollars(flag.usd)}`}
      {id === undefined ? null : flag.kind === 'break' ? (
        <a class="more" href={toSessionAddress(id, 'cache')}>
          See all cache breaks
        </a>
      ) : (
        <a class="more" href={toRequestAddress(id, flag.request, 'left')}>
          See what left
        </a>
      )}
    </p>
  )
}

export function FlagSign({ kind }: Pick<ChartFlag, 'kind'>) {
  return (
    <svg class="sign" width="12" height="12" viewBox="-6 -6 12 12" aria-hidden="true">
      <path d={FLAG_SIGN_PATHS[kind]} />
    </svg>
  )
}
