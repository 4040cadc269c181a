/** What is known of a session that makes room: its results, how full it is, and how earlier attempts went. Values. */
import { advanceRegister } from '../../clear/register.ts'
import type { RegisterRules } from '../../clear/register-rules.ts'
import { emptyRegister, type Register } from '../../clear/register-state.ts'
import type { Estimator } from '../../measure/estimate.ts'
import { advanceMeter, emptyMeter, type Meter } from '../../plan/meter.ts'
import type { CompactionOutlook } from '../../plan/optimal-trigger.ts'
import type { View } from '../../view/view.ts'
import { type Breaker, CLOSED } from './breaker.ts'
import { type CallTally, NO_TALLY } from './call-tally.ts'
import { startTracking, type Tracking } from './tracking.ts'

export interface RoomState {
  readonly register: Register
  readonly meter: Meter
  readonly breaker: Breaker
  readonly tracking: Tracking
  /** How its calls came so far. */
  readonly tally: CallTally
  /** What the last compaction of this session left; null before the first. */
  readonly outlook: CompactionOutlook | null
}

const FIRST_TURN = 'start'

/** What it is kept by: another object means that all is taken in anew. */
export interface RoomRules {
  readonly rules: RegisterRules
  readonly estimator: Estimator
}

/** The room of `view`, given that of an earlier state of it under the same rules. */
export function advanceRoom(state: RoomState | null, view: View, room: RoomRules): RoomState {
  const before = state ?? startRoom(room)
  const register = before.register.rules === room.rules ? before.register : emptyRegister(room.rules)
  const meter = before.meter.estimator === room.estimator ? before.meter : emptyMeter(room.estimator)
  return { ...before, register: advanceRegister(register, view), meter: advanceMeter(meter, view) }
}

function startRoom({ rules, estimator }: RoomRules): RoomState {
  return {
    register: emptyRegister(rules),
    meter: emptyMeter(estimator),
    breaker: CLOSED,
    tracking: startTracking(FIRST_TURN),
    tally: NO_TALLY,
    outlook: null,
  }
}
