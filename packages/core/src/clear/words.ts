/** Figures in the sentences of proposals. */

/** 12,345 */
export function counted(count: number): string {
  return String(Math.round(count)).replace(/\B(?=(\d{3})+$)/g, ',')
}

export function plural(count: number, noun: string): string {
  return `${counted(count)} ${noun}${count === 1 ? '' : 's'}`
}

export function minutes(ms: number): string {
  return plural(Math.floor(ms / 60_000), 'minute')
}
