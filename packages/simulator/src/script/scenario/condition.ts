/** When a turn of a scenario answers: all that is said here must hold. */
import { lastResults, lastUserText } from '../said.ts'
import type { ScriptContext, ScriptRequest } from '../script.ts'
import { isSummaryRequest } from '../summary/summary-request.ts'

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
