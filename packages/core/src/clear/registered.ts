/** What the register holds of a call, of its result, of a response and of a memory file: plain data. */
import type { CallFacts, LargeInput } from './tool-call.ts'

export interface ToolCall extends CallFacts {
  readonly id: string
  readonly tool: string
  /** The record that made it, and its place in the view. */
  readonly uuid: string
  readonly place: number
  /** Which response it is part of: how many began before that one. */
  readonly response: number
  readonly isClearable: boolean
  readonly sameness: string
  /** Texts of the input that are large and still shown; of write-like tools alone. */
  readonly inputs: readonly LargeInput[]
}

export interface ToolResult {
  readonly call: ToolCall
  readonly uuid: string
  readonly place: number
  /** Tokens, as estimated, of the result as it is shown. */
  readonly tokens: number
  readonly isError: boolean
  readonly isComplete: boolean
  readonly isCleared: boolean
  /** Put aside on arrival: the blob that holds what is not shown. */
  readonly blob: string | null
  /** The call whose result this one refers to instead of giving the text: "unchanged since …". */
  readonly pointsAt: string | null
}

export interface Response {
  readonly id: string
  readonly place: number
}

/** A `nested_memory` attachment that is still shown. */
export interface Memory {
  readonly path: string
  readonly uuid: string
  readonly place: number
  readonly tokens: number
}

/** Deletions from the provider's cached prefix, sent with every request at the same place. */
export interface Deletion {
  readonly boundary: string
  readonly anchorUuid: string
  readonly ids: readonly string[]
  /** Place of the newest response when it was made: a later one has measured the context without its text. */
  readonly answeredAt: number
}
