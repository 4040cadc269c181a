/** Formats tokens, dollars, shares, counts, times and bytes for display: short, rounded to about three digits. */

/** Formats a number of tokens: 999, 12.4k, 155k, 1.27M. */
export function formatTokens(count: number): string {
  const rounded = Math.round(count)
  if (rounded < 1_000) return String(rounded)
  if (rounded < 99_950) return `${(rounded / 1_000).toFixed(1)}k`
  if (rounded < 999_500) return `${Math.round(rounded / 1_000)}k`
  if (rounded < 99_950_000) return `${(rounded / 1_000_000).toFixed(rounded < 9_995_000 ? 2 : 1)}M`
  return rounded < 999_500_000 ? `${Math.round(rounded / 1_000_000)}M` : `${(rounded / 1e9).toFixed(2)}G`
}

/** Formats a token limit without trailing zeros: 1M instead of 1.00M, but 1.27M. */
export function formatTokenLimit(count: number): string {
  return formatTokens(count).replace(/\.0+(?=[kMG]$)/, '')
}

const CENTS = { minimumFractionDigits: 2, maximumFractionDigits: 2 }

/** Formats an amount of money: $0, <$0.01, $0.42, $12,345. */
export function formatDollars(amount: number): string {
  if (amount < 0) return `-${formatDollars(-amount)}`
  if (amount >= 10_000) return `$${Math.round(amount).toLocaleString('en-US')}`
  if (amount === 0) return '$0'
  return amount < 0.005 ? '<$0.01' : `$${amount.toLocaleString('en-US', CENTS)}`
}

/**
 * Formats a cost. If the total is unknown (null), returns the known part as a lower bound such as `>$0.42`, or `?` if
 * there is no known part.
 */
export function formatCost(total: number | null, priced: number): string {
  if (total !== null) return formatDollars(total)
  return priced >= 0.005 ? `>${formatDollars(priced)}` : '?'
}

/** Formats a share from 0 to 1 with one decimal: 12.3%. */
export function formatPercent(share: number): string {
  return `${(share * 100).toFixed(1)}%`
}

/** Formats a share from 0 to 1 without decimals: 12%; `<1%` if it is small but not 0. */
export function formatWholePercent(share: number): string {
  return share > 0 && share < 0.01 ? '<1%' : `${Math.round(share * 100)}%`
}

/** Formats a whole number with separators: 12,345. */
export function formatInteger(amount: number): string {
  return amount.toLocaleString('en-US')
}

/** Formats a count with its noun: 1 record, 2 records. */
export function formatCount(amount: number, one: string, many = `${one}s`): string {
  return `${formatInteger(amount)} ${amount === 1 ? one : many}`
}

/** Formats milliseconds: 42 s, 37 min, 5 h 56 min, 2 d 4 h. */
export function formatDuration(ms: number): string {
  const seconds = Math.round(ms / 1_000)
  if (seconds < 90) return `${seconds} s`
  const minutes = Math.round(seconds / 60)
  if (minutes < 60) return `${minutes} min`
  const hours = Math.floor(minutes / 60)
  if (hours < 48) return minutes % 60 === 0 ? `${hours} h` : `${hours} h ${minutes % 60} min`
  return `${Math.floor(hours / 24)} d ${hours % 24} h`
}

/** Formats a number of bytes: 512 B, 12 kB, 3.4 MB. */
export function formatBytes(size: number): string {
  if (size < 1_000) return `${size} B`
  if (size < 999_500) return `${Math.round(size / 1_000)} kB`
  return `${(size / 1_000_000).toFixed(1)} MB`
}
