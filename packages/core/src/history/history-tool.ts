/**
 * Defines the history tool and runs its calls over the records and blobs of one session. Every result is bounded in
 * size and work, and says how to continue.
 */

import { DEFAULT_HISTORY_TOOL_NAME } from '../clearing/clear-candidates.ts'
import { describeThrown } from '../errors.ts'
import type { Block } from '../log/block.ts'
import { isObject, type JsonObject } from '../log/json.ts'
import { sliceWholeCharacters, takeHeadWithinTokens } from '../text/truncate-text.ts'
import { type FoundHistoryItem, findHistoryItem } from './history-items.ts'
import {
  type HistoryPage,
  type HistoryQuery,
  type HistoryToolContext,
  listRecordRange,
  parseHistoryQuery,
  searchConversation,
  searchItemText,
} from './search-history.ts'

const TOOL_DESCRIPTION = `Reads this conversation's own past: what a summary replaced, tool results that were cleared, \
large results of which only head and tail are shown. Nothing that was ever said here is lost. \
Give "id" for one thing in full, "text" to search (newest first), "last" or "from" and "to" for a \
stretch of the conversation. Answers are pages; go on with the cursor that a page ends with.`

const stringField = (description: string): JsonObject => ({ type: 'string', description })

/** Returns the definition of the history tool. It depends on nothing but `name`, since it is part of the cached prefix. */
export function createHistoryToolDefinition(name: string = DEFAULT_HISTORY_TOOL_NAME): JsonObject {
  return {
    name,
    description: TOOL_DESCRIPTION,
    input_schema: {
      type: 'object',
      properties: {
        id: stringField(
          'A record, tool call, response or blob, as named in a note or in an answer of this tool.',
        ),
        lines: stringField('With "id": only these lines of it, as in "120-180".'),
        text: stringField(
          'Words and "quoted phrases" to search for, in any case; a line must contain all of them. With "id": only within that.',
        ),
        from: stringField('The id of the first record of a stretch.'),
        to: stringField('The id of its last record.'),
        last: { type: 'integer', minimum: 1, description: 'The newest so many records.' },
        cursor: stringField('Where to go on, as the answer before said; the other fields as they were.'),
      },
      additionalProperties: false,
    },
  }
}

/**
 * Checks whether a tool of a log is the engine's history tool. It is recognised by its input fields, because its texts
 * may be worded differently in another version; a tool of the host that is also named `history` has other fields.
 */
export function isHistoryToolDefinition({ input_schema: schema }: JsonObject): boolean {
  const fields = isObject(schema) && isObject(schema.properties) ? Object.keys(schema.properties) : []
  return HISTORY_FIELDS.every((field) => fields.includes(field))
}

const HISTORY_FIELDS: readonly string[] = ['id', 'lines', 'text', 'from', 'to', 'last', 'cursor']

/** The result of one call of the history tool. */
export interface HistoryAnswer {
  /** The `content` of the tool result. */
  readonly content: string | readonly Block[]
  readonly is_error?: boolean
  /** The requested text without heading and cursor; if it has several pages, the bodies joined give the whole. */
  readonly body: string
  /** The cursor of the next page; null if this is the last one. */
  readonly next: string | null
}

/** Runs one call of the history tool. Never throws: bad input or an unreadable blob gives an error message as the result. */
export async function runHistoryTool(input: unknown, source: HistoryToolContext): Promise<HistoryAnswer> {
  const query = parseHistoryQuery(input)
  if (typeof query === 'string') return createErrorAnswer(query)
  try {
    const page = await findPage(query, source)
    return typeof page === 'string' ? createErrorAnswer(page) : createPageAnswer(page)
  } catch (thrown) {
    return createErrorAnswer(describeThrown(thrown))
  }
}

function createErrorAnswer(content: string): HistoryAnswer {
  return { content, is_error: true, body: '', next: null }
}

function createPageAnswer({ heading, body, next, media = [] }: HistoryPage): HistoryAnswer {
  const more = next === null ? [] : [`More: call again with the same fields and "cursor": "${next}".`]
  const text = [heading, ...(body === '' ? [] : [body]), ...more].join('\n')
  const content = media.length === 0 ? text : [{ type: 'text', text }, ...media]
  return { content, body, next: next === null ? null : String(next) }
}

/** Returns the page that a query asks for, or an error message. */
async function findPage(query: HistoryQuery, source: HistoryToolContext): Promise<HistoryPage | string> {
  if (query.id !== null) return createItemPage(query, query.id, source)
  return query.matcher === null
    ? listRecordRange(query, source)
    : searchConversation(query, query.matcher, source)
}

async function createItemPage(
  query: HistoryQuery,
  id: string,
  source: HistoryToolContext,
): Promise<HistoryPage | string> {
  const found = await findHistoryItem(source, id)
  if (found === null) return `There is no record, tool call, response or blob ${id} in this session.`
  if (found.isMissing === true) return { heading: found.heading, body: '', next: null }
  if (query.matcher !== null) return searchItemText(found, query.matcher, query.cursor, source)
  return cutPage(query.lines === null ? found : selectLines(found, query.lines), query.cursor ?? 0, source)
}

function selectLines(
  found: FoundHistoryItem,
  { from, to }: { readonly from: number; readonly to: number },
): FoundHistoryItem {
  const lines = found.text.split('\n')
  const heading = `${found.heading}, lines ${from} to ${Math.min(to, lines.length)} of ${lines.length}`
  return { heading, text: lines.slice(from - 1, to).join('\n'), media: [] }
}

/** Returns the page of a text that begins at character `start`. Images and documents are on the first page. */
function cutPage(
  found: FoundHistoryItem,
  start: number,
  { pageTokens, measure }: HistoryToolContext,
): HistoryPage {
  const left = sliceWholeCharacters(found.text, start)
  const body = takeHeadWithinTokens(left, pageTokens, measure)
  // A page must contain at least one character: an empty page would be followed by empty pages without end.
  const taken = body === '' ? takeFirstCharacter(left) : body
  const next = taken.length < left.length ? start + taken.length : null
  const heading = start === 0 ? found.heading : `${found.heading}, from character ${start} on`
  return { heading, body: taken, next, media: start === 0 ? found.media : [] }
}

function takeFirstCharacter(text: string): string {
  return text === '' ? '' : String.fromCodePoint(text.codePointAt(0) ?? 0)
}
