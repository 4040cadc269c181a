/** Reads scenario files in YAML or JSON. All problems are reported, each with its line and path. */
import { isNode, LineCounter, parseDocument } from 'yaml'
import type { Fault } from '../faults/fault.ts'
import { duration, readFault } from '../faults/parse-fault.ts'
import { isObject, type JsonObject } from '../protocol/api.ts'
import {
  checked,
  count,
  fieldsOf,
  flag,
  inside,
  isJson,
  jsonObject,
  listOf,
  mapOf,
  oneOf,
  type Path,
  type Place,
  problemText,
  type Reader,
  readAll,
  report,
  shown,
  text,
} from '../protocol/json-fields.ts'
import { namedScript } from './named-scripts.ts'
import {
  type Condition,
  KNOWN_NAMES,
  type Scenario,
  type ScenarioTurn,
  unknownNames,
  type Wanted,
  type WantedResult,
  type WantedTurn,
} from './scenario.ts'
import type { Delays, ReplyBlock, Script, StopReason } from './script.ts'

type ParsedScenario =
  | { readonly ok: true; readonly scenario: Scenario }
  /** One line per problem: file, line, path in the document, and what was expected. */
  | { readonly ok: false; readonly problems: readonly string[] }

/** `file` names the source in error messages. JSON needs no parser of its own, because it is valid YAML. */
export function parseScenario(source: string, file: string): ParsedScenario {
  const lines = new LineCounter()
  const document = parseDocument(source, { lineCounter: lines, prettyErrors: false })
  if (document.errors.length > 0)
    return {
      ok: false,
      problems: document.errors.map(
        ({ message, pos }) => `${file}:${lines.linePos(pos[0]).line}: ${oneLine(message)}`,
      ),
    }
  const reading = readAll(scenarioReader(file), document.toJS())
  if (reading.ok) return { ok: true, scenario: reading.value }
  return {
    ok: false,
    problems: reading.problems.map((problem) => `${file}:${findLine(problem.path)}: ${problemText(problem)}`),
  }

  /** The line of the value at the path, or of the nearest value around it. */
  function findLine(path: Path): number {
    const node = path.length === 0 ? document.contents : document.getIn(path, true)
    if (isNode(node) && node.range) return lines.linePos(node.range[0]).line
    return path.length === 0 ? 1 : findLine(path.slice(0, -1))
  }
}

function oneLine(text: string): string {
  return text.replaceAll(/\s*\n\s*/g, ' ').trim()
}

/** Reads a parsed document. `name` is the name of the scenario if the document gives none. */
function scenarioReader(name: string): Reader<Scenario> {
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

// Turns.

const readTimes: Reader<number> = checked('a whole number of at least 1, or "forever"', (value) => {
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

/** `names`: the variables that may be used as `{{…}}`. */
function turnReader(names: ReadonlySet<string>): Reader<ScenarioTurn> {
  const fields = fieldsOf<WrittenTurn>({
    when: readCondition,
    times: readTimes,
    thinking: templateIn(names, (thinking) => ({ type: 'thinking', thinking })),
    text: templateIn(names, (text) => ({ type: 'text', text })),
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
  const { thinking, text: textBlock, calls = [], blocks, script, stop, ...rest } = read
  const given = SPEAKING.filter((name) => isObject(value) && value[name] !== undefined)
  if (given.length === 0) return report(place, `is empty; expected one of ${SPEAKING.join(', ')}`)
  const alone = given.find((name) => name === 'blocks' || name === 'script')
  const other = given.find((name) => name !== alone && name !== 'fault')
  if (alone !== undefined && other !== undefined)
    return report(inside(place, other), `cannot be combined with ${alone}`)
  const says = script ?? blocks ?? [thinking, textBlock, ...calls].filter((block) => block !== undefined)
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

// Blocks of a turn. `names` are the variables that may be used as `{{…}}`.

function templateIn<T>(names: ReadonlySet<string>, build: (text: string) => T): Reader<T> {
  return (value, place) => {
    const read = text(value, place)
    if (read === undefined) return undefined
    for (const name of unknownNames(read, names))
      report(
        place,
        `{{${name}}} is not known; known: ${[...names].join(', ')} (write \\{{ for the characters)`,
      )
    return build(read)
  }
}

interface WrittenCall {
  readonly name: string
  readonly input: JsonObject
  readonly id?: string
}

/** `Read: {file_path: …}`, or `{name, input, id}`. */
function callIn(names: ReadonlySet<string>): Reader<ReplyBlock> {
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
  const template = templateIn(names, (text) => text)
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

/** `text: …`, `thinking: …`, `call: …`, or any complete block with its `type`. */
function blockIn(names: ReadonlySet<string>): Reader<ReplyBlock> {
  const short: Readonly<Record<string, Reader<ReplyBlock>>> = {
    text: templateIn(names, (text) => ({ type: 'text', text })),
    thinking: templateIn(names, (thinking) => ({ type: 'thinking', thinking })),
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

// Conditions.

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

/** A string is short for `{tool: …}`. */
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

const readCondition: Reader<Condition> = fieldsOf<Condition>({
  says: readWanted,
  result: readResult,
  turn: readTurn,
  summary: flag,
  model: readWanted,
})
