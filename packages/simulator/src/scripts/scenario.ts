/**
 * Scenarios: scripts as data. Turns answer requests in order; turns with a condition answer whenever it holds.
 * `read-scenario.ts` reads them from YAML and JSON.
 */

import type { Fault } from '../faults/fault.ts'
import type { JsonObject } from '../protocol/api.ts'
import { prose } from './filler-text.ts'
import {
  type Delays,
  isIn,
  isSummaryRequest,
  lastResults,
  lastUserText,
  type Reply,
  type ReplyBlock,
  type Script,
  type ScriptContext,
  type ScriptRequest,
  type StopReason,
  sessionKey,
} from './script.ts'
import { summariser } from './summarizer.ts'

export interface Scenario {
  /** Used in error messages. */
  readonly name: string
  readonly turns: readonly ScenarioTurn[]
  /** Answers requests that no turn answers. */
  readonly otherwise?: ScenarioTurn
  /** How often the turns without condition are played. Default: 1. */
  readonly repeat?: number
  /** Summary requests that no condition matches get a good summary and use up no turn. Default: true. */
  readonly summaries?: boolean
  readonly variables?: Readonly<Record<string, string>>
}

export interface ScenarioTurn {
  /** A turn without condition answers in its order. */
  readonly when?: Condition
  /** How many requests it answers. Default: 1, or no limit with a condition. */
  readonly times?: number
  /** The generated blocks, or a script that generates them. */
  readonly says: readonly ReplyBlock[] | Script
  readonly stopReason?: StopReason
  readonly stopSequence?: string
  readonly stopDetails?: JsonObject
  readonly delays?: Delays
  readonly fault?: Fault
}

/** A script that plays the scenario. Each session has its own progress. */
export function playScenario(scenario: Scenario): Script {
  const sessions = new Map<string, Tape>()
  return async (request, context) => {
    const key = sessionKey(request)
    const nextTurn = sessions.get(key) ?? createTape(scenario)
    sessions.set(key, nextTurn)
    const turn = nextTurn(request, context)
    if (turn === 'summary') return summariser(request, context)
    return turn === null ? exhausted(scenario) : play(turn, scenario, request, context)
  }
}

/** Selects the next turn of one session: `summary` for a built-in summary, null if no turn is left. */
type Tape = (request: ScriptRequest, context: ScriptContext) => ScenarioTurn | 'summary' | null

function createTape({ turns, otherwise, repeat = 1, summaries = true }: Scenario): Tape {
  const inOrder = turns.filter((turn) => turn.when === undefined)
  const used = new Map<ScenarioTurn, number>()
  let pass = 0
  let at = 0

  function use(turn: ScenarioTurn): ScenarioTurn {
    used.set(turn, (used.get(turn) ?? 0) + 1)
    return turn
  }

  function nextInOrder(): ScenarioTurn | null {
    for (; pass < repeat && inOrder.length > 0; [pass, at] = [pass + 1, 0]) {
      for (; at < inOrder.length; at += 1) {
        const turn = inOrder[at]
        if (turn !== undefined && (used.get(turn) ?? 0) < (turn.times ?? 1) * (pass + 1)) return use(turn)
      }
    }
    return null
  }

  return (request, context) => {
    const matching = turns.find(
      (turn) =>
        turn.when !== undefined &&
        (used.get(turn) ?? 0) < (turn.times ?? Number.POSITIVE_INFINITY) &&
        holds(turn.when, request, context),
    )
    if (matching !== undefined) return use(matching)
    if (summaries && isSummaryRequest(request)) return 'summary'
    return nextInOrder() ?? otherwise ?? null
  }
}

async function play(
  turn: ScenarioTurn,
  scenario: Scenario,
  request: ScriptRequest,
  context: ScriptContext,
): Promise<Reply> {
  const { says, when: _when, times: _times, ...rest } = turn
  if (typeof says === 'function') return { ...(await says(request, context)), ...rest }
  const variables = variablesOf(request, context, scenario.variables ?? {})
  return { blocks: says.map((block) => filled(block, variables)), ...rest }
}

function filled(block: ReplyBlock, variables: Variables): ReplyBlock {
  const { type, text, thinking, input } = block as Readonly<Record<string, unknown>> & {
    readonly type: string
  }
  if (type === 'text' && typeof text === 'string') return { ...block, text: fill(text, variables) }
  if (type === 'thinking' && typeof thinking === 'string')
    return { ...block, thinking: fill(thinking, variables) }
  return type === 'tool_use' ? { ...block, input: fillAll(input as JsonObject, variables) } : block
}

/** Status 400, which clients do not retry, so that the author of the scenario sees the message. */
function exhausted({ name, turns }: Scenario): Reply {
  const count = turns.filter(({ when }) => when === undefined).length
  const message = `${name} has no answer left: its ${count} turns in order are used up. Add turns, "repeat" or "otherwise".`
  return { blocks: [], fault: { type: 'status', status: 400, message } }
}

/** A text to find: a substring, or a pattern. */
export type Wanted = string | RegExp

/** All fields that are given must match. */
export interface Condition {
  /** In the text of the unanswered user messages. */
  readonly says?: Wanted
  /** One of the unanswered tool results. */
  readonly result?: WantedResult
  /** Number of assistant turns, including the one to come. */
  readonly turn?: WantedTurn
  /** Whether the request asks for a summary. */
  readonly summary?: boolean
  readonly model?: Wanted
}

export interface WantedResult {
  readonly tool?: string
  readonly contains?: Wanted
  readonly error?: boolean
}

export type WantedTurn =
  | { readonly in: readonly number[] }
  | { readonly every: number }
  | { readonly from: number }

export function holds(condition: Condition, request: ScriptRequest, context: ScriptContext): boolean {
  const { says, result, turn, summary, model } = condition
  return (
    (says === undefined || isIn(lastUserText(request.messages), says)) &&
    (result === undefined || hasResult(request, result)) &&
    (turn === undefined || isTurn(context.turn + 1, turn)) &&
    (summary === undefined || isSummaryRequest(request) === summary) &&
    (model === undefined || isIn(request.model, model))
  )
}

function hasResult({ messages }: ScriptRequest, { tool, contains, error }: WantedResult): boolean {
  return lastResults(messages).some(
    (result) =>
      (tool === undefined || result.name === tool) &&
      (contains === undefined || isIn(result.text, contains)) &&
      (error === undefined || result.isError === error),
  )
}

function isTurn(turn: number, wanted: WantedTurn): boolean {
  if ('in' in wanted) return wanted.in.includes(turn)
  return 'every' in wanted ? turn % wanted.every === 0 : turn >= wanted.from
}

// Variables such as `{{turn}}` in the texts of a scenario.

/** `argument` is the text after the name, as in `{{words 200}}`. */
type Variables = Readonly<Record<string, (argument: string) => string>>

function variablesOf(
  request: ScriptRequest,
  context: ScriptContext,
  own: Readonly<Record<string, string>>,
): Variables {
  const given = Object.entries(own).map(([name, value]) => [name, () => value] as const)
  return {
    turn: () => String(context.turn + 1),
    request: () => String(context.index + 1),
    model: () => request.model,
    user: () => lastUserText(request.messages),
    result: (tool) =>
      lastResults(request.messages).findLast(({ name }) => tool === '' || name === tool)?.text ?? '',
    now: () => new Date(context.now).toISOString(),
    random: (below) => String(Math.floor(context.random() * (Number(below) || 1_000_000))),
    words: (tokens) => prose(`words/${context.index}`, Number(tokens) || 10),
    ...Object.fromEntries(given),
  }
}

/** The variables that every scenario has. */
export const KNOWN_NAMES = ['turn', 'request', 'model', 'user', 'result', 'now', 'random', 'words'] as const

/** A backslash before `{{` keeps it as it is. */
const PLACEHOLDER = /\\\{\{|\{\{\s*([A-Za-z_]\w*)(?:\s+([^{}]*?))?\s*\}\}/g

function fill(text: string, variables: Variables): string {
  return text.replaceAll(PLACEHOLDER, (whole, name: string | undefined, argument: string | undefined) =>
    name === undefined ? '{{' : (variables[name]?.(argument ?? '') ?? whole),
  )
}

function fillAll(input: JsonObject, variables: Variables): JsonObject {
  const filled: unknown = JSON.parse(JSON.stringify(input), (_key, value: unknown) =>
    typeof value === 'string' ? fill(value, variables) : value,
  )
  // The cast holds because only strings were replaced.
  return filled as JsonObject
}

/** The variables in a text that are not among those known. */
export function unknownNames(text: string, known: ReadonlySet<string>): readonly string[] {
  return [...text.matchAll(PLACEHOLDER)].flatMap(([, name]) =>
    name === undefined || known.has(name) ? [] : [name],
  )
}
