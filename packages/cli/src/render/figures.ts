/** Figures as people read them: short, aligned, never more exact than they are. */

/** 999, 12.4k, 155k, 1.27M. */
export function tokens(count: number): string {
  const whole = Math.round(count)
  if (whole < 1_000) return String(whole)
  if (whole < 99_950) return `${trimmed(whole / 1_000, 1)}k`
  if (whole < 999_500) return `${Math.round(whole / 1_000)}k`
  if (whole < 99_950_000) return `${trimmed(whole / 1_000_000, whole < 9_995_000 ? 2 : 1)}M`
  return whole < 999_500_000 ? `${Math.round(whole / 1_000_000)}M` : `${trimmed(whole / 1e9, 2)}G`
}

/** 1M and not 1.00M, but 1.27M: for limits, which are round. */
export function limit(count: number): string {
  return tokens(count).replace(/\.0+(?=[kMG]$)/, '')
}

function trimmed(value: number, places: number): string {
  return value.toFixed(places)
}

const CENTS = { minimumFractionDigits: 2, maximumFractionDigits: 2 }

/** Cents, and fractions of a cent where there is nothing else. */
export function dollars(amount: number): string {
  if (amount < 0) return `-${dollars(-amount)}`
  if (amount >= 10_000) return `$${Math.round(amount).toLocaleString('en-US')}`
  if (amount === 0) return '$0'
  return amount < 0.005 ? '<$0.01' : `$${amount.toLocaleString('en-US', CENTS)}`
}

/** Unknown is a question mark; known in part, the least it can be. */
export function cost(total: number | null, priced: number): string {
  if (total !== null) return dollars(total)
  return priced >= 0.005 ? `>${dollars(priced)}` : '?'
}

export function percent(share: number): string {
  return `${(share * 100).toFixed(1)}%`
}

export function wholePercent(share: number): string {
  return share > 0 && share < 0.01 ? '<1%' : `${Math.round(share * 100)}%`
}

/** 12,345 */
export function whole(amount: number): string {
  return amount.toLocaleString('en-US')
}

export function count(amount: number, one: string, many = `${one}s`): string {
  return `${whole(amount)} ${amount === 1 ? one : many}`
}

/** 42 s, 37 min, 5 h 56 min, 2 d 4 h. */
export function duration(ms: number): string {
  const seconds = Math.round(ms / 1_000)
  if (seconds < 90) return `${seconds} s`
  const minutes = Math.round(seconds / 60)
  if (minutes < 60) return `${minutes} min`
  const hours = Math.floor(minutes / 60)
  if (hours < 48) return minutes % 60 === 0 ? `${hours} h` : `${hours} h ${minutes % 60} min`
  return `${Math.floor(hours / 24)} d ${hours % 24} h`
}

export function bytes(size: number): string {
  if (size < 1_000) return `${size} B`
  if (size < 1_000_000) return `${Math.round(size / 1_000)} kB`
  return `${(size / 1_000_000).toFixed(1)} MB`
}
