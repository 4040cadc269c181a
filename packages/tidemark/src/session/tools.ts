/** Tools as the caller gives them, and as a turn needs them: definitions for the request and a function that runs calls. */
import {
  isObject,
  type JsonObject,
  type RunTool,
  type Signal,
  TidemarkError,
  type ToolUseBlock,
} from '@tidemark/core'
import { omitUndefined } from '@tidemark/wire'

/** A tool that `run` calls. */
export interface Tool {
  readonly description?: string
  /** JSON schema of its input. Default: an object without fields. */
  readonly inputSchema?: object
  /** An exception becomes an error result that the model sees. */
  readonly run: (input: never, context: ToolContext) => ToolOutput | Promise<ToolOutput>
}

export interface ToolContext {
  /** Id of the tool call. */
  readonly id: string
  readonly name: string
  /** Aborted when the turn is aborted. */
  readonly signal: AbortSignal
}

/** Text or blocks, optionally marked as an error. */
export type ToolOutput =
  | string
  | readonly object[]
  | { readonly content: string | readonly object[]; readonly isError?: boolean }

/** Tools by name. */
export type Tools = Readonly<Record<string, Tool>>

/** Definitions as the API takes them: for a loop of your own, or with `runTool`. */
export type ToolDefinitions = readonly object[]

export interface Toolset {
  readonly definitions: readonly JsonObject[]
  readonly run: RunTool
  /** Names of the tools that nothing runs; only for a loop of your own. */
  readonly withoutRunner?: readonly string[]
}

export interface ToolOptions {
  readonly tools?: Tools | ToolDefinitions
  /** Runs the calls of tools given as definitions. An exception becomes an error result that the model sees. */
  readonly runTool?: RunToolCall
}

export type RunToolCall = (call: ToolUseBlock, signal: AbortSignal) => ToolOutput | Promise<ToolOutput>

/** Throws `bad-option` for tools in another shape. */
export function createToolset({ tools = [], runTool }: ToolOptions): Toolset {
  if (runTool !== undefined && typeof runTool !== 'function')
    throw badTools('runTool: expected a function (call, signal) that returns the result of the tool.')
  const fallback: RunTool =
    runTool === undefined
      ? ({ name }) => ({ content: `There is no tool ${name}.`, is_error: true })
      : async (call, signal) => toToolResult(await runTool(call, toAbortSignal(signal)), call.name)
  if (Array.isArray(tools)) {
    const definitions = tools.map(toDefinition)
    // Tools with another type are run by the provider.
    const unrun = definitions.flatMap(({ type = 'custom', name }) =>
      type === 'custom' ? [String(name)] : [],
    )
    return { definitions, run: fallback, withoutRunner: runTool === undefined ? unrun : [] }
  }
  if (!isObject(tools))
    throw badTools('tools: expected { name: { description, inputSchema, run } } or definitions.')
  const named = new Map(Object.entries(tools).map(([name, tool]) => [name, checkTool(name, tool)]))
  const definitions = [...named].map(
    ([name, { description, inputSchema = { type: 'object', properties: {} } }]) =>
      toDefinition({ name, ...omitUndefined({ description }), input_schema: inputSchema }),
  )
  const run: RunTool = async (call, signal) => {
    const tool = named.get(call.name)
    if (tool === undefined) return fallback(call, signal)
    const context = { id: call.id, name: call.name, signal: toAbortSignal(signal) }
    return toToolResult(await tool.run(call.input as never, context), call.name)
  }
  return { definitions, run }
}

/** Throws `bad-option` if the toolset has a tool that nothing runs. */
export function checkToolsRunnable({ withoutRunner = [] }: Toolset): void {
  if (withoutRunner.length === 0) return
  throw badTools(
    `run: nothing runs the tools ${withoutRunner.join(', ')}. Give runTool(call, signal), or each tool as { description, inputSchema, run }.`,
  )
}

function checkTool(name: string, tool: unknown): Tool {
  if (isObject(tool) && typeof tool.run === 'function') return tool as unknown as Tool
  throw badTools(`tools.${name}: expected { description, inputSchema, run(input, { signal }) }.`)
}

/** A copy as JSON: the definition must not change when the caller changes its object. */
function toDefinition(tool: unknown): JsonObject {
  const copy: unknown = isObject(tool) ? JSON.parse(JSON.stringify(tool)) : null
  if (isObject(copy) && typeof copy.name === 'string') return copy as JsonObject
  throw badTools('tools: expected definitions with a name, as the Messages API takes them.')
}

function toToolResult(output: ToolOutput, name: string): Awaited<ReturnType<RunTool>> {
  const { content, isError } =
    isObject(output) && 'content' in output ? output : { content: output, isError: undefined }
  if (typeof content !== 'string' && !Array.isArray(content))
    throw badTools(`The tool ${name} gave back ${typeof content}: expected a text or a list of blocks.`)
  return isError === undefined ? { content } : { content, is_error: isError }
}

function toAbortSignal(signal: Signal | undefined): AbortSignal {
  return signal instanceof AbortSignal ? signal : new AbortController().signal
}

function badTools(message: string): TidemarkError {
  return new TidemarkError('bad-option', message, { details: { option: 'tools' } })
}
