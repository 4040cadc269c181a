/** What stands where a result was: that it was cleared, and where its text can be found. */
import type { ToolResultBlock } from '../conversation/block.ts'
import { CLEARED_TEXT } from '../conversation/boundary.ts'
import { howToGet, NO_PATHS, type RetrievalPaths } from '../retrieve/how-to-get.ts'

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
