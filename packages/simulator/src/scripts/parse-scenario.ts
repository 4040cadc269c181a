/** Reads scenario files in YAML or JSON. All problems are reported, each with its line and path. */
import { isNode, LineCounter, parseDocument } from 'yaml'
import type { Fault } from '../faults/fault.ts'
import { durationReader, readFault } from '../faults/parse-fault.ts'
import { isObject, type JsonObject } from '../protocol/messages-request.ts'
import {
  addReadProblem,
  booleanReader,
  choiceReader,
  createReader,
  describeValue,
  enterField,
  formatReadProblem,
  isJsonValue,
  jsonObjectReader,
  listReader,
  mapReader,
  partialObjectReader,
  type ReadContext,
  readDocument,
  textReader,
  type ValuePath,
  type ValueReader,
  wholeNumberReader,
} from '../protocol/value-readers.ts'
import { findNamedScript } from './built-in-scripts.ts'
import {
  findUnknownVariables,
  type ResultMatcher,
  SCENARIO_VARIABLE_NAMES,
  type Scenario,
  type ScenarioTurn,
  type TextMatcher,
  type TurnCondition,
  type TurnNumberMatcher,
} from './scenario.ts'
import type { ReplyBlock, ReplyDelays, Script, StopReason } from './script.ts'

type ParseScenarioResult =
  | { readonly ok: true; readonly scenario: Scenario }
  /** Each problem is one line: file, line, path in the document, and what was expected. */
  | { readonly ok: false; readonly problems: readonly string[] }

/**
 * Parses a scenario from YAML or JSON; JSON is valid YAML and needs no parser of its own. `file` names the source in
 * error messages.
 */
export function parseScenario(source: string, file: string): ParseScenarioResult {
  const lines = new LineCounter()
  const document = parseDocument(source, { lineCounter: lines, prettyErrors: false })
  if (document.errors.length > 0)
    return {
      ok: false,
      problems: document.errors.map(
        ({ message, pos }) => `${file}:${lines.linePos(pos[0]).line}: ${toOneLine(message)}`,
      ),
    }
  const reading = readDocument(scenarioReader(file), document.toJS())
  if (reading.ok) return { ok: true, scenario: reading.value }
  return {
    ok: false,
    problems: reading.problems.map(
      (problem) => `${file}:${findLine(problem.path)}: ${formatReadProblem(problem)}`,
    ),
  }

  /** Returns the line number of the value at a path in the document, or of the nearest value that encloses it. */
  function findLine(path: ValuePath): number {
    const node = path.length === 0 ? document.contents : document.getIn(path, true)
    if (isNode(node) && node.range) return lines.linePos(node.range[0]).line
    return path.length === 0 ? 1 : findLine(path.slice(0, -1))
  }
}

function toOneLine(text: string): string {
  return text.replaceAll(/\s*\n\s*/g, ' ').trim()
}

/** Creates a reader for a parsed scenario. `name` is used if the document has no name. */
function scenarioReader(name: string): ValueReader<Scenario> {
  return (value, place) => {
    const variables = isObject(value) && isObject(value.variables) ? Object.keys(value.variables) : []
    const turn = turnReader(new Set([...SCENARIO_VARIABLE_NAMES, ...variables]))
    const read = partialObjectReader<ScenarioDocument>({
      name: textReader,
      variables: mapReader(variableReader),
      repeat: timesReader,
      summaries: booleanReader,
      turns: listReader(turn),
      otherwise: turn,
    })(value, place)
    if (read === undefined) return undefined
    if (read.turns === undefined && isObject(value) && value.turns === undefined)
      return addReadProblem(enterField(place, 'turns'), 'is needed: a list of turns')
    return { name, turns: [], ...read }
  }
}

type ScenarioDocument = { [K in keyof Required<Scenario>]: Scenario[K] }

const variableReader: ValueReader<string> = createReader('text or a number', (value) =>
  typeof value === 'string' || typeof value === 'number' ? String(value) : null,
)

// Readers for the turns of a scenario.

const timesReader: ValueReader<number> = createReader(
  'a whole number of at least 1, or "forever"',
  (value) => {
    if (value === 'forever') return Number.POSITIVE_INFINITY
    return typeof value === 'number' && Number.isInteger(value) && value >= 1 ? value : null
  },
)

interface TurnDocument {
  readonly when?: TurnCondition
  readonly times?: number
  readonly thinking?: ReplyBlock
  readonly text?: ReplyBlock
  readonly calls?: readonly ReplyBlock[]
  readonly blocks?: readonly ReplyBlock[]
  readonly script?: Script
  readonly stop?: StopReason
  readonly stopSequence?: string
  readonly stopDetails?: JsonObject
  readonly delays?: ReplyDelays
  readonly fault?: Fault
}

/** Creates a reader for one turn of a scenario. `names` are the variables that its texts may use, as in `{{turn}}`. */
function turnReader(names: ReadonlySet<string>): ValueReader<ScenarioTurn> {
  const fields = partialObjectReader<TurnDocument>({
    when: conditionReader,
    times: timesReader,
    thinking: templateReader(names, (thinking) => ({ type: 'thinking', thinking })),
    text: templateReader(names, (text) => ({ type: 'text', text })),
    calls: listReader(callReader(names)),
    blocks: listReader(blockReader(names)),
    script: readScript,
    stop: stopReasonReader,
    stopSequence: textReader,
    stopDetails: jsonObjectReader,
    delays: readDelays,
    fault: readFault,
  })
  return (value, place) => {
    const before = place.problems.length
    const read = fields(value, place)
    return read === undefined || place.problems.length > before
      ? undefined
      : toScenarioTurn(read, value, place)
  }
}

const REPLY_FIELDS = ['text', 'thinking', 'calls', 'blocks', 'script', 'fault']

function toScenarioTurn(read: TurnDocument, value: unknown, place: ReadContext): ScenarioTurn | undefined {
  const { thinking, text, calls = [], blocks, script, stop, ...rest } = read
  const given = REPLY_FIELDS.filter((name) => isObject(value) && value[name] !== undefined)
  if (given.length === 0) return addReadProblem(place, `is empty; expected one of ${REPLY_FIELDS.join(', ')}`)
  const alone = given.find((name) => name === 'blocks' || name === 'script')
  const other = given.find((name) => name !== alone && name !== 'fault')
  if (alone !== undefined && other !== undefined)
    return addReadProblem(enterField(place, other), `cannot be combined with ${alone}`)
  const says = script ?? blocks ?? [thinking, text, ...calls].filter((block) => block !== undefined)
  return { says, ...(stop === undefined ? {} : { stopReason: stop }), ...rest }
}

const stopReasonReader: ValueReader<StopReason> = choiceReader(
  'end_turn',
  'max_tokens',
  'stop_sequence',
  'tool_use',
  'pause_turn',
  'refusal',
  'model_context_window_exceeded',
)

const readDelays: ValueReader<ReplyDelays> = (value, place) => {
  const read = partialObjectReader<{ start?: number; block?: number; piece?: number }>({
    start: durationReader,
    block: durationReader,
    piece: durationReader,
  })(value, place)
  if (read === undefined) return undefined
  const { start, block, piece } = read
  return {
    ...(start === undefined ? {} : { startMs: start }),
    ...(block === undefined ? {} : { blockMs: block }),
    ...(piece === undefined ? {} : { pieceMs: piece }),
  }
}

const readScript: ValueReader<Script> = (value, place) => {
  const name = textReader(value, place)
  if (name === undefined) return undefined
  const named = findNamedScript(name)
  return named.ok ? named.script : addReadProblem(place, named.message)
}

// Readers for the blocks of a scenario turn. `names` are the variables that its texts may use, as in `{{turn}}`.

function templateReader<T>(names: ReadonlySet<string>, build: (text: string) => T): ValueReader<T> {
  return (value, place) => {
    const read = textReader(value, place)
    if (read === undefined) return undefined
    for (const name of findUnknownVariables(read, names))
      addReadProblem(
        place,
        `{{${name}}} is not known; known: ${[...names].join(', ')} (write \\{{ for the characters)`,
      )
    return build(read)
  }
}

interface CallDocument {
  readonly name: string
  readonly input: JsonObject
  readonly id?: string
}

/** Creates a reader for a tool call, written as `Read: {file_path: …}` or as `{name, input, id}`. */
function callReader(names: ReadonlySet<string>): ValueReader<ReplyBlock> {
  const input = inputReader(names)
  const long = partialObjectReader<CallDocument>({ name: textReader, input, id: textReader })
  return (value, place) => {
    if (!isObject(value))
      return addReadProblem(
        place,
        `expected a call such as {Read: {file_path: a.ts}}, found ${describeValue(value)}`,
      )
    const [[name, given] = [], ...more] = Object.entries(value)
    if (name !== undefined && more.length === 0 && name !== 'name') {
      const read = input(given ?? {}, enterField(place, name))
      return read === undefined ? undefined : { type: 'tool_use', name, input: read }
    }
    const { name: tool, input: fields = {}, id } = long(value, place) ?? {}
    if (tool === undefined)
      return value.name === undefined
        ? addReadProblem(enterField(place, 'name'), 'is needed: which tool')
        : undefined
    return { type: 'tool_use', name: tool, input: fields, ...(id === undefined ? {} : { id }) }
  }
}

function inputReader(names: ReadonlySet<string>): ValueReader<JsonObject> {
  const template = templateReader(names, (text) => text)
  return (value, place) => {
    const read = jsonObjectReader(value, place)
    if (read !== undefined) visitTexts(read, place, (each, at) => template(each, at))
    return read
  }
}

function visitTexts(
  value: unknown,
  place: ReadContext,
  visit: (text: string, place: ReadContext) => void,
): void {
  if (typeof value === 'string') visit(value, place)
  const entries = Array.isArray(value) ? value.entries() : isObject(value) ? Object.entries(value) : []
  for (const [key, each] of entries) visitTexts(each, enterField(place, key), visit)
}

/**
 * Creates a reader for a block, written as `text: …`, `thinking: …`, `call: …`, or as a complete block with its
 * `type`.
 */
function blockReader(names: ReadonlySet<string>): ValueReader<ReplyBlock> {
  const short: Readonly<Record<string, ValueReader<ReplyBlock>>> = {
    text: templateReader(names, (text) => ({ type: 'text', text })),
    thinking: templateReader(names, (thinking) => ({ type: 'thinking', thinking })),
    call: callReader(names),
  }
  return (value, place) => {
    if (!isObject(value))
      return addReadProblem(place, `expected a block such as {text: Hello}, found ${describeValue(value)}`)
    if (typeof value.type === 'string') return readCompleteBlock(value, place)
    const [[name, given] = [], ...more] = Object.entries(value)
    const reader = name !== undefined && Object.hasOwn(short, name) ? short[name] : undefined
    if (name === undefined || reader === undefined || more.length > 0)
      return addReadProblem(
        place,
        `expected one of text, thinking, call, or a block with its type, found ${Object.keys(value).join(', ') || 'nothing'}`,
      )
    return reader(given, enterField(place, name))
  }
}

function readCompleteBlock(
  value: Readonly<Record<string, unknown>>,
  place: ReadContext,
): ReplyBlock | undefined {
  if (isJsonValue(value)) return value as ReplyBlock
  return addReadProblem(place, 'expected a block that can be written as JSON')
}

// Readers for the conditions of a turn.

const readTextMatcher: ValueReader<TextMatcher> = (value, place) => {
  const read = textReader(value, place)
  const [, source, flags] = /^\/(.+)\/([a-z]*)$/s.exec(read ?? '') ?? []
  if (source === undefined) return read
  try {
    return new RegExp(source, flags)
  } catch (error) {
    return addReadProblem(
      place,
      `expected a pattern between slashes: ${error instanceof Error ? error.message : ''}`,
    )
  }
}

const resultMatcherReader = partialObjectReader<ResultMatcher>({
  tool: textReader,
  contains: readTextMatcher,
  error: booleanReader,
})

/** Reads a condition on tool results. A string is short for `{tool: …}`. */
const readResultMatcher: ValueReader<ResultMatcher> = (value, place) =>
  typeof value === 'string' ? { tool: value } : resultMatcherReader(value, place)

const readTurnMatcher: ValueReader<TurnNumberMatcher> = (value, place) => {
  const [, word, number] = typeof value === 'string' ? (/^(every|from) ([1-9]\d*)$/.exec(value) ?? []) : []
  if (word !== undefined) return word === 'every' ? { every: Number(number) } : { from: Number(number) }
  if (Array.isArray(value)) return { in: listReader(wholeNumberReader(1))(value, place) ?? [] }
  const single = createReader('a turn such as 3, [3, 5], "every 4" or "from 10"', (each) =>
    typeof each === 'number' && Number.isInteger(each) && each >= 1 ? each : null,
  )(value, place)
  return single === undefined ? undefined : { in: [single] }
}

const conditionReader: ValueReader<TurnCondition> = partialObjectReader<TurnCondition>({
  says: readTextMatcher,
  result: readResultMatcher,
  turn: readTurnMatcher,
  summary: booleanReader,
  model: readTextMatcher,
})
