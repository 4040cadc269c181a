/** Messages under the user's role that Codex wrote itself: the environment, instructions, notices. */
import { type Block, isText } from '@tidemark/core'

/** An element that holds the whole text. Codex's own are named in snake_case. */
const ELEMENT = /^<([a-z][\w-]*)[^>]*>/i
const NAMES_WITHOUT_UNDERSCORE = new Set(['skill', 'goal', 'plugins'])
const INSTRUCTIONS = '# AGENTS.md instructions'

/** Nothing in the message but what Codex wrote. */
export function isContext(blocks: readonly Block[]): boolean {
  const texts = blocks.filter(isText)
  return texts.length > 0 && texts.length === blocks.length && texts.every(({ text }) => isContextText(text))
}

function isContextText(text: string): boolean {
  const trimmed = text.trim()
  if (trimmed.startsWith(INSTRUCTIONS)) return true
  const name = ELEMENT.exec(trimmed)?.[1]
  if (name === undefined || !trimmed.endsWith(`</${name}>`)) return false
  return name.includes('_') || NAMES_WITHOUT_UNDERSCORE.has(name)
}
