import type { Ids } from '@tidemark/core'

/** `record-1`, `record-2`, … each kind counted by itself. */
export function createCountingIds(): Ids {
  const counts = new Map<string, number>()
  return {
    next(kind) {
      const count = (counts.get(kind) ?? 0) + 1
      counts.set(kind, count)
      return `${kind}-${count}`
    },
  }
}
