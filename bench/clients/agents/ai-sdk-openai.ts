/** `ai` with `@ai-sdk/openai` and `@ai-sdk/openai-compatible`: `generateText` and `streamText`, which run the tools themselves. */
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import type { Client, ClientProvider } from '../client.ts'
import { type Choose, readConnection, runStream, runText } from './ai-sdk.ts'

/** As it is by default: the provider stores responses, and later requests name their items by `item_reference`. */
const chooseStored: Choose = (task) => ({
  model: createOpenAI(readConnection(task))(task.model),
  maxRetries: 0,
})

const chooseUnstored: Choose = (task) => ({
  ...chooseStored(task),
  providerOptions: { openai: { store: false, include: ['reasoning.encrypted_content'] } },
})

const chooseChat: Choose = (task) => ({
  model: createOpenAI(readConnection(task)).chat(task.model),
  maxRetries: 0,
})

const chooseCompatible: Choose = (task) => ({
  model: createOpenAICompatible({ name: 'server', includeUsage: true, ...readConnection(task) })(task.model),
  maxRetries: 0,
})

const GPT: ClientProvider = { api: 'responses', model: 'gpt-6-sol', thinkingTokens: 120 }
const CHAT: ClientProvider = { api: 'chat', model: 'gpt-4.1' }
const SERVER: ClientProvider = { api: 'chat', model: 'gpt-5.4', dialect: 'vllm', thinkingTokens: 120 }

const OPENAI_CHOICES: readonly (readonly [name: string, choose: Choose, provider: ClientProvider])[] = [
  ['openai, item_reference', chooseStored, GPT],
  ['openai, store: false', chooseUnstored, GPT],
  ['openai.chat', chooseChat, CHAT],
  ['openai-compatible on vLLM', chooseCompatible, SERVER],
]

export const aiSdkOpenaiClients: readonly Client[] = OPENAI_CHOICES.flatMap(([name, choose, provider]) =>
  [false, true].map(
    (isStream): Client => ({
      name: `AI SDK, ${name}, ${isStream ? 'streamText' : 'generateText'}`,
      door: 'fetch',
      caches: true,
      provider,
      isStream,
      run: (task) => (isStream ? runStream : runText)(task, choose),
    }),
  ),
)
