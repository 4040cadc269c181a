/** Mastra: its two processors that shrink a prompt, at the stage where its agent runs them. What they do is transient. */
import { MessageList } from '@mastra/core/agent'
import { TokenLimiterProcessor, ToolCallFilter } from '@mastra/core/processors'
import { modelMessages, type PromptMessage, spellModelMessages, stepMessages } from './ai-sdk.ts'
import type { Contender, Conversation } from './contender.ts'

/** Both take more than this, none of which they read. */
interface Processor {
  processLLMRequest(request: never): Promise<unknown>
}

export const mastraLimiter: Contender = {
  name: 'Mastra TokenLimiterProcessor',
  kind: 'clear',
  call: 'limit 100,000, processLLMRequest; the stored messages stay whole, so each request is trimmed anew',
  carries: false,
  open: async (story) => conversation(new TokenLimiterProcessor({ limit: 100_000 }), modelMessages(story)),
}

export const mastraFilter: Contender = {
  name: 'Mastra ToolCallFilter',
  kind: 'clear',
  call: 'filterAfterToolSteps 3, processLLMRequest; the stored messages stay whole, so each request is filtered anew',
  carries: false,
  open: async (story) => conversation(new ToolCallFilter({ filterAfterToolSteps: 3 }), modelMessages(story)),
}

function conversation(processor: Processor, prompt: readonly PromptMessage[]): Conversation {
  const messageList = new MessageList({ threadId: 'bench' })
  return {
    ready: async () => async () => {
      const request = { prompt: [...prompt], state: {}, messageList }
      const sent = promptIn(await processor.processLLMRequest(request as never)) ?? prompt
      return {
        messages: () => spellModelMessages(sent),
        after: async (step) => conversation(processor, [...prompt, ...stepMessages(step)]),
      }
    },
  }
}

function promptIn(end: unknown): readonly PromptMessage[] | undefined {
  return (end as { readonly prompt?: readonly PromptMessage[] } | undefined)?.prompt
}
