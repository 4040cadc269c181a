/**
 * Converts HTML to readable text in the style of Markdown: headings, links, lists, code and table rows are kept;
 * scripts, styles and layout are dropped. Reads the page once from front to back, whatever it contains.
 */
import { finished } from 'node:stream/promises'

/** Elements whose content is not shown. */
const DROPPED = new Set([
  'script',
  'style',
  'noscript',
  'template',
  'svg',
  'iframe',
  'object',
  'select',
  'title',
])
/** Elements that begin and end a paragraph. */
const PARAGRAPHS = new Set(
  `address article aside blockquote body div dl fieldset figure footer form header hr main nav ol p section table ul
  details summary figcaption`.split(/\s+/),
)
/** Text that replaces the beginning of an element: a new line, or the border of a table cell. */
const BEGINNINGS: ReadonlyMap<string, string> = new Map([
  ...['br', 'caption', 'dd', 'dt', 'tr'].map((name) => [name, '\n'] as const),
  ...['td', 'th'].map((name) => [name, ' | '] as const),
])

interface HtmlText {
  /** The text of the title element, on one line; null if there is none. */
  readonly title: string | null
  readonly text: string
}

/** Maximum characters of a title that are shown. */
const MAX_TITLE = 500

/** Converts a page. Relative links are resolved against `address`, the URL of the page. */
export async function convertHtmlToText(html: string, address: string): Promise<HtmlText> {
  // Loaded when a page is fetched. Only its tokens are used, because building a tree of hostile nesting takes minutes.
  const { SAXParser } = await import('parse5-sax-parser')
  const parser = new SAXParser()
  const builder = createTextBuilder(address)
  let title = ''
  /** The element whose content is currently dropped, and the number of open elements of its name. */
  let dropped = { name: '', depth: 0 }
  parser.on('text', ({ text }) => {
    if (dropped.depth === 0) builder.addText(text)
    else if (dropped.name === 'title' && title.length < MAX_TITLE) title += text.slice(0, MAX_TITLE)
  })
  parser.on('startTag', ({ tagName, attrs, selfClosing }) => {
    if (dropped.depth > 0) dropped.depth += tagName === dropped.name ? 1 : 0
    else if (!DROPPED.has(tagName)) builder.openElement(tagName, attrs)
    else if (!(tagName === 'svg' && selfClosing)) dropped = { name: tagName, depth: 1 }
  })
  parser.on('endTag', ({ tagName }) => {
    if (dropped.depth === 0) builder.closeElement(tagName)
    else if (tagName === dropped.name) dropped.depth -= 1
  })
  // The parser also outputs the page as a stream, which is not needed.
  parser.resume()
  parser.end(html)
  await finished(parser)
  const line = title.replace(/\s+/g, ' ').trim()
  return { title: line === '' ? null : line, text: builder.finish() }
}

interface HtmlList {
  readonly isNumbered: boolean
  count: number
}

/** Maximum nesting level that is shown by indentation. */
const MAX_INDENTATION = 20

interface HtmlAttribute {
  readonly name: string
  readonly value: string
}

interface TextBuilder {
  addText(text: string): void
  openElement(name: string, attributes: readonly HtmlAttribute[]): void
  closeElement(name: string): void
  finish(): string
}

interface TextParts {
  add(part: string): void
  openLink(target: string | null): void
  /** Ends a link. A link without text is left out. */
  closeLink(): void
  join(): string
}

function createTextParts(address: string): TextParts {
  const parts: string[] = []
  const links: { readonly target: string | null; readonly start: number; readonly shown: number }[] = []
  /** Number of parts that are not only white space. */
  let shown = 0
  const add = (part: string): void => {
    if (/\S/.test(part)) shown += 1
    parts.push(part)
  }
  return {
    add,
    openLink(target) {
      links.push({ target, start: parts.length, shown })
      if (target !== null) parts.push('[')
    },
    closeLink() {
      const link = links.pop()
      if (link === undefined || link.target === null) return
      if (shown === link.shown) parts.length = link.start
      else add(`](${resolveLink(link.target, address)})`)
    },
    join: () => parts.join(''),
  }
}

function createTextBuilder(address: string): TextBuilder {
  const { add, openLink, closeLink, join } = createTextParts(address)
  const lists: HtmlList[] = []
  let preformatted = 0
  /** True between the mark of a list item and its text. */
  let isItemEmpty = false
  function beginItem(): void {
    isItemEmpty = true
    add(countItem(lists))
  }
  function addParagraphBreak(name: string): void {
    const isNestedList = (name === 'ul' || name === 'ol') && lists.length > 1
    if (isItemEmpty) return
    if ((PARAGRAPHS.has(name) && !isNestedList) || /^h[1-6]$/.test(name)) add('\n\n')
  }
  return {
    addText(text) {
      if (text.trim() !== '') isItemEmpty = false
      add(preformatted > 0 ? text : text.replace(/\s+/g, ' '))
    },
    openElement(name, attributes) {
      if (name === 'ul' || name === 'ol') lists.push({ isNumbered: name === 'ol', count: 0 })
      if (name === 'li') beginItem()
      else if (name === 'a') openLink(readAttribute(attributes, 'href'))
      else if (name === 'pre') {
        preformatted += 1
        add('\n\n```\n')
      } else if (name === 'code' && preformatted === 0) add('`')
      else if (name === 'img') add(describeImage(attributes))
      else add(BEGINNINGS.get(name) ?? '')
      addParagraphBreak(name)
      const level = /^h([1-6])$/.exec(name)?.[1]
      if (level !== undefined) add(`${'#'.repeat(Number(level))} `)
    },
    closeElement(name) {
      if (name === 'li' || name === 'ul' || name === 'ol') isItemEmpty = false
      if (name === 'a') closeLink()
      else if (name === 'pre' && preformatted > 0) {
        preformatted -= 1
        add('\n```\n\n')
      } else if (name === 'code' && preformatted === 0) add('`')
      else addParagraphBreak(name)
      if (name === 'ul' || name === 'ol') lists.pop()
    },
    finish: () => tidyText(join()),
  }
}

/** Counts an item of the innermost list and returns its mark. */
function countItem(lists: readonly HtmlList[]): string {
  const list = lists.at(-1)
  if (list !== undefined) list.count += 1
  const indentation = '  '.repeat(Math.min(MAX_INDENTATION, Math.max(0, lists.length - 1)))
  return `\n${indentation}${list?.isNumbered === true ? `${list.count}. ` : '- '}`
}

function describeImage(attributes: readonly HtmlAttribute[]): string {
  const description = readAttribute(attributes, 'alt')?.trim() ?? ''
  return description === '' ? '' : `[image: ${description}]`
}

/**
 * Removes needless white space. Code blocks keep their indentation. Lines are trimmed one by one, because a regular expression for blanks
 * before a line end would be slow on long lines.
 */
function tidyText(text: string): string {
  const tidied = text.split('```').map((block, index) =>
    index % 2 === 1
      ? `${block.replace(/^\n+/, '\n').trimEnd()}\n`
      : block
          .replace(/[ \t]+/g, (space, offset: number) => (block[offset - 1] === '\n' ? space : ' '))
          .replace(/\n (?=\S)/g, '\n')
          .replace(/\n[ \t]*\| /g, '\n')
          .split('\n')
          .map((line, at, { length }) => (at < length - 1 ? line.trimEnd() : line))
          .join('\n')
          .replace(/\n{3,}/g, '\n\n'),
  )
  return tidied.join('```').trim()
}

function readAttribute(attributes: readonly HtmlAttribute[], name: string): string | null {
  return attributes.find((attribute) => attribute.name === name)?.value ?? null
}

function resolveLink(target: string, address: string): string {
  try {
    return new URL(target, address).href
  } catch {
    return target
  }
}
