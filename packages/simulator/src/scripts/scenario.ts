/**
 * Scenarios: scripts for the simulated model that are written as data. A scenario is a list of turns, which answer
 * requests in order. A turn with a condition answers whenever its condition is met. `parse-scenario.ts` reads
 * scenarios from YAML and JSON.
 */

import type { Fault } from '../faults/fault.ts'
import type { JsonObject } from '../protocol/messages-request.ts'
import { createFillerText } from './filler-text.ts'
import {
  containsText,
  isSummaryRequest,
  listLastToolResults,
  type Reply,
  type ReplyBlock,
  type ReplyDelays,
  readLastUserText,
  readSessionKey,
  type Script,
  type ScriptContext,
  type ScriptRequest,
  type StopReason,
} from './script.ts'
import { summarizer } from './summarizer.ts'

export interface Scenario {
  /** Name of the scenario, used in error messages. */
  readonly name: string
  readonly turns: readonly ScenarioTurn[]
  /** The turn that answers requests that no other turn answers. */
  readonly otherwise?: ScenarioTurn
  /** Number of times the whole sequence of turns without a condition is played. Default: 1. */
  readonly repeat?: number
  /**
   * True to answer summary requests with a good summary, unless the condition of a turn matches. Such an answer uses
   * up no turn. Default: true.
   */
  readonly summaries?: boolean
  readonly variables?: Readonly<Record<string, string>>
}

export interface ScenarioTurn {
  /**
   * Condition that a request must meet for the turn to answer it. Turns without a condition answer in the order of
   * the list.
   */
  readonly when?: TurnCondition
  /** Number of requests the turn answers. Default: 1, or no limit for a turn with a condition. */
  readonly times?: number
  /** The blocks of the response, or a script that generates the response. */
  readonly says: readonly ReplyBlock[] | Script
  readonly stopReason?: StopReason
  readonly stopSequence?: string
  readonly stopDetails?: JsonObject
  readonly delays?: ReplyDelays
  readonly fault?: Fault
}

/** Creates a script that plays the scenario. Each session has its own progress through the turns. */
export function playScenario(scenario: Scenario): Script {
  const sessions = new Map<string, TurnSelector>()
  return async (request, context) => {
    const key = readSessionKey(request)
    const nextTurn = sessions.get(key) ?? createTurnSelector(scenario)
    sessions.set(key, nextTurn)
    const turn = nextTurn(request, context)
    if (turn === 'summary') return summarizer(request, context)
    return turn === null ? createExhaustedReply(scenario) : playTurn(turn, scenario, request, context)
  }
}

/**
 * Selects the turn that answers a request of one session. Returns `summary` if the built-in summarizer answers, and
 * null if no turn is left.
 */
type TurnSelector = (request: ScriptRequest, context: ScriptContext) => ScenarioTurn | 'summary' | null

function createTurnSelector({ turns, otherwise, repeat = 1, summaries = true }: Scenario): TurnSelector {
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
        isScenarioConditionMet(turn.when, request, context),
    )
    if (matching !== undefined) return use(matching)
    if (summaries && isSummaryRequest(request)) return 'summary'
    return nextInOrder() ?? otherwise ?? null
  }
}

async function playTurn(
  turn: ScenarioTurn,
  scenario: Scenario,
  request: ScriptRequest,
  context: ScriptContext,
): Promise<Reply> {
  const { says, when: _when, times: _times, ...rest } = turn
  if (typeof says === 'function') return { ...(await says(request, context)), ...rest }
  const variables = createVariables(request, context, scenario.variables ?? {})
  return { blocks: says.map((block) => fillBlock(block, variables)), ...rest }
}

function fillBlock(block: ReplyBlock, variables: ScenarioVariables): ReplyBlock {
  const { type, text, thinking, input } = block as Readonly<Record<string, unknown>> & {
    readonly type: string
  }
  if (type === 'text' && typeof text === 'string') return { ...block, text: fillText(text, variables) }
  if (type === 'thinking' && typeof thinking === 'string')
    return { ...block, thinking: fillText(thinking, variables) }
  return type === 'tool_use' ? { ...block, input: fillInput(input as JsonObject, variables) } : block
}

/**
 * Creates the reply for a request after all turns of the scenario were used. Clients do not retry status 400, so the
 * author of the scenario sees the message.
 */
function createExhaustedReply({ name, turns }: Scenario): Reply {
  const count = turns.filter(({ when }) => when === undefined).length
  const message = `${name} has no answer left: its ${count} turns in order are used up. Add turns, "repeat" or "otherwise".`
  return { blocks: [], fault: { type: 'status', status: 400, message } }
}

/** A text to search for: a substring or a pattern. */
export type TextMatcher = string | RegExp

/** The condition of a turn. All given fields must match. */
export interface TurnCondition {
  /** Text that must occur in the user messages after the last assistant message. */
  readonly says?: TextMatcher
  /** What one of the tool results after the last assistant message must match. */
  readonly result?: ResultMatcher
  /** Numbers of the assistant turns that match. The first response of a conversation is turn 1. */
  readonly turn?: TurnNumberMatcher
  /** True to match only summary requests, false to match only other requests. */
  readonly summary?: boolean
  readonly model?: TextMatcher
}

export interface ResultMatcher {
  readonly tool?: string
  readonly contains?: TextMatcher
  readonly error?: boolean
}

export type TurnNumberMatcher =
  | { readonly in: readonly number[] }
  | { readonly every: number }
  | { readonly from: number }

function isScenarioConditionMet(
  condition: TurnCondition,
  request: ScriptRequest,
  context: ScriptContext,
): boolean {
  const { says, result, turn, summary, model } = condition
  return (
    (says === undefined || containsText(readLastUserText(request.messages), says)) &&
    (result === undefined || hasMatchingResult(request, result)) &&
    (turn === undefined || isMatchingTurn(context.turn + 1, turn)) &&
    (summary === undefined || isSummaryRequest(request) === summary) &&
    (model === undefined || containsText(request.model, model))
  )
}

function hasMatchingResult({ messages }: ScriptRequest, { tool, contains, error }: ResultMatcher): boolean {
  return listLastToolResults(messages).some(
    (result) =>
      (tool === undefined || result.name === tool) &&
      (contains === undefined || containsText(result.text, contains)) &&
      (error === undefined || result.isError === error),
  )
}

function isMatchingTurn(turn: number, wanted: TurnNumberMatcher): boolean {
  if ('in' in wanted) return wanted.in.includes(turn)
  return 'every' in wanted ? turn % wanted.every === 0 : turn >= wanted.from
}

// Helpers for variables such as `{{turn}}` in the texts of a scenario.

/** Variables of a scenario by name. `argument` is the text after the name, such as `200` in `{{words 200}}`. */
type ScenarioVariables = Readonly<Record<string, (argument: string) => string>>

function createVariables(
  request: ScriptRequest,
  context: ScriptContext,
  own: Readonly<Record<string, string>>,
): ScenarioVariables {
  const given = Object.entries(own).map(([name, value]) => [name, () => value] as const)
  return {
    turn: () => String(context.turn + 1),
    request: () => String(context.index + 1),
    model: () => request.model,
    user: () => readLastUserText(request.messages),
    result: (tool) =>
      listLastToolResults(request.messages).findLast(({ name }) => tool === '' || name === tool)?.text ?? '',
    now: () => new Date(context.now).toISOString(),
    random: (below) => String(Math.floor(context.random() * (Number(below) || 1_000_000))),
    words: (tokens) => createFillerText(`words/${context.index}`, Number(tokens) || 10),
    ...Object.fromEntries(given),
  }
}

/** Names of the variables that every scenario has. */
export const SCENARIO_VARIABLE_NAMES = [
  'turn',
  'request',
  'model',
  'user',
  'result',
  'now',
  'random',
  'words',
] as const

/** Matches a variable such as `{{turn}}`, or an escaped `\{{`, which stands for the literal text `{{`. */
const VARIABLE_PATTERN = /\\\{\{|\{\{\s*([A-Za-z_]\w*)(?:\s+([^{}]*?))?\s*\}\}/g

function fillText(text: string, variables: ScenarioVariables): string {
  return text.replaceAll(VARIABLE_PATTERN, (whole, name: string | undefined, argument: string | undefined) =>
    name === undefined ? '{{' : (variables[name]?.(argument ?? '') ?? whole),
  )
}

function fillInput(input: JsonObject, variables: ScenarioVariables): JsonObject {
  const filled: unknown = JSON.parse(JSON.stringify(input), (_key, value: unknown) =>
    typeof value === 'string' ? fillText(value, variables) : value,
  )
  // The cast is safe because only strings were replaced.
  return filled as JsonObject
}

/** Lists the names of variables that a text uses and that are not in `known`. */
export function findUnknownVariables(text: string, known: ReadonlySet<string>): readonly string[] {
  return [...text.matchAll(VARIABLE_PATTERN)].flatMap(([, name]) =>
    name === undefined || known.has(name) ? [] : [name],
  )
}
