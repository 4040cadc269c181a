/** What the person typed, told apart from all else that stands under the role of the user. */
import { blocksOf, isText } from './block.ts'
import { isKnown, type SessionRecord } from './record.ts'

/** Commands, their output and notices of an interruption: written into the person's place by the program. */
const NOT_TYPED = /^\s*(?:<command-|<local-command-|<bash-|\[Request interrupted)/

/**
 * The text of the person in a record, or null where it has none. A record that answers a tool call may have
 * one too: what the person said while turning the call down.
 */
export function typedText(record: SessionRecord): string | null {
  if (!isKnown(record) || record.type !== 'user' || record.message.role !== 'user') return null
  if (record.isMeta === true || record.isCompactSummary === true) return null
  const typed = blocksOf(record.message.content).flatMap((block) => (isText(block) ? [block.text] : []))
  const texts = typed.filter((text) => text.trim() !== '' && !NOT_TYPED.test(text))
  return texts.length === 0 ? null : texts.join('\n')
}
