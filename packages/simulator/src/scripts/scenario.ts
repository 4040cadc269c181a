/**
 * A script as data: turns that answer one request after the other, and turns that answer whenever their
 * condition holds. How a scenario is written in JSON or YAML is in `scenario/read-scenario.ts`.
 */

import type { Fault } from '../faults/fault.ts'
import type { JsonObject } from '../protocol/api.ts'
import { prose } from './filler-text.ts'
import {
  type Delays,
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
  /** What it is called in errors. */
  readonly name: string
  readonly turns: readonly ScenarioTurn[]
  /** Answers when no turn does. */
  readonly otherwise?: ScenarioTurn
  /** How often the turns in order are gone through; default 1. */
  readonly repeat?: number
  /** Requests for a summary that no condition asks for are answered with one, and use up no turn. Default: yes. */
  readonly summaries?: boolean
  readonly variables?: Readonly<Record<string, string>>
}

export interface ScenarioTurn {
  /** Without it the turn answers in its order. */
  readonly when?: Condition
  /** How many requests it answers: 1 by default, without end where it has a condition. */
  readonly times?: number
  /** What is said, or who says it. */
  readonly says: readonly ReplyBlock[] | Script
  readonly stopReason?: StopReason
  readonly stopSequence?: string
  readonly stopDetails?: JsonObject
  readonly delays?: Delays
  readonly fault?: Fault
}

/** Sessions are told apart as `session-key.ts` says; each goes through the scenario by itself. */
export function playScenario(scenario: Scenario): Script {
  const sessions = new Map<string, Tape>()
  return async (request, context) => {
    const key = sessionKey(request)
    const tape = sessions.get(key) ?? createTape(scenario)
    sessions.set(key, tape)
    const turn = tape.next(request, context)
    if (turn === 'summary') return summariser(request, context)
    return turn === null ? exhausted(scenario) : play(turn, scenario, { request, context })
  }
}

interface Tape {
  next(request: ScriptRequest, context: ScriptContext): ScenarioTurn | 'summary' | null
}

function createTape({ turns, otherwise, repeat = 1, summaries = true }: Scenario): Tape {
  const inOrder = turns.filter((turn) => turn.when === undefined)
  const used = new Map<ScenarioTurn, number>()
  let pass = 0
  let at = 0

  function use(turn: ScenarioTurn): ScenarioTurn {
    used.set(turn, (used.get(turn) ?? 0) + 1)
    return turn
  }

  function inItsOrder(): ScenarioTurn | null {
    for (; pass < repeat && inOrder.length > 0; [pass, at] = [pass + 1, 0]) {
      for (; at < inOrder.length; at += 1) {
        const turn = inOrder[at]
        if (turn !== undefined && (used.get(turn) ?? 0) < (turn.times ?? 1) * (pass + 1)) return use(turn)
      }
    }
    return null
  }

  return {
    next(request, context) {
      const meant = turns.find(
        (turn) =>
          turn.when !== undefined &&
          (used.get(turn) ?? 0) < (turn.times ?? Number.POSITIVE_INFINITY) &&
          holds(turn.when, request, context),
      )
      if (meant !== undefined) return use(meant)
      if (summaries && isSummaryRequest(request)) return 'summary'
      return inItsOrder() ?? otherwise ?? null
    },
  }
}

interface Asked {
  readonly request: ScriptRequest
  readonly context: ScriptContext
}

async function play(turn: ScenarioTurn, scenario: Scenario, { request, context }: Asked): Promise<Reply> {
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

/** An error that no client tries again: whoever wrote the scenario is to see it. */
function exhausted({ name, turns }: Scenario): Reply {
  const count = turns.filter(({ when }) => when === undefined).length
  const message = `${name} has no answer left: its ${count} turns in order are used up. Add turns, "repeat" or "otherwise".`
  return { blocks: [], fault: { type: 'status', status: 400, message } }
}

// When a turn of a scenario answers: all that is said here must hold.

/** Text that must be there, as it is or as a pattern. */
export type Wanted = string | RegExp

export interface Condition {
  /** In what the person said last. */
  readonly says?: Wanted
  /** One of the results that just arrived. */
  readonly result?: WantedResult
  /** Responses of the model, this one included. */
  readonly turn?: WantedTurn
  /** The model is asked to sum up, or is not. */
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

function isIn(text: string, wanted: Wanted): boolean {
  return typeof wanted === 'string' ? text.includes(wanted) : text.search(wanted) >= 0
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

// `{{turn}}` and the like in the texts of a scenario.

/** Values of a name; `argument` is what stands behind it, as in `{{words 200}}`. */
export type Variables = Readonly<Record<string, (argument: string) => string>>

export function variablesOf(
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

/** The names that every scenario has. */
export const KNOWN_NAMES = ['turn', 'request', 'model', 'user', 'result', 'now', 'random', 'words'] as const

/** A backslash before it keeps `{{` as it is. */
const PLACEHOLDER = /\\\{\{|\{\{\s*([A-Za-z_]\w*)(?:\s+([^{}]*?))?\s*\}\}/g

export function fill(text: string, variables: Variables): string {
  return text.replaceAll(PLACEHOLDER, (whole, name: string | undefined, argument: string | undefined) =>
    name === undefined ? '{{' : (variables[name]?.(argument ?? '') ?? whole),
  )
}

export function fillAll(input: JsonObject, variables: Variables): JsonObject {
  const filled: unknown = JSON.parse(JSON.stringify(input), (_key, value: unknown) =>
    typeof value === 'string' ? fill(value, variables) : value,
  )
  // The same shape with other strings.
  return filled as JsonObject
}

/** Names in a text that are not among those known. */
export function unknownNames(text: string, known: ReadonlySet<string>): readonly string[] {
  return [...text.matchAll(PLACEHOLDER)].flatMap(([, name]) =>
    name === undefined || known.has(name) ? [] : [name],
  )
}
