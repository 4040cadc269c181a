/** What making room needs of the host, beyond what a turn does. Without it a session only grows. */
import type { Carrier } from '../../carry/carrier.ts'
import type { RegisterRules } from '../../clear/register-rules.ts'
import type { Retrieval } from '../../clear/stub.ts'
import type { Estimator } from '../../measure/estimate.ts'
import type { ScaledPolicy } from '../../policy/scale.ts'
import type { Summariser } from '../../summarize/summariser.ts'
import type { Deadlines } from '../deadlines.ts'
import type { BlobStore, Model } from '../ports.ts'
import type { Cleanup } from './cleanups.ts'
import type { CompactHooks } from './hooks.ts'
import type { WriteSummary } from './written-summary.ts'

export interface Room {
  /** Of the model that is asked. Made once: another object means that all is counted anew. */
  readonly estimator: Estimator
  /** The policy seen through the model's window. */
  readonly scaled: ScaledPolicy
  readonly rules: RegisterRules
  readonly deadlines: Deadlines
  /** Where texts that left the view can be found by the model. */
  readonly retrieval: Retrieval
  /** Where large results go on arrival, and where their text is read again; without it they stay whole. */
  readonly blobs?: BlobStore
  readonly carriers?: readonly Carrier[]
  readonly hooks?: CompactHooks
  readonly cleanups?: readonly Cleanup[]
  /** Nobody is watching: work goes on by itself. */
  readonly isAutonomous?: boolean
  /** The model for summaries on a call of their own, where it is another than the conversation's. */
  readonly summariser?: OtherSummariser
  /** Writes summaries in another way than by the chain of asking. */
  readonly writeSummary?: WriteSummary
}

export interface OtherSummariser {
  readonly port: Model
  readonly summariser: Summariser
}
