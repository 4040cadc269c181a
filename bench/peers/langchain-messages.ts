/** The story in the messages of LangChain, which deepagents takes too, and back. */
import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from '@langchain/core/messages'
import type { ApiMessage } from '@tidemark/core/context/payload'
import type { Block } from '@tidemark/core/log/block'
import { type Spoken, spell, textBlocks } from './spelling.ts'
import type { Step, Story } from './story.ts'

export function langchainMessages({ prompt, steps }: Story): readonly BaseMessage[] {
  return [new HumanMessage(prompt), ...steps.flatMap(stepMessages)]
}

export function stepMessages({ id, tool, input, result, say }: Step): readonly BaseMessage[] {
  return [
    new AIMessage({ content: say, tool_calls: [{ id, name: tool, args: input, type: 'tool_call' }] }),
    new ToolMessage({ content: result, tool_call_id: id, name: tool }),
  ]
}

export function spellLangchain(messages: readonly BaseMessage[]): readonly ApiMessage[] {
  return spell(messages.map(spokenOf))
}

function spokenOf(message: BaseMessage): Spoken {
  const text = String(message.content)
  if (ToolMessage.isInstance(message))
    return {
      role: 'user',
      blocks: [{ type: 'tool_result', tool_use_id: message.tool_call_id, content: text }],
    }
  if (!AIMessage.isInstance(message)) return { role: 'user', blocks: textBlocks(text) }
  const calls = (message.tool_calls ?? []).map(
    ({ id, name, args }): Block => ({ type: 'tool_use', id, name, input: args }),
  )
  return { role: 'assistant', blocks: [...textBlocks(text), ...calls] }
}
