/** What is measured of every library, ours included: a conversation that is asked for its next request. */
import type { ApiMessage } from '@tidemark/core/context/payload'
import type { Step, Story } from './story.ts'

export interface Contender {
  readonly name: string
  /** `clear`: takes tool results or messages away. `summary`: puts a summary in their place. */
  readonly kind: 'clear' | 'summary' | 'both'
  /** How it is called and with which settings. */
  readonly call: string
  /** What one request leaves is what the next starts from, as in the library's own loop. */
  readonly carries: boolean
  readonly open: (story: Story) => Promise<Conversation>
}

export interface Conversation {
  /** Readies one request, which is not timed. What it gives back makes that request, once: that is timed. */
  readonly ready: () => Promise<Ask>
}

export type Ask = () => Promise<Asked>

export interface Asked {
  /** What would be sent, as the Messages API takes it. Not timed. */
  readonly messages: () => readonly ApiMessage[]
  /** The conversation after this request, its answer and the result of the tool. Not timed. */
  readonly after: (step: Step) => Promise<Conversation>
}

export async function ask(conversation: Conversation): Promise<Asked> {
  const request = await conversation.ready()
  return request()
}
