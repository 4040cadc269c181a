/** What is put aside on arrival, and how it and all that left the view is looked up again. */
import { count, flag, listOf, name } from '../check.ts'
import { type Fields, field } from '../field.ts'

/** Large results of tools go to the blobs; the conversation shows their head and tail. */
export interface SpillPolicy {
  readonly enabled: boolean
  /** Tokens of one text of a result above which it is put aside. */
  readonly thresholdTokens: number
  /** Tokens of its beginning that are shown … */
  readonly headTokens: number
  /** … and of its end: what a command prints last is often the point. */
  readonly tailTokens: number
  /** Bytes of an image, as it would be sent, above which it is put aside. */
  readonly imageBytes: number
  /** Tools whose results are never put aside. */
  readonly exceptTools: readonly string[]
}

/** The tool that reads the conversation's own past. */
export interface HistoryPolicy {
  /** Tokens of one answer; a cursor leads on. */
  readonly pageTokens: number
  /** Matches of one search before its cursor. */
  readonly matches: number
  /** Characters times states of a pattern that one search may step through before its cursor. */
  readonly searchSteps: number
}

export const spillFields: Fields<SpillPolicy> = {
  enabled: field(true, flag()),
  thresholdTokens: field(10_000, count(100)),
  headTokens: field(1_500, count(1)),
  tailTokens: field(1_500, count(1)),
  imageBytes: field(4_000_000, count(1_000)),
  exceptTools: field<readonly string[]>([], listOf(name())),
}

export const historyFields: Fields<HistoryPolicy> = {
  pageTokens: field(4_000, count(200)),
  matches: field(20, count(1, 1_000)),
  searchSteps: field(20_000_000, count(100_000)),
}
