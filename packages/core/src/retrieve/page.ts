/** What the history tool reads from, and the pages it gives. */
import type { Block } from '../conversation/block.ts'
import type { Session } from '../conversation/session.ts'
import type { HistoryPolicy } from '../policy/groups/history-policy.ts'
import type { Measure } from './fit-text.ts'
import type { BlobReader } from './restore.ts'

export interface HistorySource {
  readonly session: Session
  /** Null where nothing was ever put aside. */
  readonly blobs: BlobReader | null
  readonly policy: HistoryPolicy
  /** Tokens of a page: `budgets.historyPage`. */
  readonly pageTokens: number
  readonly measure: Measure
}

/** One page: what it is, its text, and where the next one begins. */
export interface Page {
  readonly heading: string
  readonly body: string
  readonly next: number | null
  readonly media?: readonly Block[]
}
