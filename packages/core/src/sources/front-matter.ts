/**
 * The front matter of Markdown files that users keep beside their projects: rules, skills and slash commands. A small part
 * of YAML is read: texts on one line, in quotes or as indented lines, and lists. Anything else is left out.
 */

interface FrontMatter {
  /** The lines between the two `---`; none if the text has no front matter. */
  readonly lines: readonly string[]
  readonly body: string
}

/** Separates the front matter from the text after it. */
export function splitFrontMatter(text: string): FrontMatter {
  const matter = /^\ufeff?---[ \t]*\r?\n([\s\S]*?\n)?---[ \t]*(?:\r?\n|$)/.exec(text)
  if (matter === null) return { lines: [], body: text }
  return { lines: (matter[1] ?? '').split(/\r?\n/), body: text.slice(matter[0].length) }
}

/** Returns true if a text begins with a field of front matter that has no end, so that its fields would be lost. */
export function isFrontMatterOpen(text: string): boolean {
  return /^\ufeff?---[ \t]*\r?\n[\w-]+[ \t]*:/.test(text) && splitFrontMatter(text).body === text
}

interface FieldLines {
  /** What follows the colon. */
  readonly inline: string
  /** The lines after it that belong to it: indented ones, blank ones and items of a list. */
  readonly rest: readonly string[]
}

function findField(lines: readonly string[], name: string): FieldLines | null {
  const at = lines.findIndex(
    (line) => line.startsWith(name) && /^[ \t]*:(?:[ \t]|$)/.test(line.slice(name.length)),
  )
  if (at === -1) return null
  const after = lines.slice(at + 1)
  const end = after.findIndex((line) => !/^(?:[ \t]|-|#|$)/.test(line))
  const first = lines[at] ?? ''
  const inline = first.slice(first.indexOf(':') + 1).trim()
  return { inline, rest: after.slice(0, end === -1 ? after.length : end) }
}

/** Reads `name: text`, the text in quotes or not, or as the lines after it (`>` and `|` included). Null if it is not set. */
export function readMatterText(lines: readonly string[], name: string): string | null {
  const field = findField(lines, name)
  if (field === null) return null
  const { inline, rest } = field
  const more = rest.map((line) => line.trim())
  if (/^[|>][+-]?\d?$/.test(inline)) return more.join(inline.startsWith('|') ? '\n' : ' ').trim()
  const text = [inline, ...more.filter((line) => !line.startsWith('#'))].join(' ').trim()
  return unquote(text)
}

/** Reads `name: a, b`, `name: [a, b]`, on several lines too, or a list with a line for each. */
export function readMatterList(lines: readonly string[], name: string): readonly string[] {
  const field = findField(lines, name)
  if (field === null) return []
  const { inline, rest } = field
  const isOpen = inline.startsWith('[') && !inline.includes(']')
  const items =
    inline === '' || inline.startsWith('#')
      ? rest.flatMap((line) => /^[ \t]*-[ \t]*(.*)$/.exec(line)?.[1] ?? [])
      : isOpen
        ? splitOutsideBrackets([inline.slice(1), ...rest].join(' ').replace(/\][^\]]*$/, ''))
        : splitOutsideBrackets(inline.replace(/^\[(.*)\]$/, '$1'))
  return items.map((item) => unquote(item.trim())).filter((item) => item !== '')
}

function unquote(text: string): string {
  return text.replace(/^(["'])(.*)\1$/s, '$2')
}

/** Splits a text at its commas, but not inside braces or parentheses, as in `src/*.{ts,tsx}` or `Bash(a, b)`. */
function splitOutsideBrackets(text: string): readonly string[] {
  const parts = ['']
  let depth = 0
  for (const character of text) {
    if (character === '{' || character === '(') depth += 1
    if (character === '}' || character === ')') depth -= 1
    if (character === ',' && depth <= 0) parts.push('')
    else parts[parts.length - 1] += character
  }
  return parts
}
