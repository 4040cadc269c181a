/** LangChain: clearing and summarising middleware, each called by its own hook as the agent does. */
import { AIMessage, type BaseMessage } from '@langchain/core/messages'
import { FakeListChatModel } from '@langchain/core/utils/testing'
import { ClearToolUsesEdit, contextEditingMiddleware, summarizationMiddleware } from 'langchain'
import type { Asked, Contender, Conversation } from './contender.ts'
import { langchainMessages, spellLangchain, stepMessages } from './langchain-messages.ts'
import { SUMMARY } from './story.ts'

type Hook = (messages: BaseMessage[]) => Promise<readonly BaseMessage[]>

export const langchainEditing: Contender = {
  name: 'LangChain contextEditingMiddleware',
  kind: 'clear',
  call: 'ClearToolUsesEdit, defaults: trigger 100,000 tokens, keep 3; wrapModelCall, which edits the state in place',
  carries: true,
  open: async (story) => conversation(editingHook(), langchainMessages(story)),
}

function editingHook(): Hook {
  const edit = new ClearToolUsesEdit({ trigger: { tokens: 100_000 }, keep: { messages: 3 } })
  const wrap = contextEditingMiddleware({ edits: [edit] }).wrapModelCall as unknown as (
    request: { readonly messages: BaseMessage[] },
    handler: (request: { readonly messages: BaseMessage[] }) => Promise<AIMessage>,
  ) => Promise<unknown>
  return async (messages) => {
    let sent: readonly BaseMessage[] = []
    const request = { messages, model: {}, state: {}, runtime: {}, tools: [] }
    await wrap(request, async (asked) => {
      sent = asked.messages
      return new AIMessage('')
    })
    return sent
  }
}

export const langchainSummary: Contender = {
  name: 'LangChain summarizationMiddleware',
  kind: 'summary',
  call: 'trigger 100,000 tokens, keep 20 messages, beforeModel; a scripted model answers at once',
  carries: true,
  open: async (story) => conversation(summaryHook(), langchainMessages(story)),
}

function summaryHook(): Hook {
  const model = new FakeListChatModel({ responses: [SUMMARY] })
  const options = { model, trigger: { tokens: 100_000 }, keep: { messages: 20 } }
  // Its types come to `never` under strict optional properties.
  const middleware = summarizationMiddleware(options as never)
  const before = middleware.beforeModel as unknown as (
    state: { readonly messages: BaseMessage[] },
    runtime: { readonly context: object },
  ) => Promise<{ readonly messages: readonly BaseMessage[] } | undefined>
  return async (messages) => {
    const update = await before({ messages }, { context: {} })
    // The first word of the update removes all that was there.
    return update === undefined ? messages : update.messages.slice(1)
  }
}

function conversation(hook: Hook, messages: readonly BaseMessage[]): Conversation {
  return {
    ready: async () => {
      const own = [...messages]
      return async (): Promise<Asked> => {
        const sent = await hook(own)
        return {
          messages: () => spellLangchain(sent),
          after: async (step) => conversation(hook, [...sent, ...stepMessages(step)]),
        }
      }
    },
  }
}
