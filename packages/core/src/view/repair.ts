/** What flattening had to mend so that a provider would take the request. Told, never silent. */
export type RepairKind =
  | 'missing-result' // a call without answer got one that says so
  | 'late-result' // an answer that came after the conversation had moved on
  | 'duplicate-result'
  | 'orphan-result' // an answer to a call that is not there
  | 'duplicate-call' // a call id that was used before
  | 'open-server-call'
  | 'orphan-server-result'
  | 'blank-text'
  | 'silent-tail' // a response at the end that says nothing
  | 'no-first-prompt' // the conversation began with the model

export interface Repair {
  readonly kind: RepairKind
  /** uuid of the record concerned. */
  readonly origin: string
  /** The tool call, where there is one. */
  readonly id?: string
}
