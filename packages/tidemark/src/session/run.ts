/** A turn of ours: what the person said, then the model and its tools until it calls no more. */
import {
  type Content,
  type Halt,
  isBlock,
  messagesOf,
  type SessionState,
  type TurnEvent,
  type TurnOutcome,
  type TurnRun,
  takeTurn,
} from '@tidemark/core'
import { show } from '../home/show.ts'
import { actRun, claim, type Desk, takeIn, told } from './desk.ts'
import { type EventStream, streamOf } from './event-stream.ts'
import { haltWords } from './halt-words.ts'
import { badOption, checkNames } from './option-names.ts'
import { tooLarge } from './prompt-fits.ts'
import { textOf } from './response.ts'
import type { SessionEvent } from './session-event.ts'
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
