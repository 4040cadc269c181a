/** How the condition of a turn is written. */
import { checked, count, fieldsOf, flag, listOf, type Reader, report, text } from '../fields.ts'
import type { Condition, Wanted, WantedResult, WantedTurn } from './condition.ts'

const readWanted: Reader<Wanted> = (value, place) => {
  const read = text(value, place)
  const [, source, flags] = /^\/(.+)\/([a-z]*)$/s.exec(read ?? '') ?? []
  if (source === undefined) return read
  try {
    return new RegExp(source, flags)
  } catch (error) {
    return report(place, `expected a pattern between slashes: ${error instanceof Error ? error.message : ''}`)
  }
}

const wantedResult = fieldsOf<WantedResult>({ tool: text, contains: readWanted, error: flag })

/** The name of a tool is short for `{tool: …}`. */
const readResult: Reader<WantedResult> = (value, place) =>
  typeof value === 'string' ? { tool: value } : wantedResult(value, place)

const readTurn: Reader<WantedTurn> = (value, place) => {
  const [, word, number] = typeof value === 'string' ? (/^(every|from) ([1-9]\d*)$/.exec(value) ?? []) : []
  if (word !== undefined) return word === 'every' ? { every: Number(number) } : { from: Number(number) }
  if (Array.isArray(value)) return { in: listOf(count(1))(value, place) ?? [] }
  const single = checked('a turn such as 3, [3, 5], "every 4" or "from 10"', (each) =>
    typeof each === 'number' && Number.isInteger(each) && each >= 1 ? each : null,
  )(value, place)
  return single === undefined ? undefined : { in: [single] }
}

export const readCondition: Reader<Condition> = fieldsOf<Condition>({
  says: readWanted,
  result: readResult,
  turn: readTurn,
  summary: flag,
  model: readWanted,
})
