/** What a turn needs of its host: the ports, the rules in force, the prefix it would have, and its tools. */

import type { BreakEvent } from '../breaks/break-event.ts'
import type { Redact } from '../breaks/diff-text.ts'
import type { Block, ToolUseBlock } from '../conversation/block.ts'
import type { PriceList } from '../measure/call-price.ts'
import type { Policy } from '../policy/policy.ts'
import type { Profile } from '../policy/profile.ts'
import type { Switches } from '../policy/switches.ts'
import type { Present } from '../prompt/epoch.ts'
import type { PlacedSection } from '../prompt/section.ts'
import type { Entitlement } from '../prompt/ttl.ts'
import type { Clock, Ids, Journal, Model, Signal } from './ports.ts'
import type { Room } from './rewrite/room.ts'
import type { SessionState } from './session-state.ts'

export interface TurnHost {
  readonly journal: Journal
  readonly model: Model
  readonly clock: Clock
  readonly ids: Ids
  readonly policy: Policy
  /** Of the model that `offered` names. */
  readonly profile: Profile
  readonly switches?: Switches
  /** Who asks: `repl_main_thread`, `sdk`, `agent:review` … */
  readonly source: string
  /** A person answers. */
  readonly isInteractive: boolean
  readonly entitlement?: Entitlement
  readonly isBedrock?: boolean
  /** What models cost: the one that is asked, and those that the log names. */
  readonly pricesOf: PriceList
  readonly sections: readonly PlacedSection[]
  /** Tools, model and parameters as they should be now. Asked before every request. */
  readonly offered: () => Offered
  /** Tools that come late where the provider cannot add any: announced unless `define`, which breaks the cache. */
  readonly lateTools?: 'announce' | 'define'
  /** The call whose result would be cleared first, as things are now. */
  readonly firstClearable?: (state: SessionState) => string | null
  readonly runTool: RunTool
  /** What making room takes; without it a session only grows. */
  readonly room?: Room
  /** Calls to the model after which a turn halts, to be taken up again or not; 1,000 unless told. */
  readonly maxCalls?: number
  /** Facts that are not sent and may tell why a cache is lost: overage, mode, strategy. */
  readonly circumstances?: () => Readonly<Record<string, string>>
  /** Takes secrets out of what is told of a break; the engine's own rules unless given. */
  readonly redact?: Redact
  /** Keeps what changed where the cache broke, as text for people; asked only where policy wants it. */
  readonly keepDiff?: KeepDiff
}

export type KeepDiff = (diff: string, event: BreakEvent) => void | Promise<void>

export type Offered = Pick<Present, 'tools' | 'model' | 'parameters' | 'isUserTool'>

/** What a tool gave back; `is_error` tells the model that it failed. */
export interface ToolAnswer {
  readonly content: string | readonly Block[]
  readonly is_error?: boolean
}

/**
 * Runs one call. Those of a response run side by side, and the turn waits for all of them: one that can take long
 * watches the signal. What it throws is told to the model as the failure of that call.
 */
export type RunTool = (call: ToolUseBlock, signal?: Signal) => ToolAnswer | Promise<ToolAnswer>
