import type { Symbols } from './symbols.ts'

/** A bar `share` of `width` long, to a part of a cell; at least the shortest for what is not nothing. */
export function bar(share: number, width: number, { bars }: Symbols): string {
  if (!(share > 0) || width < 1) return ''
  const parts = Math.max(1, Math.round(Math.min(1, share) * width * bars.length))
  const rest = parts % bars.length
  const full = (bars.at(-1) ?? '').repeat(Math.floor(parts / bars.length))
  return rest === 0 ? full : `${full}${bars[rest - 1] ?? ''}`
}
