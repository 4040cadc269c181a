/** What was wrong with a log: in its lines, in the order of its records, in what its boundaries name. */
import { type Damage, emptySession, reduce, viewOf } from '@tidemark/core'
import type { ReadRecord } from '@tidemark/wire'
import type { ReadLog } from '../reading/read-log.ts'
import type { DamagedPlace } from './report.ts'

/** In the order of lines; the files of side agents come after the session's own. */
export function damagedPlaces({ records, damage, agents }: ReadLog): readonly DamagedPlace[] {
  const own = [...damage, ...structuralDamage(records)].sort((one, other) => one.line - other.line)
  const theirs = agents.flatMap(({ path, damage: found }) =>
    found.map((item) => ({ ...told(item), file: path })),
  )
  return [...own.map(told), ...theirs]
}

/** So many are enough to know a log by. */
const MOST_FOUND = 1_000

function structuralDamage(records: readonly ReadRecord[]): readonly Damage[] {
  let session = emptySession()
  for (const { record, line } of records) {
    session = reduce(session, record, line)
    if (session.damage.length < MOST_FOUND) continue
    const why = 'what comes behind this was not looked at for missing parents and repeated uuids'
    return [...session.damage, { kind: 'missing-parent', line, why }]
  }
  return [...session.damage, ...viewOf(session).damage]
}

function told({ kind, line, why }: Damage): DamagedPlace {
  return { kind, line, why }
}

/** Why the log, or that of one of its agents, could not be read to its end; null where it could. */
export function brokenOffAt({ fault, agents }: ReadLog): string | null {
  const broken = agents.find((agent) => typeof agent.fault === 'string')
  return fault ?? (broken === undefined ? null : `${broken.path}: ${broken.fault}`)
}
