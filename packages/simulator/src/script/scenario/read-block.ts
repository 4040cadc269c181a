/** How the blocks of a turn are written. `names` are those that may stand in `{{…}}`. */
import { isObject, type JsonObject } from '../../api.ts'
import {
  fieldsOf,
  inside,
  isJson,
  jsonObject,
  type Place,
  type Reader,
  report,
  shown,
  text,
} from '../fields.ts'
import type { ReplyBlock } from '../script.ts'
import { unknownNames } from './template.ts'

function templateIn(names: ReadonlySet<string>): Reader<string> {
  return (value, place) => {
    const read = text(value, place)
    for (const name of unknownNames(read ?? '', names))
      report(
        place,
        `{{${name}}} is not known; known: ${[...names].join(', ')} (write \\{{ for the characters)`,
      )
    return read
  }
}

export function textIn(names: ReadonlySet<string>): Reader<ReplyBlock> {
  const template = templateIn(names)
  return (value, place) => {
    const read = template(value, place)
    return read === undefined ? undefined : { type: 'text', text: read }
  }
}

export function thinkingIn(names: ReadonlySet<string>): Reader<ReplyBlock> {
  const template = templateIn(names)
  return (value, place) => {
    const read = template(value, place)
    return read === undefined ? undefined : { type: 'thinking', thinking: read }
  }
}

interface WrittenCall {
  readonly name: string
  readonly input: JsonObject
  readonly id?: string
}

/** `Read: {file_path: …}`, or `{name, input, id}`. */
export function callIn(names: ReadonlySet<string>): Reader<ReplyBlock> {
  const input = inputIn(names)
  const long = fieldsOf<WrittenCall>({ name: text, input, id: text })
  return (value, place) => {
    if (!isObject(value))
      return report(place, `expected a call such as {Read: {file_path: a.ts}}, found ${shown(value)}`)
    const [[name, given] = [], ...more] = Object.entries(value)
    if (name !== undefined && more.length === 0 && name !== 'name') {
      const read = input(given ?? {}, inside(place, name))
      return read === undefined ? undefined : { type: 'tool_use', name, input: read }
    }
    const { name: tool, input: fields = {}, id } = long(value, place) ?? {}
    if (tool === undefined)
      return value.name === undefined ? report(inside(place, 'name'), 'is needed: which tool') : undefined
    return { type: 'tool_use', name: tool, input: fields, ...(id === undefined ? {} : { id }) }
  }
}

function inputIn(names: ReadonlySet<string>): Reader<JsonObject> {
  const template = templateIn(names)
  return (value, place) => {
    const read = jsonObject(value, place)
    if (read !== undefined) visitTexts(read, place, (each, at) => template(each, at))
    return read
  }
}

function visitTexts(value: unknown, place: Place, visit: (text: string, place: Place) => void): void {
  if (typeof value === 'string') visit(value, place)
  const entries = Array.isArray(value) ? value.entries() : isObject(value) ? Object.entries(value) : []
  for (const [key, each] of entries) visitTexts(each, inside(place, key), visit)
}

/** `text: …`, `thinking: …`, `call: …`, or any block whole, by its `type`. */
export function blockIn(names: ReadonlySet<string>): Reader<ReplyBlock> {
  const short: Readonly<Record<string, Reader<ReplyBlock>>> = {
    text: textIn(names),
    thinking: thinkingIn(names),
    call: callIn(names),
  }
  return (value, place) => {
    if (!isObject(value))
      return report(place, `expected a block such as {text: Hello}, found ${shown(value)}`)
    if (typeof value.type === 'string') return wholeBlock(value, place)
    const [[name, given] = [], ...more] = Object.entries(value)
    const reader = name !== undefined && Object.hasOwn(short, name) ? short[name] : undefined
    if (name === undefined || reader === undefined || more.length > 0)
      return report(
        place,
        `expected one of text, thinking, call, or a block with its type, found ${Object.keys(value).join(', ') || 'nothing'}`,
      )
    return reader(given, inside(place, name))
  }
}

function wholeBlock(value: Readonly<Record<string, unknown>>, place: Place): ReplyBlock | undefined {
  if (isJson(value)) return value as ReplyBlock
  return report(place, 'expected a block that can be written as JSON')
}
