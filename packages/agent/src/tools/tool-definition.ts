/** How a tool of the agent is defined, and how it fails. */
import type { Tool, ToolContext, ToolOutput } from 'tidemark'

/** A tool as the library takes it. */
export type AgentTool = Tool

/** What a tool gets with a call: its id, the abort signal and a function that reports progress. */
export type AgentToolContext = ToolContext

interface ToolSpec<Input> {
  readonly description: string
  /** JSON Schema of each field of the input. */
  readonly fields: Readonly<Record<string, object>>
  readonly required: readonly string[]
  readonly parallel?: boolean
  readonly run: (input: Input, context: AgentToolContext) => ToolOutput | Promise<ToolOutput>
}

/** A failure whose message is written for the model. */
export class ToolError extends Error {}

/**
 * Creates a tool. Whatever `run` throws becomes an error result with the message of the exception. The engine has already adapted
 * the input to the schema when `run` is called.
 */
export function defineTool<Input>({
  description,
  fields,
  required,
  parallel,
  run,
}: ToolSpec<Input>): AgentTool {
  return {
    description,
    inputSchema: { type: 'object', properties: fields, required, additionalProperties: false },
    ...(parallel === undefined ? {} : { parallel }),
    run: async (input: never, context: AgentToolContext): Promise<ToolOutput> => {
      try {
        return await run(input, context)
      } catch (error) {
        return { content: error instanceof Error ? error.message : String(error), isError: true }
      }
    },
  }
}

/** Cuts a text to `limit` characters without splitting a surrogate pair. */
export function cutText(text: string, limit: number): string {
  const cut = text.slice(0, limit)
  return /[\uD800-\uDBFF]$/.test(cut) ? cut.slice(0, -1) : cut
}
