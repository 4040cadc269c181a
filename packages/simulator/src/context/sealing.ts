/** Sealing what a model has thought: the text that may be shown, and the signature that carries the rest. */
import { type Block, textField } from '../api.ts'
import type { Ids } from '../ids.ts'
import { textTokens } from '../tokenizer.ts'
import type { PrefixMark } from './signature.ts'
import { type Sealer, textMark } from './signature.ts'

export interface SealingInput {
  readonly blocks: readonly Block[]
  readonly mark: PrefixMark
  readonly model: string
  readonly organization: string
  readonly response: string
  readonly previous: string | null
  readonly behind: string | null
  readonly display: 'summarized' | 'omitted'
}

/** The blocks with every thought signed; text of thinking is left out where it is not to be shown. */
export function sealThinking(input: SealingInput, sealer: Sealer, ids: Ids): readonly Block[] {
  const of = input.blocks.filter(isUnsigned).length
  let { previous } = input
  return input.blocks.map((block) => {
    if (!isUnsigned(block)) return block
    const thought = textField(block, block.type === 'thinking' ? 'thinking' : 'data')
    const shown = block.type === 'thinking' && input.display === 'summarized' ? thought : ''
    const id = ids.next('thk')
    const { system, tools, messages } = input.mark
    const signature = sealer.seal({
      kind: 'thinking',
      id,
      system,
      tools,
      messages,
      model: input.model,
      organization: input.organization,
      tokens: textTokens(thought),
      shown: textMark(shown),
      previous,
      behind: input.behind,
      response: input.response,
      of,
    })
    previous = id
    if (block.type === 'redacted_thinking') return { type: 'redacted_thinking', data: signature }
    return { type: 'thinking', thinking: shown, signature }
  })
}

function isUnsigned(block: Block): boolean {
  return (block.type === 'thinking' && !block.signature) || block.type === 'redacted_thinking'
}
