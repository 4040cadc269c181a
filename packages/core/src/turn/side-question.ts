/**
 * Asks the model a question beside the conversation: the request continues the conversation's cached prefix, and
 * neither question nor answer is added to the conversation. Only the cost is logged.
 */

import type { TurnEvent, TurnFailure } from '../engine/events.ts'
import { buildNextRequest } from '../engine/next-request.ts'
import type { TurnContext } from '../engine/session-writer.ts'
import { buildForkRequest, measureForkCacheRead, runSideCall } from '../engine/side-call.ts'
import { isTextBlock, toBlocks } from '../log/block.ts'
import type { AssembledRequest } from '../request/build-request.ts'
import { createForkRequest, type ForkMessage } from '../request/fork-request.ts'
import { listToolCalls } from './run-tools.ts'

/** Query source (label) of side questions. */
const SIDE_QUESTION_SOURCE = 'side_question'

type SideAnswer = { readonly ok: true; readonly text: string } | UnansweredQuestion | TurnFailure

/** A question that got no answer, although nothing failed. */
export interface UnansweredQuestion {
  readonly ok: false
  readonly reason: 'no-answer' | 'nothing-sent'
  readonly message: string
}

/** Asks one question, with one model call. Tools are not run: if the model asks for one, there is no answer. */
export async function* askSideQuestion(
  turn: TurnContext,
  question: string,
): AsyncGenerator<TurnEvent, SideAnswer> {
  const request = buildSideRequest(turn, question)
  if ('ok' in request) return request
  const { source: forkOf } = turn.host
  const call = { request, source: SIDE_QUESTION_SOURCE, forkOf }
  const result = yield* runSideCall(turn, call)
  const { answer } = result
  if (!answer.ok) return answer
  yield { type: 'fork', fork: measureForkCacheRead(SIDE_QUESTION_SOURCE, answer.reply, result) }
  const text = toBlocks(answer.reply.message.content)
    .filter(isTextBlock)
    .map((block) => block.text)
    .join('')
  if (text.trim() !== '') return { ok: true, text }
  const wanted = listToolCalls(answer.reply).map(({ call: { name } }) => name)
  const why =
    wanted.length === 0 ? 'The model gave no answer.' : `The model wanted to use ${wanted.join(', ')}.`
  return {
    ok: false,
    reason: 'no-answer',
    message: `${why} A side question is answered from the conversation alone, without tools: ask it in the conversation instead.`,
  }
}

function buildSideRequest(turn: TurnContext, question: string): AssembledRequest | SideAnswer {
  const { state, host } = turn
  const messages = createQuestion(question)
  const fork = buildForkRequest(state, { source: SIDE_QUESTION_SOURCE, messages }, host)
  if (fork.ok) return fork.request
  const { current } = state.prefix
  if (current === null)
    return {
      ok: false,
      reason: 'nothing-sent',
      message: 'The conversation has not begun: nothing could be asked about it. Run a prompt first.',
    }
  // Nothing was sent since the session was opened or rewritten, so the request is built as the next one would be.
  const { request } = buildNextRequest(state, current, host)
  return createForkRequest(request, messages, { profile: host.profile, ttl: request.ttl })
}

/** Creates the message of the question. */
function createQuestion(question: string): readonly ForkMessage[] {
  const text = `A question beside the work, to be answered at once from what you know already, without any tool. Afterwards the work goes on as if it had not been asked. ${question}`
  return [{ role: 'user', content: [{ type: 'text', text }] }]
}
