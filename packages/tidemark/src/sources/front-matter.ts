/**
 * Parses the front matter of Markdown files that users keep beside their projects: rules, skills, slash commands and
 * agents. It is YAML, of which only texts and lists of texts are kept. A hostile file is refused with one line and
 * takes no longer than a good one.
 */
import type { Document, Node } from 'yaml'

/** The fields by name. Scalars are kept as text (`true`, `10`), since no field of these files needs more. */
export type FrontMatter = ReadonlyMap<string, string | readonly string[]>

type FrontMatterResult =
  | { readonly ok: true; readonly matter: FrontMatter; readonly body: string }
  | { readonly ok: false; readonly why: string }

/** The parser takes up to 100 ms for 10,000 characters of hostile YAML; ordinary front matter has a few hundred characters. */
const MAX_CHARACTERS = 10_000

/**
 * Separates the front matter from the text after it. Not ok, with the reason, if it has no end, is too long or is not
 * YAML. A text that begins with `---` but has no field, as Markdown may, has no front matter. A one-line value that is
 * not YAML, such as `paths: **\/*.ts` or `description: Note: this`, is kept as text.
 */
export async function parseFrontMatter(text: string): Promise<FrontMatterResult> {
  const found = /^\ufeff?---[ \t]*\r?\n([\s\S]*?\n)?---[ \t]*(?:\r?\n|$)/.exec(text)
  if (found === null) {
    if (/^\ufeff?---[ \t]*\r?\n[\w-]+[ \t]*:/.test(text))
      return { ok: false, why: 'its front matter has no end (a line with ---)' }
    return { ok: true, matter: new Map(), body: text }
  }
  const source = found[1] ?? ''
  const body = text.slice(found[0].length)
  if (source.length > MAX_CHARACTERS)
    return { ok: false, why: `its front matter has more than ${MAX_CHARACTERS} characters` }
  const fields = await readFields(source)
  if (typeof fields === 'string') return { ok: false, why: `its front matter is not valid YAML: ${fields}` }
  return { ok: true, matter: fields ?? new Map(), body: fields === null ? text : body }
}

/** Reads a field as one text. Null if it is not set or is a list. */
export function readMatterText(matter: FrontMatter, name: string): string | null {
  const value = matter.get(name)
  return typeof value === 'string' ? value.trim() : null
}

/** Reads a field as a list: one of YAML, or a text with commas between its items. */
export function readMatterList(matter: FrontMatter, name: string): readonly string[] {
  const value = matter.get(name) ?? []
  const items = typeof value === 'string' ? splitOutsideBrackets(value.replace(/^\[(.*)\]$/s, '$1')) : value
  return items.map((item) => item.trim().replace(/^(["'])(.*)\1$/s, '$2')).filter((item) => item !== '')
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

type Yaml = typeof import('yaml')

/** Returns the fields; null if the text has none; the problem as text if it is not YAML. */
async function readFields(source: string): Promise<FrontMatter | null | string> {
  // Loaded with the first such file, because the library must start fast.
  const yaml = await import('yaml')
  const fields = collectFields(yaml, source)
  if (typeof fields !== 'string') return fields
  const quoted = collectFields(yaml, quoteBrokenValues(yaml, source))
  return typeof quoted === 'string' ? fields : quoted
}

function collectFields(yaml: Yaml, source: string): FrontMatter | null | string {
  try {
    const document = yaml.parseDocument(source, {
      schema: 'failsafe',
      prettyErrors: false,
      logLevel: 'silent',
    })
    const [error] = document.errors
    if (error !== undefined) return describeProblem(source, error.pos[0], error.message)
    if (document.contents === null) return new Map()
    if (!yaml.isMap(document.contents)) return null
    const fields = new Map<string, string | readonly string[]>()
    for (const { key, value } of document.contents.items) {
      const name = readScalar(yaml, document, key)
      const kept = readValue(yaml, document, value)
      if (name !== null && kept !== null) fields.set(name, kept)
    }
    return fields
  } catch (error) {
    return describeProblem(source, 0, error instanceof Error ? error.message : String(error))
  }
}

/**
 * Values are read one level deep, so that aliases cannot make them larger than the file. A map becomes an empty list: a
 * field that is set must not count as unset, because that could allow more.
 */
function readValue(yaml: Yaml, document: Document, value: unknown): string | readonly string[] | null {
  const node = resolveNode(yaml, document, value)
  if (yaml.isMap(node)) return []
  if (!yaml.isSeq(node)) return readScalar(yaml, document, node)
  return node.items.flatMap((item) => readScalar(yaml, document, item) ?? [])
}

function readScalar(yaml: Yaml, document: Document, value: unknown): string | null {
  const node = resolveNode(yaml, document, value)
  if (!yaml.isScalar(node)) return null
  const isNull = node.type === 'PLAIN' && /^(?:~|null|Null|NULL)$/.test(String(node.value))
  return isNull ? null : String(node.value ?? '')
}

/** Throws if an alias has no target. */
function resolveNode(yaml: Yaml, document: Document, value: unknown): Node | null {
  if (!yaml.isAlias(value)) return yaml.isNode(value) ? value : null
  const node = value.resolve(document)
  if (node === undefined) throw new Error(`*${value.source} names no anchor; put the value in quotes`)
  return node
}

/** Quotes one-line values that are not YAML. Values that look like a list or a quotation stay errors. */
function quoteBrokenValues(yaml: Yaml, source: string): string {
  const lines = source.split(/\r?\n/)
  return lines
    .map((line, index) => {
      const [, name, value = ''] = /^([\w-]+:[ \t]+)([^\s"'].*)$/.exec(line) ?? []
      const isAlone = !/^[ \t]/.test(lines[index + 1] ?? '')
      if (name === undefined || value.startsWith('- ') || !isAlone) return line
      return typeof collectFields(yaml, line) === 'string' ? name + JSON.stringify(value.trimEnd()) : line
    })
    .join('\n')
}

function describeProblem(source: string, offset: number, message: string): string {
  // Line 1 of the file is `---`.
  const line = source.slice(0, offset).split('\n').length + 1
  const text = message.replaceAll(/[\p{Cc}\s]+/gu, ' ').slice(0, 120)
  return `line ${line}: ${/call stack/.test(text) ? 'Values are nested too deeply' : text}`
}
