/**
 * A script as data: turns that answer one request after the other, and turns that answer whenever their
 * condition holds. How a scenario is written in JSON or YAML is in `scenario/read-scenario.ts`.
 */
import type { JsonObject } from '../api.ts'
import type { Fault } from '../faults/fault.ts'
import { type Condition, holds } from './scenario/condition.ts'
import { fill, fillAll, type Variables, variablesOf } from './scenario/template.ts'
import type { Delays, Reply, ReplyBlock, Script, ScriptContext, ScriptRequest, StopReason } from './script.ts'
import { sessionKey } from './session-key.ts'
import { summariser } from './summariser.ts'
import { isSummaryRequest } from './summary/summary-request.ts'

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
