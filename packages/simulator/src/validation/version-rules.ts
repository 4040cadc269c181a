/** What the newer version of the API no longer takes. Fields that are gone altogether are in the shape. */
import { type Block, blocksOf, type Role } from '../api.ts'
import { invalid } from '../refusal.ts'
import type { Rule } from './rule.ts'

export const newerVersion: Rule = ({ body, gate }) => {
  if (gate.version === '2023-06-01') return null
  for (const [message, { role, content }] of body.messages.entries()) {
    for (const [index, block] of blocksOf(content).entries()) {
      const gone = whatIsGone(role, block)
      if (gone !== null) return invalid(`messages.${message}.content.${index}${gone}`)
    }
  }
  return null
}

function whatIsGone(role: Role, block: Block): string | null {
  if (role === 'assistant' && block.type === 'document')
    return ': `document` blocks can only be in `user` messages'
  return role === 'user' && block.type === 'text' && block.citations != null
    ? '.text.citations: Extra inputs are not permitted'
    : null
}
