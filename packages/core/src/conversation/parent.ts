/** Finds what a record follows. A parent that is missing or cyclic is damage; the record then follows the one before it. */
import { isCompactBoundary } from './boundary.ts'
import type { Damage } from './damage.ts'
import type { IndexMap } from './index-map.ts'
import type { SessionRecord } from './record.ts'
import { parentOf, placeOf, ROOT, type Tree } from './tree.ts'

export interface FoundParent {
  readonly parent: number
  /** A parent named before it came. */
  readonly awaits: string | null
  readonly damage: readonly Damage[]
}

interface Growing extends Tree {
  readonly tip: number
  readonly awaited: IndexMap
}

export function findParent(
  tree: Growing,
  record: SessionRecord & { readonly uuid: string },
  line: number,
): FoundParent {
  const boundary = isCompactBoundary(record)
  const named = record.parentUuid ?? (boundary ? record.logicalParentUuid : null) ?? null
  const found = named === null ? undefined : placeOf(tree, named)
  if (found !== undefined)
    return { parent: found, awaits: null, damage: cycle(tree, record.uuid, found, line) }
  if (named === null && record.parentUuid === undefined && !boundary) return unlinked(tree, record.uuid, line)
  if (named === null) return { parent: boundary ? tree.tip : ROOT, awaits: null, damage: [] }
  // A boundary may name a record that was not carried over: it then stands behind the line before, undamaged.
  if (boundary) return { parent: tree.tip, awaits: null, damage: [] }
  return {
    parent: tree.tip,
    awaits: named,
    damage: [missing(record.uuid, named, line)],
  }
}

/** Null says that a record follows nothing. Saying nothing is not the same: it then follows the line before. */
function unlinked(tree: Growing, uuid: string, line: number): FoundParent {
  const damage: Damage = {
    kind: 'missing-parent',
    line,
    uuid,
    why: `the record ${uuid} does not say what it follows`,
  }
  return { parent: tree.tip, awaits: null, damage: tree.tip === ROOT ? [] : [damage] }
}

function missing(uuid: string, named: string, line: number): Damage {
  if (uuid === named)
    return { kind: 'cyclic-parent', line, uuid, why: `the record ${uuid} is its own parent` }
  return {
    kind: 'missing-parent',
    line,
    uuid,
    why: `the parent ${named} of ${uuid} is not in the log before it`,
  }
}

function cycle(tree: Growing, uuid: string, parent: number, line: number): readonly Damage[] {
  const waiting = tree.awaited.get(uuid)
  if (waiting === undefined) return []
  for (let at = parent; at >= 0; at = parentOf(tree, at)) {
    if (at === waiting)
      return [{ kind: 'cyclic-parent', line, uuid, why: `${uuid} is among its own forebears` }]
  }
  return []
}
