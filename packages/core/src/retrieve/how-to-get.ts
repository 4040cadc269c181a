/** The line that says how text which is not shown can be read: the second line of every stub. */

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
