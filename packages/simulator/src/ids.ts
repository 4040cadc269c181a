/** Ids that look like the provider's and are the same in every run with the same seed. */
import { digest } from './digest.ts'

export interface Ids {
  next(prefix: string): string
}

export function seededIds(seed: string): Ids {
  const counts = new Map<string, number>()
  return {
    next(prefix) {
      const count = (counts.get(prefix) ?? 0) + 1
      counts.set(prefix, count)
      const text = digest(`${seed}/${prefix}/${count}`).replaceAll('-', 'A').replaceAll('_', 'B')
      return `${prefix}_01${text}`
    },
  }
}

/** Numbers in [0, 1): mulberry32 over a seed made of text. */
export function seededRandom(seed: string): () => number {
  let state = Number.parseInt(Buffer.from(digest(seed)).toString('hex').slice(0, 8), 16)
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
