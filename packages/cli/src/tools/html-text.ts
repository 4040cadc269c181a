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
  let at = 0
  while (at < html.length) {
    const open = html.indexOf('<', at)
    text.addText(decodeEntities(html.slice(at, open === -1 ? html.length : open)))
    if (open === -1) break
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
  /** `text` if there is no tag: what was read stands for itself. */
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
  if (name === null) return { ...nothing, kind: 'text', end: open + 1 }
  const from = open + name[0].length
  const end = findTagEnd(html, from)
  // Nothing is read twice, so that a page full of unfinished tags takes no longer than any other.
  if (end === null) return { ...nothing, kind: 'text', end: from + MAX_TAG_CHARACTERS }
  const kind = html[open + 1] === '/' ? 'close' : 'open'
  return { kind, name: (name[1] ?? '').toLowerCase(), attributes: html.slice(from, end - 1), end }
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

interface TextBuilder {
  addText(text: string): void
  openElement(name: string, attributes: string): void
  closeElement(name: string): void
  finish(): string
}

function createTextBuilder(address: string): TextBuilder {
  const parts: string[] = []
  const lists: { readonly isNumbered: boolean; count: number }[] = []
  const links: (string | null)[] = []
  let preformatted = 0
  /** True after the mark of a list item, until its text begins. */
  let isItemEmpty = false
  function beginItem(): void {
    isItemEmpty = true
    const list = lists.at(-1)
    if (list !== undefined) list.count += 1
    const mark = list?.isNumbered === true ? `${list.count}. ` : '- '
    parts.push(`\n${'  '.repeat(Math.max(0, lists.length - 1))}${mark}`)
  }
  function openLink(attributes: string): void {
    const address = readAttribute(attributes, 'href')
    links.push(address)
    if (address !== null) parts.push('[')
  }
  function closeLink(): void {
    const target = links.pop()
    if (typeof target === 'string') parts.push(`](${resolveLink(target, address)})`)
  }
  function addParagraphBreak(name: string): void {
    const isNestedList = (name === 'ul' || name === 'ol') && lists.length > 1
    if (isItemEmpty) return
    if ((PARAGRAPHS.has(name) && !isNestedList) || /^h[1-6]$/.test(name)) parts.push('\n\n')
  }
  return {
    addText(text) {
      if (text.trim() !== '') isItemEmpty = false
      parts.push(preformatted > 0 ? text : text.replace(/\s+/g, ' '))
    },
    openElement(name, attributes) {
      if (name === 'ul' || name === 'ol') lists.push({ isNumbered: name === 'ol', count: 0 })
      if (name === 'li') beginItem()
      else if (name === 'a') openLink(attributes)
      else if (name === 'pre') {
        preformatted += 1
        parts.push('\n\n```\n')
      } else if (name === 'code' && preformatted === 0) parts.push('`')
      else if (name === 'img') parts.push(describeImage(attributes))
      else parts.push(BEGINNINGS.get(name) ?? '')
      addParagraphBreak(name)
      const level = /^h([1-6])$/.exec(name)?.[1]
      if (level !== undefined) parts.push(`${'#'.repeat(Number(level))} `)
    },
    closeElement(name) {
      if (name === 'li' || name === 'ul' || name === 'ol') isItemEmpty = false
      if (name === 'a') closeLink()
      else if (name === 'pre' && preformatted > 0) {
        preformatted -= 1
        parts.push('\n```\n\n')
      } else if (name === 'code' && preformatted === 0) parts.push('`')
      else addParagraphBreak(name)
      if (name === 'ul' || name === 'ol') lists.pop()
    },
    finish: () => tidyText(parts.join('')),
  }
}

function describeImage(attributes: string): string {
  const description = readAttribute(attributes, 'alt')?.trim() ?? ''
  return description === '' ? '' : `[image: ${description}]`
}

/** Removes empty links and needless white space. Code blocks keep their indentation. */
function tidyText(text: string): string {
  const blocks = text.replace(/\[\s*\]\([^)\n]*\)/g, '').split('```')
  const tidied = blocks.map((block, index) =>
    index % 2 === 1
      ? block.replace(/^\n+|\s+$/g, '\n')
      : block
          .replace(/[ \t]+/g, (space, offset: number) => (block[offset - 1] === '\n' ? space : ' '))
          .replace(/\n (?=\S)/g, '\n')
          .replace(/\n[ \t]*\| /g, '\n')
          .replace(/[ \t]+\n/g, '\n')
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
