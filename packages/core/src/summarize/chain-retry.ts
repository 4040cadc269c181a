/** After an answer that was no summary: what to do otherwise, for no request is sent twice. */
import type { Ask, AskFailure, ChainStep, DirectAsk, FallbackReason } from './ask.ts'
import { afterOverflow } from './chain-overflow.ts'
import { type Chain, stepped, summarisedOf } from './chain-state.ts'

export interface Refusal {
  readonly reason: string
  readonly message: string
  /** The call itself failed; otherwise its answer was refused. */
  readonly failed: boolean
  readonly gap?: AskFailure['gap']
}

export function afterRefusal(chain: Chain, ask: Ask, refusal: Refusal): Chain {
  const told = recorded(chain, ask, refusal)
  if (ask.kind === 'block') return { ...told, stage: 'fork' }
  if (ask.kind === 'direct' && ask.part !== null) return afterPart(told, ask.part, refusal)
  if (isOverflow(refusal)) return afterOverflow(told, refusal.gap)
  return ask.kind === 'fork' ? { ...told, stage: 'direct' } : retried(told, refusal)
}

/** A request that could not be made is no call, and a fork or block that could not is no failure either. */
function recorded(chain: Chain, { rung, kind }: Ask, refusal: Refusal): Chain {
  const { reason, message } = refusal
  const unmade = reason === 'unavailable'
  const outcome = unmade ? 'skipped' : refusal.failed ? 'failed' : 'refused'
  const step: ChainStep = { rung, kind, outcome, reason, message }
  const next = { ...stepped(chain, step), calls: chain.calls - (unmade ? 1 : 0) }
  return unmade && kind !== 'direct' ? next : { ...next, fallbackReason: fallbackOf(refusal) }
}

function fallbackOf(refusal: Refusal): FallbackReason {
  if (isOverflow(refusal)) return 'prompt_too_long'
  return refusal.failed ? 'api_error' : 'no_summary'
}

function isOverflow({ reason, failed }: Refusal): boolean {
  return failed ? reason === 'overflow' || reason === 'too-large' : reason === 'window-full'
}

/** The same call would fail the same way, whatever it says. */
const HOPELESS: ReadonlySet<string> = new Set(['auth', 'billing', 'permission', 'not-found'])

function isHopeless({ reason, failed }: Refusal): boolean {
  return failed && HOPELESS.has(reason)
}

/** What asks for the answer to be given otherwise; from the second time on it is asked without tools anyway. */
const WITHOUT_TOOLS: ReadonlySet<string> = new Set([
  'tool-call',
  'tool-protocol',
  'invalid-request',
  'thinking-binding',
  'unavailable',
])

function retried(chain: Chain, refusal: Refusal): Chain {
  const { own, direct, policy } = chain.context
  const attempts = chain.attempts + 1
  const canSwitch = !chain.usesOwn && own.model !== direct.model
  if (attempts > policy.direct.retries || (isHopeless(refusal) && !canSwitch))
    return { ...chain, stage: 'local' }
  const switched = isHopeless(refusal) ? { usesOwn: true, window: own.window } : {}
  const asText = chain.asText || attempts > 1 || WITHOUT_TOOLS.has(refusal.reason)
  return { ...chain, ...switched, stage: 'direct', attempts, asText, remark: remarkOn(refusal, attempts) }
}

function remarkOn({ reason, message, failed }: Refusal, attempts: number): string {
  const start = `This is attempt ${attempts + 1}.`
  if (failed) return `${start} The attempt before it brought no answer.`
  if (reason === 'cut-off' || reason === 'too-large')
    return `${start} The answer before it was too long: ${message} Keep the analysis short, and in the summary only what matters.`
  return `${start} The answer before it could not be used: ${message}`
}

function afterPart(chain: Chain, part: NonNullable<DirectAsk['part']>, refusal: Refusal): Chain {
  if (part === 'join') return { ...chain, stage: 'together' }
  const shown = chain.parts?.parts[part.number - 1] ?? []
  const next = partDone(chain, null)
  const covered = [...chain.covered, ...summarisedOf(chain, shown)]
  return isHopeless(refusal) ? { ...next, stage: 'local' } : { ...next, covered }
}

/** On to the next part, or to putting them together. */
export function partDone(chain: Chain, summary: string | null): Chain {
  const { parts } = chain
  if (parts === null) return { ...chain, stage: 'local' }
  const summaries = summary === null ? parts.summaries : [...parts.summaries, summary]
  const told = { ...parts, asked: parts.asked + 1, summaries }
  return { ...chain, parts: told, stage: told.asked < told.parts.length ? 'parts' : 'join' }
}
