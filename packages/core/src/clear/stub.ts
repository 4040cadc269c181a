/** What stands where a result was: that it was cleared, and where its text can be found. */
import type { ToolResultBlock } from '../conversation/block.ts'
import { CLEARED_TEXT } from '../conversation/boundary.ts'

/** Where texts that left the view can be found. Only what is really there may be named. */
export interface Retrieval {
  /** The tool of this session that gives a result back by the id of its call; null where none is declared. */
  readonly historyTool: string | null
  /** The blob that a result was saved to; null where it was not. */
  readonly blobOf?: (toolUseId: string) => string | null
  /** Where the model can read the transcript; null where it cannot. */
  readonly transcript: string | null
}

export const NOWHERE: Retrieval = { historyTool: null, transcript: null }

/**
 * The second line of a stub; null where the text can be found nowhere that the model could look. `spilled`: the
 * blob that most of it was put aside to on arrival.
 */
export function noteOn(
  toolUseId: string,
  retrieval: Retrieval,
  spilled: string | null = null,
): string | null {
  const { historyTool, blobOf, transcript } = retrieval
  if (historyTool !== null) return `Call ${historyTool} with the id ${toolUseId} to read it again.`
  const blob = blobOf?.(toolUseId) ?? spilled
  if (blob !== null) return `It was saved as blob ${blob}.`
  return transcript === null ? null : `It is in the transcript: ${transcript} (tool_use_id ${toolUseId}).`
}

/** The result as it will be shown, for weighing. */
export function stubOf(toolUseId: string, retrieval: Retrieval): ToolResultBlock {
  const note = noteOn(toolUseId, retrieval)
  const content = note === null ? CLEARED_TEXT : `${CLEARED_TEXT}\n${note}`
  return { type: 'tool_result', tool_use_id: toolUseId, content }
}
