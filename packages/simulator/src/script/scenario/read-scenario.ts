/** How a scenario is written: the fields of its document. */
import { isObject } from '../../api.ts'
import { checked, fieldsOf, flag, inside, listOf, mapOf, type Reader, report, text } from '../fields.ts'
import type { Scenario } from '../scenario.ts'
import { readTimes, turnReader } from './read-turn.ts'
import { KNOWN_NAMES } from './template.ts'

/** A document as parsed from JSON or YAML. `name` stands for it in errors. */
export function scenarioReader(name: string): Reader<Scenario> {
  return (value, place) => {
    const variables = isObject(value) && isObject(value.variables) ? Object.keys(value.variables) : []
    const turn = turnReader(new Set([...KNOWN_NAMES, ...variables]))
    const read = fieldsOf<WrittenScenario>({
      name: text,
      variables: mapOf(variable),
      repeat: readTimes,
      summaries: flag,
      turns: listOf(turn),
      otherwise: turn,
    })(value, place)
    if (read === undefined) return undefined
    if (read.turns === undefined && isObject(value) && value.turns === undefined)
      return report(inside(place, 'turns'), 'is needed: a list of turns')
    return { name, turns: [], ...read }
  }
}

type WrittenScenario = { [K in keyof Required<Scenario>]: Scenario[K] }

const variable: Reader<string> = checked('text or a number', (value) =>
  typeof value === 'string' || typeof value === 'number' ? String(value) : null,
)
