/**
 * Damage found while a log is read. Neighbouring lines with the same trouble are told as one, and the list
 * has an end: a file of a million broken lines is told in a few.
 */
import type { Damage, DamageKind } from '@tidemark/core'

export interface DamageNotes {
  add(kind: DamageKind, line: number, why: string): void
  readonly list: readonly Damage[]
}

const MAX_NOTES = 1000

interface Run {
  readonly kind: DamageKind
  readonly why: string
  readonly first: number
  last: number
}

export function createDamageNotes(): DamageNotes {
  const runs: Run[] = []
  let untold = 0
  return {
    add(kind, line, why) {
      const open = runs.at(-1)
      if (untold === 0 && open?.kind === kind && open.why === why && line === open.last + 1) open.last = line
      else if (runs.length < MAX_NOTES) runs.push({ kind, why, first: line, last: line })
      else untold += 1
    },
    get list() {
      const told = runs.map(damageOf)
      const last = runs.at(-1)
      if (untold === 0 || last === undefined) return told
      const why = `${untold} more places behind this one are damaged too`
      return [...told, { kind: last.kind, line: last.last, why }]
    },
  }
}

/** Both lists in the order of lines; what stands first in a list stays in front. */
export function inLineOrder(one: readonly Damage[], other: readonly Damage[]): readonly Damage[] {
  if (one.length === 0 || other.length === 0) return one.length === 0 ? other : one
  return [...one, ...other].sort((a, b) => a.line - b.line)
}

function damageOf({ kind, why, first, last }: Run): Damage {
  return { kind, line: first, why: last === first ? why : `lines ${first} to ${last}: ${why}` }
}
