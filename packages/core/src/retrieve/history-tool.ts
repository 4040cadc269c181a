/** The history tool as a model is offered it: neutral JSON, as in the tools of a request. */
import type { JsonObject } from '../conversation/json.ts'
import { HISTORY_TOOL } from './how-to-get.ts'

const DESCRIPTION = `Reads this conversation's own past: what a summary replaced, tool results that were cleared, \
large results of which only head and tail are shown. Nothing that was ever said here is lost. \
Give "id" for one thing in full, "text" or "pattern" to search (newest first), "last" or "from" and "to" for a \
stretch of the conversation. Answers are pages; go on with the cursor that a page ends with.`

const text = (description: string): JsonObject => ({ type: 'string', description })

/** The definition is the same every time: it is part of the cached prefix. */
export function historyTool(name: string = HISTORY_TOOL): JsonObject {
  return {
    name,
    description: DESCRIPTION,
    input_schema: {
      type: 'object',
      properties: {
        id: text('A record, tool call, response or blob, as named in a note or in an answer of this tool.'),
        lines: text('With "id": only these lines of it, as in "120-180".'),
        text: text('Plain words to search for, in any case. With "id": only within that.'),
        pattern: text(
          'A regular expression to search for, line by line, in any case; no look-around, no back-references.',
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
