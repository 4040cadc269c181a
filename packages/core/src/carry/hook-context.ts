/** What hooks add after a compaction: bounded, one attachment a hook, never shed. */
import { headWithin } from '../retrieve/fit-text.ts'
import { textOfAttachment } from '../view/attachment-text.ts'
import { type Carried, type CarryContext, keyFor } from './carrier.ts'

export interface HookOutput {
  readonly hook: string
  readonly text: string
}

/** Blank output adds nothing. */
export function hookContext(
  outputs: readonly HookOutput[],
  { budgets, measure }: Pick<CarryContext, 'budgets' | 'measure'>,
): readonly Carried[] {
  return outputs
    .filter(({ text }) => text.trim() !== '')
    .map(({ hook, text }) => {
      const key = keyFor('hooks', hook)
      const attachment = {
        type: 'hook_context',
        hook,
        content: bounded(text, budgets.hookOutputCharacters),
        key,
      }
      const tokens = measure(textOfAttachment(attachment))
      return {
        carrier: 'hooks',
        kind: 'session-start',
        key,
        attachment,
        tokens,
        source: hook,
        sheddable: null,
      }
    })
}

function bounded(text: string, characters: number): string {
  if (text.length <= characters) return text
  const head = headWithin(text, characters, (part) => part.length)
  return `${head}\n[cut: ${head.length} of ${text.length} characters are shown]`
}
