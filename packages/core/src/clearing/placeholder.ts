/** What stands where a result was: that it was cleared, and where its text can be found. */
import type { ToolResultBlock } from '../log/block.ts'
import { CLEARED_TEXT } from '../log/record.ts'

// The line that says how text which is not shown can be read: the second line of every stub.

/** The tool's usual name; a host that has another tool of this name gives it another. */
export const HISTORY_TOOL = 'history'

/** The ways there are to read what is not in the conversation any more. */
export interface RetrievalPaths {
  /** The name under which the model is offered the history tool; null where it is not. */
  readonly historyTool: string | null
  /** A file that holds the whole conversation and that the model can read; null where there is none. */
  readonly transcript: string | null
}

export const NO_PATHS: RetrievalPaths = { historyTool: null, transcript: null }

/** `id`: a record's uuid, a tool call's id or a blob's. Null where there is no way: then nothing may be promised. */
export function howToGet(id: string, paths: RetrievalPaths): string | null {
  if (paths.historyTool !== null)
    return `To read it, call ${paths.historyTool} with ${JSON.stringify({ id })}.`
  return paths.transcript === null ? null : `To read it, look for ${id} in ${paths.transcript}.`
}

/** Where texts that left the view can be found. Only what the model can really read may be named. */
export type Retrieval = RetrievalPaths

export const NOWHERE: Retrieval = NO_PATHS

/** The second line of a stub; null where the text can be found nowhere that the model could look. */
export function noteOn(toolUseId: string, retrieval: Retrieval): string | null {
  return howToGet(toolUseId, retrieval)
}

/** The result as it will be shown, for weighing. */
export function stubOf(toolUseId: string, retrieval: Retrieval): ToolResultBlock {
  const note = noteOn(toolUseId, retrieval)
  const content = note === null ? CLEARED_TEXT : `${CLEARED_TEXT}\n${note}`
  return { type: 'tool_result', tool_use_id: toolUseId, content }
}

/** As long as the ids that providers give: for weighing what would stand where a result was. */
export const SAMPLE_ID = 'toolu_000000000000000000000000'
