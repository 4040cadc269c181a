/**
 * Converts HTML to readable text in the style of Markdown: headings, links, lists, code and table rows are kept;
 * scripts, styles and layout are dropped. Reads the page once from front to back, whatever it contains.
 */

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
/** What stands in place of the beginning of an element: a new line, or the border of a table cell. */
const BEGINNINGS: ReadonlyMap<string, string> = new Map([
  ...['br', 'caption', 'dd', 'dt', 'tr'].map((name) => [name, '\n'] as const),
  ...['td', 'th'].map((name) => [name, ' | '] as const),
])

/** Converts a page. Relative links are resolved against `address`. */
export function convertHtmlToText(html: string, address: string): string {
  const text = createTextBuilder(address)
  // A sign that no name follows stands for itself.
  const tagStart = /<(?=\/?[a-zA-Z!?])/g
  let at = 0
  while (at < html.length) {
    tagStart.lastIndex = at
    const open = tagStart.exec(html)?.index ?? html.length
    text.addText(decodeEntities(html.slice(at, open)))
    if (open === html.length) break
    const tag = readTag(html, open)
    at = tag.end
    if (tag.kind === 'text') text.addText(decodeEntities(html.slice(open, tag.end)))
    else if (tag.kind === 'close') text.closeElement(tag.name)
    else if (DROPPED.has(tag.name)) at = findClosingTag(html, tag.name, at)
    else text.openElement(tag.name, tag.attributes)
  }
  return text.finish()
}

/** Returns the text of the title element, on one line; null if there is none. */
export function findHtmlTitle(html: string): string | null {
  const open = /<title[^>]{0,500}>/i.exec(html)
  if (open === null) return null
  const rest = html.slice(open.index + open[0].length, open.index + 2_000)
  const title = decodeEntities(rest.split('<')[0] ?? '')
    .replace(/\s+/g, ' ')
    .trim()
  return title === '' ? null : title
}

/** Returns the offset of the end tag; the end of the page if it is missing. */
function findClosingTag(html: string, name: string, from: number): number {
  const closing = new RegExp(`</${name}`, 'gi')
  closing.lastIndex = from
  return closing.exec(html)?.index ?? html.length
}

interface Tag {
  /** `text` if the tag does not end: what was read stands for itself. */
  readonly kind: 'open' | 'close' | 'text'
  readonly name: string
  readonly attributes: string
  /** Offset after the tag. */
  readonly end: number
}

const MAX_TAG_CHARACTERS = 20_000

/** Reads the tag or comment that begins at `open`. */
function readTag(html: string, open: number): Tag {
  const nothing = { name: '', attributes: '' }
  if (html.startsWith('<!--', open)) {
    const close = html.indexOf('-->', open + 4)
    return { ...nothing, kind: 'open', end: close === -1 ? html.length : close + 3 }
  }
  const name = /^<\/?([a-zA-Z][\w:-]*|[!?])/.exec(html.slice(open, open + 60))
  const from = open + (name?.[0].length ?? 1)
  const end = findTagEnd(html, from)
  // Nothing is read twice, so that a page full of unfinished tags takes no longer than any other.
  if (end === null) return { ...nothing, kind: 'text', end: from + MAX_TAG_CHARACTERS }
  const kind = html[open + 1] === '/' ? 'close' : 'open'
  return { kind, name: (name?.[1] ?? '').toLowerCase(), attributes: html.slice(from, end - 1), end }
}

/** Returns the offset after the `>` that ends a tag, which may not stand in quotes; null if the tag does not end. */
function findTagEnd(html: string, from: number): number | null {
  let quote = ''
  for (let at = from; at < html.length && at - from < MAX_TAG_CHARACTERS; at += 1) {
    const character = html[at] ?? ''
    if (quote === '' && character === '>') return at + 1
    if (quote === '' && (character === '"' || character === "'")) quote = character
    else if (character === quote) quote = ''
  }
  return null
}

interface HtmlList {
  readonly isNumbered: boolean
  count: number
}

/** Most levels by which an item of nested lists is indented. */
const MAX_INDENTATION = 20

interface TextBuilder {
  addText(text: string): void
  openElement(name: string, attributes: string): void
  closeElement(name: string): void
  finish(): string
}

interface TextParts {
  add(part: string): void
  openLink(target: string | null): void
  /** Ends a link. One without a text is left out. */
  closeLink(): void
  join(): string
}

function createTextParts(address: string): TextParts {
  const parts: string[] = []
  const links: { readonly target: string | null; readonly start: number; readonly shown: number }[] = []
  /** Parts that are more than white space. */
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
  /** True after the mark of a list item, until its text begins. */
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

function describeImage(attributes: string): string {
  const description = readAttribute(attributes, 'alt')?.trim() ?? ''
  return description === '' ? '' : `[image: ${description}]`
}

/**
 * Removes needless white space. Code blocks keep their indentation. Ends of lines are trimmed one by one: an expression
 * for blanks before a line end tries each blank of a long line anew.
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

function readAttribute(attributes: string, name: string): string | null {
  const found = new RegExp(`(?:^|\\s)${name}\\s*=\\s*(?:"([^"]*)"|'([^']*)'|([^\\s"'>]+))`, 'i').exec(
    attributes,
  )
  const value = found?.[1] ?? found?.[2] ?? found?.[3]
  return value === undefined ? null : decodeEntities(value)
}

function resolveLink(target: string, address: string): string {
  try {
    return new URL(target, address).href
  } catch {
    return target
  }
}

const ENTITIES: Readonly<Record<string, string>> = {
  amp: '&',
  apos: "'",
  bull: '•',
  copy: '©',
  gt: '>',
  hellip: '…',
  laquo: '«',
  ldquo: '“',
  lsquo: '‘',
  lt: '<',
  mdash: '—',
  middot: '·',
  nbsp: ' ',
  ndash: '–',
  quot: '"',
  raquo: '»',
  rdquo: '”',
  reg: '®',
  rsquo: '’',
  times: '×',
  trade: '™',
}

function decodeEntities(text: string): string {
  return text.replace(
    /&(?:#(\d{1,7})|#[xX]([\da-fA-F]{1,6})|([a-zA-Z]{2,8}));/g,
    (whole, decimal, hex, name) => {
      if (name !== undefined) return ENTITIES[name] ?? whole
      const code = decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal)
      return code > 0 && code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff)
        ? String.fromCodePoint(code)
        : whole
    },
  )
}
