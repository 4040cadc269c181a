/** How a turn of a scenario is written. */
import { isObject, type JsonObject } from '../../api.ts'
import type { Fault } from '../../faults/fault.ts'
import { duration, readFault } from '../../faults/read-fault.ts'
import {
  checked,
  fieldsOf,
  inside,
  jsonObject,
  listOf,
  oneOf,
  type Place,
  type Reader,
  report,
  text,
} from '../fields.ts'
import { namedScript } from '../named-script.ts'
import type { ScenarioTurn } from '../scenario.ts'
import type { Delays, ReplyBlock, Script, StopReason } from '../script.ts'
import type { Condition } from './condition.ts'
import { blockIn, callIn, textIn, thinkingIn } from './read-block.ts'
import { readCondition } from './read-condition.ts'

export const readTimes: Reader<number> = checked('a whole number of at least 1, or "forever"', (value) => {
  if (value === 'forever') return Number.POSITIVE_INFINITY
  return typeof value === 'number' && Number.isInteger(value) && value >= 1 ? value : null
})

interface WrittenTurn {
  readonly when?: Condition
  readonly times?: number
  readonly thinking?: ReplyBlock
  readonly text?: ReplyBlock
  readonly calls?: readonly ReplyBlock[]
  readonly blocks?: readonly ReplyBlock[]
  readonly script?: Script
  readonly stop?: StopReason
  readonly stopSequence?: string
  readonly stopDetails?: JsonObject
  readonly delays?: Delays
  readonly fault?: Fault
}

/** `names`: what may stand in `{{…}}`. */
export function turnReader(names: ReadonlySet<string>): Reader<ScenarioTurn> {
  const fields = fieldsOf<WrittenTurn>({
    when: readCondition,
    times: readTimes,
    thinking: thinkingIn(names),
    text: textIn(names),
    calls: listOf(callIn(names)),
    blocks: listOf(blockIn(names)),
    script: readScript,
    stop: readStop,
    stopSequence: text,
    stopDetails: jsonObject,
    delays: readDelays,
    fault: readFault,
  })
  return (value, place) => {
    const before = place.problems.length
    const read = fields(value, place)
    return read === undefined || place.problems.length > before ? undefined : turnOf(read, value, place)
  }
}

const SPEAKING = ['text', 'thinking', 'calls', 'blocks', 'script', 'fault']

function turnOf(read: WrittenTurn, value: unknown, place: Place): ScenarioTurn | undefined {
  const { thinking, text: said, calls, blocks, script, stop, ...rest } = read
  const given = SPEAKING.filter((name) => isObject(value) && value[name] !== undefined)
  if (given.length === 0) return report(place, `says nothing; expected one of ${SPEAKING.join(', ')}`)
  const alone = given.find((name) => name === 'blocks' || name === 'script')
  const other = given.find((name) => name !== alone && name !== 'fault')
  if (alone !== undefined && other !== undefined)
    return report(inside(place, other), `cannot stand beside ${alone}, which says all`)
  const says = script ?? blocks ?? [thinking, said, ...(calls ?? [])].filter((block) => block !== undefined)
  return { says, ...(stop === undefined ? {} : { stopReason: stop }), ...rest }
}

const readStop: Reader<StopReason> = oneOf(
  'end_turn',
  'max_tokens',
  'stop_sequence',
  'tool_use',
  'pause_turn',
  'refusal',
  'model_context_window_exceeded',
)

const readDelays: Reader<Delays> = (value, place) => {
  const read = fieldsOf<{ start?: number; block?: number; piece?: number }>({
    start: duration,
    block: duration,
    piece: duration,
  })(value, place)
  if (read === undefined) return undefined
  const { start, block, piece } = read
  return {
    ...(start === undefined ? {} : { startMs: start }),
    ...(block === undefined ? {} : { blockMs: block }),
    ...(piece === undefined ? {} : { pieceMs: piece }),
  }
}

const readScript: Reader<Script> = (value, place) => {
  const name = text(value, place)
  if (name === undefined) return undefined
  const named = namedScript(name)
  return named.ok ? named.script : report(place, named.message)
}
