/** AI SDK: `pruneMessages` in `prepareStep`, as its guide to long loops has it. */
import type { ApiMessage } from '@tidemark/core/context/payload'
import type { Block } from '@tidemark/core/log/block'
import { type ModelMessage, pruneMessages } from 'ai'
import type { Contender, Conversation } from './contender.ts'
import { type Spoken, spell, textBlocks } from './spelling.ts'
import type { Step, Story } from './story.ts'

const THRESHOLD = 100_000

export const aiSdk: Contender = {
  name: 'AI SDK pruneMessages',
  kind: 'clear',
  call: 'prepareStep: above 100,000 tokens by JSON length / 4, toolCalls before-last-3-messages, empty messages removed',
  carries: true,
  open: async (story) => conversation(modelMessages(story)),
}

export function modelMessages({ prompt, steps }: Story): readonly ModelMessage[] {
  return [{ role: 'user', content: [{ type: 'text', text: prompt }] }, ...steps.flatMap(stepMessages)]
}

export function stepMessages({ id, tool, input, result, say }: Step): readonly ModelMessage[] {
  return [
    {
      role: 'assistant',
      content: [
        { type: 'text', text: say },
        { type: 'tool-call', toolCallId: id, toolName: tool, input },
      ],
    },
    {
      role: 'tool',
      content: [
        { type: 'tool-result', toolCallId: id, toolName: tool, output: { type: 'text', value: result } },
      ],
    },
  ]
}

function conversation(messages: readonly ModelMessage[]): Conversation {
  return {
    ready: async () => async () => {
      const sent = prepareStep([...messages])
      return {
        messages: () => spellModelMessages(sent),
        after: async (step) => conversation([...sent, ...stepMessages(step)]),
      }
    },
  }
}

/** What it returns is what later steps start from. */
function prepareStep(messages: ModelMessage[]): readonly ModelMessage[] {
  if (JSON.stringify(messages).length / 4 <= THRESHOLD) return messages
  return pruneMessages({ messages, toolCalls: 'before-last-3-messages', emptyMessages: 'remove' })
}

/** A message of the AI SDK or of a provider's prompt, which Mastra hands to its processors. */
export interface PromptMessage {
  readonly role: string
  readonly content: unknown
}

export function spellModelMessages(messages: readonly PromptMessage[]): readonly ApiMessage[] {
  return spell(messages.map(spokenOf))
}

function spokenOf({ role, content }: PromptMessage): Spoken {
  const parts = typeof content === 'string' ? [{ type: 'text', text: content }] : (content as readonly Part[])
  return { role: role === 'assistant' ? 'assistant' : 'user', blocks: parts.flatMap(blockOf) }
}

interface Part {
  readonly type: string
  readonly text?: string
  readonly toolCallId?: string
  readonly toolName?: string
  readonly input?: unknown
  readonly output?: { readonly value?: unknown }
}

function blockOf({ type, text = '', toolCallId, toolName, input, output }: Part): readonly Block[] {
  if (type === 'text') return textBlocks(text)
  if (type === 'tool-call') return [{ type: 'tool_use', id: toolCallId, name: toolName, input }]
  if (type === 'tool-result')
    return [{ type: 'tool_result', tool_use_id: toolCallId, content: String(output?.value) }]
  throw new Error(`no part of the story: ${type}`)
}
