/** What peers would send, spelled for the Messages API: roles that follow each other are one message, as adapters do. */
import type { ApiMessage } from '@tidemark/core/context/payload'
import type { Block } from '@tidemark/core/log/block'

export interface Spoken {
  readonly role: 'user' | 'assistant'
  readonly blocks: readonly Block[]
}

export function spell(spoken: readonly Spoken[]): readonly ApiMessage[] {
  const messages: { role: 'user' | 'assistant'; content: Block[] }[] = []
  for (const { role, blocks } of spoken) {
    const last = messages.at(-1)
    if (last?.role === role) last.content.push(...blocks)
    else if (blocks.length > 0) messages.push({ role, content: [...blocks] })
  }
  return messages
}

/** Nothing where there is nothing to say: the API takes no empty text. */
export function textBlocks(text: string): readonly Block[] {
  return text === '' ? [] : [{ type: 'text', text }]
}
