/** A turn of ours: what the person said, then the model and its tools until it calls no more. */
import { type Content, type Halt, type SessionState, type TurnOutcome, takeTurn } from '@tidemark/core'
import { claim, type Desk, deskRun, takeIn, told } from './desk.ts'
import { type EventStream, streamOf } from './event-stream.ts'
import { haltWords } from './halt-words.ts'
import { textOf } from './response.ts'
import type { SessionEvent } from './session-event.ts'
import { type GivenTools, toolsetOf } from './tools.ts'

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
  const tools = options.tools === undefined && options.runTool === undefined ? null : toolsetOf(options)
  const release = claim(desk, 'run')
  if (tools !== null) desk.tools = tools
  const stop = new AbortController()
  desk.callOff = () => stop.abort()
  const signal = options.signal === undefined ? stop.signal : AbortSignal.any([options.signal, stop.signal])
  return streamOf({
    events: turnEvents(desk, { prompt, signal, release }),
    onEvent: (event) => told(desk, event),
    callOff: () => stop.abort(),
  })
}

interface TurnWork {
  readonly prompt: Content | null
  readonly signal: AbortSignal
  readonly release: () => void
}

async function* turnEvents(desk: Desk, work: TurnWork): AsyncGenerator<SessionEvent, RunOutcome> {
  let text = ''
  try {
    const run = deskRun(desk, work.signal)
    await takeIn(desk, run)
    desk.pending = null
    const events = takeTurn(run, work.prompt)
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

function outcomeOf(outcome: TurnOutcome, text: string): RunOutcome {
  const { state: _, ...end }: TurnOutcome & { readonly state: SessionState } = outcome
  return end.ok ? { ok: true, text, stopReason: end.stopReason } : { ...end, message: haltWords(end) }
}
