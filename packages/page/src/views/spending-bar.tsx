/** Where the money went, as one bar with its parts named below it. */
import { formatDollars, formatWholePercent } from '@tidemark/terminal/render/format-numbers'
import type { SpendingPart } from '../chart/spending-parts.ts'

interface SpendingBarProps {
  readonly parts: readonly SpendingPart[]
  /** Addresses at which parts are shown in detail. */
  readonly addresses?: Readonly<Partial<Record<SpendingPart['key'], string>>>
}

export function SpendingBar({ parts, addresses = {} }: SpendingBarProps) {
  if (parts.length === 0) return null
  let start = 0
  const placed = parts.map((part) => {
    const x = start
    start += part.share
    return { ...part, x }
  })
  return (
    <section class="spending" aria-label="Where the money went">
      <svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
        {placed.map(({ key, x, share }) => (
          <rect key={key} class={`part-${key}`} x={100 * x} width={100 * share} height="8" />
        ))}
      </svg>
      <ul class="legend">
        {parts.map(({ key, label, about, usd, share }) => (
          <li key={key} title={about}>
            <i class={`swatch part-${key}`} />
            <span>
              {addresses[key] === undefined ? label : <a href={addresses[key]}>{label}</a>}{' '}
              <b>{formatDollars(usd)}</b> <small>{formatWholePercent(share)}</small>
            </span>
          </li>
        ))}
      </ul>
    </section>
  )
}
