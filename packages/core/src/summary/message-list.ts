/** Finds the part of a summary that lists the user's messages: section 6, or what stands under a similar heading. */
import { readSectionNumber } from './summary-prompt.ts'

const MESSAGES_SECTION = 6

/** Matches the marks before an item of a list of messages: a bullet, a number, a label such as "User:". */
export const LIST_ITEM_START: RegExp =
  /^\s*(?:(?:[-*+>]|\d{1,3}[.)]|\[\d+\]|\*{0,2}(?:user|message|prompt|turn)(?: message)?(?: #?\d+)?\*{0,2}\s*:)\s*)*/i

const LIST_TITLE =
  "(?:all |the |list of |every |verbatim )*(?:(?:user|human)(?:['’]s)? (?:messages?|prompts?|quotes?|quotations?|words)|(?:verbatim|exact|quoted|literal) (?:user|human)(?:['’]s)? (?:requests?|instructions?|feedback|statements?|inputs?|text)|messages? (?:from|of|by) the (?:user|human)|what the (?:user|human) (?:said|wrote|typed))"
const TITLE_END =
  '(?:\\s*\\([^)\\n]{0,60}\\)|[,\\s]+(?:verbatim|word for word|in (?:order|full|chronological order)|so far|to date|quoted|exactly|literally|list|listed|log|below))*'
/** Matches the heading of a list of messages, and the text after its colon. */
const LIST_HEADING = new RegExp(
  `^([\\s#*_>-]*(?:(?:section )?\\d{1,2}[.):]?[\\s*_]*)?${LIST_TITLE}${TITLE_END}[\\s*_]*)(?:([:：][\\s*_]*)(.*))?$`,
  'is',
)
const MARKDOWN_HEADING = /^[ \t]*#{1,6}[ \t]/
/** Matches the title of another section that has no number. */
const OTHER_TITLE =
  /^[\s#*_]*(?:primary request and intent|key technical concepts|files and code sections|errors and fixes|problem solving|pending tasks?|current work|work completed|optional next steps?|next steps?|context for continuing(?: work)?)[\s*_:：]*$/i

interface ListHeading {
  /** `messages`: the list of messages begins. `other`: it ends. */
  readonly kind: 'messages' | 'other'
  /** Index of the first message if it is in the same line; otherwise the length of the line. */
  readonly contentStart: number
}

/** Tells whether a line is the heading of a list of the user's messages, another heading that ends it, or none. */
export function readListHeading(given: string): ListHeading | null {
  const line = withPlainSpaces(given)
  const [, title, colon = '', content = ''] = LIST_HEADING.exec(line) ?? []
  if (title !== undefined)
    return { kind: 'messages', contentStart: content === '' ? line.length : title.length + colon.length }
  const section = readSectionNumber(line) ?? 0
  if (section === MESSAGES_SECTION) return { kind: 'messages', contentStart: line.length }
  // A lower number may be that of a list in a message.
  return section > MESSAGES_SECTION || MARKDOWN_HEADING.test(line) || OTHER_TITLE.test(line)
    ? { kind: 'other', contentStart: line.length }
    : null
}

/** Replaces each space of another kind, such as a no-break space, by a plain one. */
function withPlainSpaces(text: string): string {
  return text.replace(/[^\S\n\t]|[\u200b\u2060\ufeff]/g, ' ')
}

/** Returns the lines of a text that are under a heading of user messages. */
export function readMessageList(text: string): string {
  return selectLines(text, [], true)
}

/** Returns the other lines of a text. `endings`: lines that end the list, besides the headings of other sections. */
export function removeMessageList(text: string, endings: readonly string[]): string {
  return selectLines(text, endings, false)
}

function selectLines(text: string, endings: readonly string[], areInside: boolean): string {
  let isInside = false
  const lines = text.split('\n').filter((line) => {
    const heading = readListHeading(line)
    if (heading !== null) isInside = heading.kind === 'messages'
    else if (endings.includes(line)) isInside = false
    return isInside === areInside
  })
  return lines.join('\n')
}
