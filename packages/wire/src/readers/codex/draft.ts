/** A record in the making: what it says and where it stood, before it is known which response it belongs to. */
import type { CodexLine } from './codex-line.ts'
import type { InputPart, ModelPart, OtherPart, ToolPart } from './part.ts'

export interface Draft {
  readonly line: number
  readonly timestamp: string
  /** The model in use where the line stood. */
  readonly model: string
  readonly part: ModelPart | InputPart | ToolPart | OtherPart
  /** The line as it was, kept for what has no other part. */
  readonly source: CodexLine
}
