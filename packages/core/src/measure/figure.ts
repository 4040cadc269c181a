/** A figure of a usage as it is counted: a log may hold anything where a number belongs. */

/** 0 for what no counter could show: neither endless figures nor sums of them may end in a price. */
export function countOf(value: unknown): number {
  return typeof value === 'number' && value > 0 && value <= Number.MAX_SAFE_INTEGER ? value : 0
}
