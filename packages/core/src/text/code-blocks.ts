/** The code blocks of a Markdown text: which lines they take, a text without them, a text that ends outside of them; quotations. */

/** Matches the first line of a code block: the fence, and the name of the language. It may follow a list marker. */
const FENCE = /^\s*(?:(?:[-*+]|\d+[.)])\s+)?(`{3,}|~{3,})([^`]*)$/

interface Fence {
  /** Index of its line. */
  readonly index: number
  readonly fence: string
  /** True if it has no language and may thus end a block. */
  readonly isClosing: boolean
}

interface CodeBlock {
  readonly fence: string
  /** Indexes of the lines with its two fences. `last` is null if the block is never closed. */
  readonly first: number
  readonly last: number | null
}

/**
 * Lists the code blocks of a text. A block ends only at a fence of at least the same length without a language, so that
 * a block may contain other fences. After a fence that is never closed, the search goes on.
 */
function listCodeBlocks(lines: readonly string[]): readonly CodeBlock[] {
  const fences = lines.flatMap((line, index): readonly Fence[] => {
    const [, fence, language = ''] = FENCE.exec(line) ?? []
    return fence === undefined ? [] : [{ index, fence, isClosing: language.trim() === '' }]
  })
  const blocks: CodeBlock[] = []
  // Fences that nothing closes. Nothing closes a longer one either, so that the search takes time only once.
  const unclosed: string[] = []
  for (let at = 0; at < fences.length; at += 1) {
    const opening = fences[at]
    if (opening === undefined) continue
    const closes = ({ fence, isClosing }: Fence): boolean => isClosing && fence.startsWith(opening.fence)
    const isUnclosed = unclosed.some((fence) => opening.fence.startsWith(fence))
    let end = isUnclosed ? fences.length : at + 1
    while (end < fences.length && !closes(fences[end] as Fence)) end += 1
    blocks.push({ fence: opening.fence, first: opening.index, last: fences[end]?.index ?? null })
    if (end < fences.length) at = end
    else if (!isUnclosed) unclosed.push(opening.fence)
  }
  return blocks
}

/** Finds the lines of code blocks, with their fences. A fence that is never closed begins no block. */
export function findFencedLines(lines: readonly string[]): ReadonlySet<number> {
  const fenced = new Set<number>()
  for (const { first, last } of listCodeBlocks(lines))
    for (let line = first; last !== null && line <= last; line += 1) fenced.add(line)
  return fenced
}

/** Returns a text without its code blocks. A block that is never closed reaches to the end of the text. */
export function removeCodeBlocks(text: string): string {
  const lines = text.split('\n')
  const fenced = findFencedLines(lines)
  const open = listCodeBlocks(lines).find(({ last }) => last === null)?.first ?? lines.length
  return lines
    .filter((_, index) => index < open && !fenced.has(index))
    .join('\n')
    .replace(/\n{3,}/g, '\n\n')
    .trim()
}

/** Closes a code block that a text leaves open, so that what follows the text is not part of it. */
export function closeCodeBlock(text: string): string {
  const open = listCodeBlocks(text.split('\n')).find(({ last }) => last === null)
  return open === undefined ? text : `${text}\n${open.fence}`
}

/** Returns a text as a Markdown quotation. No line of it can be taken for a heading or an item around it. */
export function quoteBlock(text: string): string {
  return text
    .trim()
    .split(/\r\n|\r|\n/)
    .map((line) => `> ${line}`)
    .join('\n')
}

/** Puts a text into a code block whose fence is longer than any in the text. */
export function quoteCode(text: string): string {
  const fence = '`'.repeat(Math.max(3, ...[...text.matchAll(/`{3,}/g)].map(([run]) => run.length + 1)))
  return `${fence}\n${text}\n${fence}`
}
