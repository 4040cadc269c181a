/** One turn of Tidemark's engine as it happens for every request: answer and result into the log, room, request. */
import { finishModelCall, type PendingModelCall } from '@tidemark/core/engine/call-model'
import { measureContext } from '@tidemark/core/engine/measure-context'
import { readSessionState, type SessionState } from '@tidemark/core/engine/session-state'
import { appendUnlinkedRecords, type TurnContext } from '@tidemark/core/engine/session-writer'
import type { AssistantMessage } from '@tidemark/core/log/record'
import { toPayload } from '@tidemark/core/request/build-request'
import { prepareNextRequest } from '@tidemark/core/turn/turn'
import type { Asked, Conversation } from './contender.ts'
import type { Step } from './story.ts'
import { journalOver, type RoomyHost } from './tidemark-host.ts'

/** Where a session stands: a request is out, and this step is its answer. */
export interface Standing {
  readonly state: SessionState
  readonly answer: Answer | null
}

interface Answer {
  readonly opened: PendingModelCall
  readonly step: Step
  readonly message: AssistantMessage
}

export async function startSession(host: RoomyHost, prompt: string): Promise<Standing> {
  const run: TurnContext = {
    state: await readSessionState(journalOver([]), 'bench'),
    host,
    signal: undefined,
  }
  await drain(appendUnlinkedRecords(run, [{ type: 'user', message: { role: 'user', content: prompt } }]))
  return { state: run.state, answer: null }
}

/** What is timed of a turn. `prepare` comes between the records and the request. */
export async function takeTurn(
  host: RoomyHost,
  { state, answer }: Standing,
  prepare?: Prepare,
): Promise<Sent> {
  const run: TurnContext = { state, host, signal: undefined }
  host.timeAt(state.position)
  if (answer !== null) await say(run, answer)
  await prepare?.(run)
  const ready = await drain(prepareNextRequest(run, answer === null ? 'prompt' : 'call'))
  if ('ok' in ready) throw new Error(`no request: ${JSON.stringify(ready)}`)
  return { state: run.state, opened: ready }
}

export type Prepare = (run: TurnContext) => Promise<void>

export interface Sent {
  readonly state: SessionState
  readonly opened: PendingModelCall
}

async function say(run: TurnContext, { opened, step, message }: Answer): Promise<void> {
  const blocks = [
    { type: 'text', text: step.say },
    { type: 'tool_use', id: step.id, name: step.tool, input: step.input },
  ]
  const bodies = blocks.map((block) => ({
    type: 'assistant' as const,
    message: { ...message, content: [block] },
  }))
  await drain(finishModelCall(run, opened, { message, bodies, isInConversation: true }))
  const content = [{ type: 'tool_result', tool_use_id: step.id, content: step.result }]
  await drain(appendUnlinkedRecords(run, [{ type: 'user', message: { role: 'user', content } }]))
}

/** The answer to what was sent, with the usage that a provider would report. */
export function answeredBy(host: RoomyHost, { state, opened }: Sent, step: Step): Standing {
  const total = measureContext(state, host).expected
  const read = Math.min(opened.forecast.read, total)
  const usage = {
    input_tokens: 0,
    cache_read_input_tokens: read,
    cache_creation_input_tokens: total - read,
    output_tokens: 60,
  }
  const message = {
    id: `response-${step.id}`,
    role: 'assistant' as const,
    model: 'model-a',
    content: [],
    usage,
  }
  return { state, answer: { opened, step, message } }
}

/** Where a session stands, and where it stood a turn before. */
export interface Lived {
  readonly standing: Standing
  readonly before: Standing | null
}

/**
 * The same standing, nobody else's. A state that has gone on once is copied when it goes on again, which no real
 * session does and nothing timed should pay for: so the turn before is taken again.
 */
export async function freshStanding(host: RoomyHost, { standing, before }: Lived): Promise<Standing> {
  if (before === null || standing.answer === null) return standing
  return answeredBy(host, await takeTurn(host, before), standing.answer.step)
}

export function openConversation(host: RoomyHost, lived: Lived): Conversation {
  let isUsed = false
  return {
    ready: async () => {
      const from = isUsed ? await freshStanding(host, lived) : lived.standing
      isUsed = true
      return async () => askedOf(host, await takeTurn(host, from), from)
    },
  }
}

function askedOf(host: RoomyHost, sent: Sent, before: Standing): Asked {
  return {
    messages: () => toPayload(sent.opened.request).messages,
    after: async (step) => openConversation(host, { standing: answeredBy(host, sent, step), before }),
  }
}

export async function drain<T>(events: AsyncGenerator<unknown, T>): Promise<T> {
  for (;;) {
    const next = await events.next()
    if (next.done === true) return next.value
  }
}
