/** What was wrong with a log, where, and what was done about it. Damage is reported, never fatal and never silent. */
export type DamageKind =
  | 'torn-line' // the last line was cut off
  | 'bad-json' // a line that is not JSON
  | 'bad-shape' // JSON, but not a record of the kind it says it is
  | 'incomplete-batch' // some records of a batch are missing: none of it counts
  | 'out-of-order' // a position in the log that does not follow the one before
  | 'missing-parent'
  | 'duplicate-uuid'
  | 'cyclic-parent'
  | 'missing-preserved' // a boundary names a kept record that is not in the log
  | 'missing-anchor' // kept records were to stand behind a record that is not there
  | 'boundary-without-summary'
  | 'bad-undo' // an undo of something that is not the newest standing act

export interface Damage {
  readonly kind: DamageKind
  /** Line in the file, 1 for the first; 0 where only the session as a whole can be named. */
  readonly line: number
  readonly why: string
  /** The record concerned, where it is one. */
  readonly uuid?: string
}
