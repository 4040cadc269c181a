/** deepagents: its summarising middleware, which saves what it takes away to a file; here one in memory. */
import { AIMessage, type BaseMessage } from '@langchain/core/messages'
import { FakeListChatModel } from '@langchain/core/utils/testing'
import { createSummarizationMiddleware } from 'deepagents'
import type { Asked, Contender, Conversation } from './contender.ts'
import { langchainMessages, spellLangchain, stepMessages } from './langchain-messages.ts'
import { SUMMARY } from './story.ts'

export const deepagentsSummary: Contender = {
  name: 'deepagents createSummarizationMiddleware',
  kind: 'summary',
  call: 'trigger 100,000 tokens, keep 20 messages, wrapModelCall; a scripted model answers at once, history saved in memory',
  carries: true,
  open: async (story) => conversation({ state: {}, files: new Map() }, langchainMessages(story)),
}

/** What the agent keeps beside the messages. */
interface Kept {
  readonly state: object
  readonly files: ReadonlyMap<string, string>
}

interface Request {
  readonly messages: readonly BaseMessage[]
}

type Wrap = (request: Request, handler: (request: Request) => Promise<AIMessage>) => Promise<unknown>

const model = new FakeListChatModel({ responses: [SUMMARY] })

function conversation({ state, files }: Kept, messages: readonly BaseMessage[]): Conversation {
  return {
    ready: async () => {
      const own = new Map(files)
      const wrap = wrapOver(own)
      const request = { messages: [...messages], model, state, runtime: {}, tools: [] }
      return async (): Promise<Asked> => {
        let sent: readonly BaseMessage[] = []
        const end = await wrap(request, async (asked) => {
          sent = asked.messages
          return new AIMessage('')
        })
        const kept = { state: { ...state, ...updateIn(end) }, files: own }
        return {
          messages: () => spellLangchain(sent),
          after: async (step) => conversation(kept, [...messages, ...stepMessages(step)]),
        }
      }
    },
  }
}

function wrapOver(files: Map<string, string>): Wrap {
  const middleware = createSummarizationMiddleware({
    model,
    backend: memoryBackend(files) as never,
    trigger: { type: 'tokens', value: 100_000 },
    keep: { type: 'messages', value: 20 },
  })
  return middleware.wrapModelCall as unknown as Wrap
}

function updateIn(end: unknown): object {
  return (end as { readonly update?: object }).update ?? {}
}

/** As much of a backend as the middleware asks for. */
function memoryBackend(files: Map<string, string>): object {
  return {
    read: (path: string) => ({ content: files.get(path) ?? '' }),
    write: (path: string, text: string) => {
      files.set(path, text)
      return { path }
    },
    edit: (path: string, _: string, text: string) => {
      files.set(path, text)
      return { path }
    },
    downloadFiles: (paths: readonly string[]) =>
      paths.map((path) => {
        const text = files.get(path)
        return text === undefined
          ? { path, content: null, error: 'file_not_found' }
          : { path, content: new TextEncoder().encode(text), error: null }
      }),
    uploadFiles: (given: readonly (readonly [string, Uint8Array])[]) =>
      given.map(([path, bytes]) => {
        files.set(path, new TextDecoder().decode(bytes))
        return { path, error: null }
      }),
  }
}
