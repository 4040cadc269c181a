/** Why a call to a model gave no answer, in words that every provider's codec maps its own onto. */
import type { JsonObject } from '../conversation/json.ts'

export type FailureKind =
  | 'overflow' // the prompt does not fit the window
  | 'too-large' // too many bytes, whatever the tokens
  | 'media' // an image or document that the provider will not take: too large, too many, unreadable
  | 'thinking-binding' // thinking sent back where it is no longer valid
  | 'invalid-request'
  | 'auth'
  | 'billing' // no credit, or a spending limit reached: waiting does not help
  | 'permission'
  | 'not-found'
  | 'conflict'
  | 'rate-limit'
  | 'overloaded'
  | 'server'
  | 'timeout'
  | 'network' // no connection, or one that broke before the reply was whole
  | 'bad-reply' // something came back that is no reply
  | 'aborted'
  | 'unknown'

/** How far the prompt was over, as far as the provider said. */
export interface TokenGap {
  readonly actual?: number
  readonly limit?: number
  /** Tokens that have to go; given wherever it was said or follows from the other two. */
  readonly over?: number
}

export interface Failure {
  readonly kind: FailureKind
  /** The very same request may succeed later. A prompt that is too long never does. */
  readonly retryable: boolean
  /** The provider's own words where it said any. */
  readonly message: string
  readonly status?: number
  /** How long the provider asked us to wait. */
  readonly retryAfterMs?: number
  readonly gap?: TokenGap
  /** What the provider calls it: its error type, and the finer code where it has one. */
  readonly errorType?: string
  readonly errorCode?: string
  /** The part of the request that was refused, where the provider named one: `messages.1.content.0`. */
  readonly path?: string
  readonly requestId?: string
  readonly details?: JsonObject
}
