/**
 * Blocks whose JSON text does not survive parse and stringify. Key order is part of a provider's cache key and
 * of bound thinking, so such a block is sent from its text. This finds them in a line as it was written.
 */
import { elementsOf, memberOf, survives } from './json-text.ts'
import type { RawBlock } from './record.ts'

/** The exact texts of the blocks of `message.content` in `line` that parse and stringify would change. */
export function rawBlocksIn(line: string): readonly RawBlock[] {
  const message = isOpenedBy(line, '{') ? memberOf(line, 'message') : undefined
  const content = isOpenedBy(message, '{') ? memberOf(message, 'content') : undefined
  if (!isOpenedBy(content, '[')) return []
  return elementsOf(content).flatMap((text, index) => (survives(text) ? [] : [{ index, text }]))
}

function isOpenedBy(text: string | undefined, bracket: '{' | '['): text is string {
  return text?.trimStart().startsWith(bracket) === true
}
