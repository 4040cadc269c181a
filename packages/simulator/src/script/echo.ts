/** Says back the last thing the person said: the smallest script there is. */
import { blocksOf, textField } from '../api.ts'
import type { Script } from './script.ts'

export const echo: Script = (request) => {
  const last = request.messages.findLast((message) => message.role === 'user')
  const said = blocksOf(last?.content)
    .filter((block) => block.type === 'text')
    .map((block) => textField(block, 'text'))
  return { blocks: [{ type: 'text', text: said.join('\n') || 'ok' }] }
}
