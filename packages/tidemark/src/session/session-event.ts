/** What a session tells: all that the engine does, and what happens around it. */
import type { Damage, TurnEvent } from '@tidemark/core'
import type { Retry } from './model-choice.ts'

export type SessionEvent =
  | TurnEvent
  /** Something about the settings that a person should know: a switch nobody understands, a window not sure. */
  | { readonly type: 'notice'; readonly message: string }
  /** The log had damage; what could be read counts. */
  | { readonly type: 'log-damaged'; readonly damage: readonly Damage[] }
  /** Another process has written to the session; what it wrote is taken in. */
  | { readonly type: 'caught-up'; readonly from: number; readonly to: number }
  /** The provider or the network failed before anything came: it is tried again after a wait. */
  | ({ readonly type: 'retrying' } & Retry)
  | { readonly type: 'model-switched'; readonly from: string; readonly to: string }
  /** A listener threw. Nothing else was touched by it. */
  | { readonly type: 'listener-failed'; readonly about: string; readonly message: string }

export type SessionEventType = SessionEvent['type']

export type EventOf<Type extends SessionEventType> = Extract<SessionEvent, { readonly type: Type }>
