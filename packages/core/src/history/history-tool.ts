/**
 * The history tool: its definition, and running it over the records of one session and their blobs. Every answer is
 * bounded in size and work, and says how to continue.
 */

import { HISTORY_TOOL } from '../clearing/select-results.ts'
import type { Block } from '../log/block.ts'
import type { JsonObject } from '../log/json.ts'
import { headWithin } from '../summary/truncate-text.ts'
import { type Found, lookUp } from './find-record.ts'
import {
  findInText,
  type HistorySource,
  type Page,
  type Query,
  rangePage,
  readQuery,
  searchPage,
} from './search.ts'

const DESCRIPTION = `Reads this conversation's own past: what a summary replaced, tool results that were cleared, \
large results of which only head and tail are shown. Nothing that was ever said here is lost. \
Give "id" for one thing in full, "text" to search (newest first), "last" or "from" and "to" for a \
stretch of the conversation. Answers are pages; go on with the cursor that a page ends with.`

const text = (description: string): JsonObject => ({ type: 'string', description })

/** The definition never varies, since it is part of the cached prefix. */
export function historyTool(name: string = HISTORY_TOOL): JsonObject {
  return {
    name,
    description: DESCRIPTION,
    input_schema: {
      type: 'object',
      properties: {
        id: text('A record, tool call, response or blob, as named in a note or in an answer of this tool.'),
        lines: text('With "id": only these lines of it, as in "120-180".'),
        text: text(
          'Words and "quoted phrases" to search for, in any case; a line must contain all of them. With "id": only within that.',
        ),
        from: text('The id of the first record of a stretch.'),
        to: text('The id of its last record.'),
        last: { type: 'integer', minimum: 1, description: 'The newest so many records.' },
        cursor: text('Where to go on, as the answer before said; the other fields as they were.'),
      },
      additionalProperties: false,
    },
  }
}

export interface HistoryAnswer {
  /** The content of the tool result. */
  readonly content: string | readonly Block[]
  readonly is_error?: boolean
  /** The requested text without heading and cursor: all pages joined are the whole, byte for byte. */
  readonly body: string
  /** The cursor of the next page; null at the end. */
  readonly next: string | null
}

/** Never throws for bad input or an unreadable blob: the answer says what was wrong. */
export async function runHistory(input: unknown, source: HistorySource): Promise<HistoryAnswer> {
  const query = readQuery(input)
  if (typeof query === 'string') return errorAnswer(query)
  try {
    const page = await pageFor(query, source)
    return typeof page === 'string' ? errorAnswer(page) : pageAnswer(page)
  } catch (thrown) {
    return errorAnswer(thrown instanceof Error ? thrown.message : String(thrown))
  }
}

function errorAnswer(content: string): HistoryAnswer {
  return { content, is_error: true, body: '', next: null }
}

function pageAnswer({ heading, body, next, media = [] }: Page): HistoryAnswer {
  const more = next === null ? [] : [`More: call again with the same fields and "cursor": "${next}".`]
  const text = [heading, ...(body === '' ? [] : [body]), ...more].join('\n')
  const content = media.length === 0 ? text : [{ type: 'text', text }, ...media]
  return { content, body, next: next === null ? null : String(next) }
}

async function pageFor(query: Query, source: HistorySource): Promise<Page | string> {
  if (query.id !== null) return itemPage(query, query.id, source)
  return query.finder === null ? rangePage(query, source) : searchPage(query, query.finder, source)
}

async function itemPage(query: Query, id: string, source: HistorySource): Promise<Page | string> {
  const found = await lookUp(source, id)
  if (found === null) return `There is no record, tool call, response or blob ${id} in this session.`
  if (query.finder !== null) return findInText(found, query.finder, query.cursor, source)
  return textPage(query.lines === null ? found : linesOf(found, query.lines), query.cursor ?? 0, source)
}

function linesOf(found: Found, { from, to }: { readonly from: number; readonly to: number }): Found {
  const lines = found.text.split('\n')
  const heading = `${found.heading}, lines ${from} to ${Math.min(to, lines.length)} of ${lines.length}`
  return { heading, text: lines.slice(from - 1, to).join('\n'), media: [] }
}

function textPage(found: Found, start: number, { pageTokens, measure }: HistorySource): Page {
  const left = found.text.slice(start)
  const body = headWithin(left, pageTokens, measure)
  // An empty page would be followed by empty pages for ever.
  const taken = body === '' ? firstCharacter(left) : body
  const next = taken.length < left.length ? start + taken.length : null
  const heading = start === 0 ? found.heading : `${found.heading}, from character ${start} on`
  return { heading, body: taken, next, media: start === 0 ? found.media : [] }
}

function firstCharacter(text: string): string {
  return text === '' ? '' : String.fromCodePoint(text.codePointAt(0) ?? 0)
}
