/** Text of the model, of tools and of files for the screen, without control sequences, even if it arrives in pieces. */
import { removeControlCharacters } from '@tidemark/terminal/render/text'

/**
 * Makes text of the model, a tool or a file safe to print on several lines, and replaces tabs by four spaces. Secrets stay in it.
 */
export function toScreenText(text: string): string {
  return removeControlCharacters(text.replaceAll(COMMAND_STRING, '')).replaceAll('\t', '    ')
}

/** A title, a clipboard or another command to the terminal, with its text. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must go
const COMMAND_STRING = /\u001b[\]PX^_][^\u0007\u001b\n]*(?:\u0007|\u001b\\)/g

interface GrowingText {
  text: string
  /** The beginning of a control sequence whose end has not arrived. */
  held?: string
}

/** Appends a piece to `item.text` without control sequences. An incomplete sequence waits in `item.held` for the next piece. */
export function appendScreenText(item: GrowingText, piece: string): void {
  const text = (item.held ?? '') + piece
  const end = text.search(UNFINISHED_SEQUENCE)
  const cut = end < 0 || text.length - end > MAX_HELD ? text.length : end
  item.text += toScreenText(text.slice(0, cut))
  item.held = text.slice(cut)
}

/** Longer than any real sequence: what seems to be one is then text. */
const MAX_HELD = 10_000

/** Matches an incomplete sequence, or half of a line end, at the end of a text. */
const UNFINISHED_SEQUENCE =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
  /(?:\u001b(?:[\]PX^_][^\u0007\u001b\n]*\u001b?|[[\]()#;?]*[\d;]*)|\u009b[[\]()#;?]*[\d;]*|\r)$/
