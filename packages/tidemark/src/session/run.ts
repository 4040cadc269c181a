/** A turn of ours: what the person said, then the model and its tools until it calls no more. */
import {
  type ApiMessage,
  type Content,
  type Halt,
  isBlock,
  messagesOf,
  prefixTokens,
  type SessionState,
  show,
  sizeOf,
  startCalibration,
  type TurnEvent,
  type TurnOutcome,
  type TurnRun,
  takeTurn,
} from '@tidemark/core'
import { badOption, checkNames } from '../platform/argument-errors.ts'
import { textOf } from './append.ts'
import { type EventStream, type SessionEvent, streamOf } from './events.ts'
import { actRun, claim, type Desk, hostOf, takeIn, told } from './open-session.ts'
import { checkRunnable, type GivenTools, type Toolset, toolsetOf } from './tools.ts'

export interface RunOptions extends GivenTools {
  readonly signal?: AbortSignal
}

/** Events as they come; `outcome` when it is over. Breaking off the loop calls the run off. */
export type Run = EventStream<SessionEvent, RunOutcome>

export type RunOutcome =
  | {
      readonly ok: true
      /** What the model said last. */
      readonly text: string
      /** Why it stopped, in the provider's words. */
      readonly stopReason: string | null
    }
  | (Halt & { readonly message: string })

/** Begins at once. */
export function runSession(desk: Desk, prompt: Content | null, options: RunOptions = {}): Run {
  checkNames('run', options, ['tools', 'runTool', 'signal'])
  checkPrompt(prompt)
  const tools = runTools(desk.tools, options)
  checkRunnable(tools)
  const release = claim(desk, 'run')
  desk.tools = tools
  const stop = new AbortController()
  return streamOf({
    events: turnEvents(desk, { prompt, signals: [options.signal, stop.signal], release }),
    onEvent: (event) => told(desk, event),
    callOff: () => stop.abort(),
  })
}

function checkPrompt(prompt: unknown): void {
  if (prompt === null || typeof prompt === 'string') return
  if (Array.isArray(prompt) && prompt.length > 0 && prompt.every(isBlock)) return
  throw badOption('prompt', `run: the prompt is ${show(prompt)}; expected a text, blocks, or null to go on.`)
}

/** What runs the calls may be given for tools that are known already. */
function runTools(known: Toolset, { tools, runTool }: RunOptions): Toolset {
  if (runTool !== undefined) return toolsetOf({ tools: tools ?? known.definitions, runTool })
  return tools === undefined ? known : toolsetOf({ tools })
}

interface TurnWork {
  readonly prompt: Content | null
  readonly signals: readonly (AbortSignal | undefined)[]
  readonly release: () => void
}

async function* turnEvents(desk: Desk, work: TurnWork): AsyncGenerator<SessionEvent, RunOutcome> {
  let text = ''
  try {
    const run = actRun(desk, ...work.signals)
    await takeIn(desk, run)
    desk.pending = null
    const refused = work.prompt === null ? null : tooLarge(desk, work.prompt)
    const events = refused === null ? takeTurn(run, work.prompt) : endedAtOnce(run, refused)
    for (;;) {
      const step = await events.next()
      if (step.done === true) return outcomeOf(step.value, text)
      if (step.value.type === 'answered') text = textOf(step.value.reply)
      yield step.value
    }
  } finally {
    work.release()
  }
}

async function* endedAtOnce(run: TurnRun, halt: Halt): AsyncGenerator<TurnEvent, TurnOutcome> {
  const outcome: TurnOutcome = { ...halt, state: run.state }
  yield { type: 'turn-ended', outcome }
  return outcome
}

function outcomeOf(outcome: TurnOutcome, text: string): RunOutcome {
  const { state: _, ...end }: TurnOutcome & { readonly state: SessionState } = outcome
  return end.ok
    ? { ok: true, text, stopReason: end.stopReason }
    : { ...end, message: haltWords(end, messagesOf(outcome.state.flat)) }
}

// A prompt that no compaction could make room for is refused before it is in the log, where it would stay.

/** Null where it fits, or where nobody knows the window. */
export function tooLarge(desk: Desk, prompt: Content): Halt | null {
  const { estimator, scaled, choice } = desk.fitted
  if (!scaled.known) return null
  const { effective } = scaled.lines
  const start = startCalibration(estimator.weights.start)
  const size = (tokens: number): number => sizeOf(start, tokens, desk.settings.policy.estimate).expected
  const said = size(estimator.content(prompt))
  const before = size(prefixTokens(desk.shared.state, hostOf(desk), estimator))
  if (said + before <= effective) return null
  const message = `The prompt has about ${counted(said)} tokens, and ${counted(before)} of the system prompt and tools stand before it: ${choice.id} takes ${counted(effective)}. It was not added to the session. Give it in parts, or where a tool can read it.`
  return { ok: false, reason: 'full', message }
}

function counted(tokens: number): string {
  return Math.ceil(tokens).toLocaleString('en-US')
}

// Why an act stopped short, in a sentence that says what to do.

/** `messages`: the conversation as it stands. */
export function haltWords(halt: Halt, messages: readonly ApiMessage[]): string {
  switch (halt.reason) {
    case 'conflict':
      return 'Another process wrote to the session meanwhile. Nothing of it was lost; try again.'
    case 'locked':
      return 'message' in halt.refusal ? halt.refusal.message : 'Another process holds the session.'
    case 'invalid': {
      if (messages.length === 0) return 'Nothing was said yet: append a prompt first.'
      if (messages.at(-1)?.role === 'assistant')
        return 'The model has answered, and nothing was said since: append a prompt first.'
      const [first] = halt.findings
      return `The provider would refuse the request: ${first?.path ?? ''}: ${first?.message ?? 'invalid'}.`
    }
    case 'failed':
      return halt.failure.message
    case 'aborted':
      return 'It was called off.'
    case 'call-limit':
      return `The turn made ${halt.calls} calls to the model and was halted. Run with null to go on.`
    case 'prefix':
    case 'full':
      return halt.message
  }
}
