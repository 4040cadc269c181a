/** Tools as people give them, and as a turn needs them: definitions for the request, and what runs a call. */
import {
  isObject,
  type JsonObject,
  type RunTool,
  type Signal,
  TidemarkError,
  type ToolUseBlock,
} from '@tidemark/core'

/** One tool of a loop that is ours. */
export interface Tool {
  readonly description?: string
  /** JSON schema of its input; an object with no fields unless given. */
  readonly inputSchema?: object
  /** What it throws is told to the model as the failure of the call. */
  readonly run: (input: never, context: ToolContext) => ToolOutput | Promise<ToolOutput>
}

export interface ToolContext {
  /** The id of the call. */
  readonly id: string
  readonly name: string
  /** Aborted when the turn is called off. */
  readonly signal: AbortSignal
}

/** A text, blocks, or either with the word that it failed. */
export type ToolOutput =
  | string
  | readonly object[]
  | { readonly content: string | readonly object[]; readonly isError?: boolean }

/** By name. */
export type Tools = Readonly<Record<string, Tool>>

/** Definitions as the API takes them: the loop is yours, or `runTool` runs them. */
export type ToolDefinitions = readonly object[]

export interface Toolset {
  readonly definitions: readonly JsonObject[]
  readonly run: RunTool
  /** Names of those whose calls nobody runs: for a loop of your own. */
  readonly unrun?: readonly string[]
}

export interface GivenTools {
  readonly tools?: Tools | ToolDefinitions
  /** Runs the calls of tools that are given as definitions. What it throws is told to the model. */
  readonly runTool?: RunCall
}

export type RunCall = (call: ToolUseBlock, signal: AbortSignal) => ToolOutput | Promise<ToolOutput>

export function toolsetOf({ tools = [], runTool }: GivenTools): Toolset {
  if (runTool !== undefined && typeof runTool !== 'function')
    throw bad('runTool: expected a function (call, signal) that gives what the tool says.')
  const otherwise = runTool === undefined ? unknownTool : callRunner(runTool)
  if (Array.isArray(tools)) {
    const definitions = tools.map(definitionOf)
    return { definitions, run: otherwise, unrun: runTool === undefined ? hostRun(definitions) : [] }
  }
  if (!isObject(tools))
    throw bad('tools: expected { name: { description, inputSchema, run } } or definitions.')
  const named = new Map(Object.entries(tools).map(([name, tool]) => [name, checked(name, tool)]))
  const definitions = [...named].map(([name, { description, inputSchema }]) =>
    definitionOf({
      name,
      ...(description === undefined ? {} : { description }),
      input_schema: inputSchema ?? { type: 'object', properties: {} },
    }),
  )
  return { definitions, run: runnerOf(named, otherwise) }
}

/** Those that the provider does not run itself. */
function hostRun(definitions: readonly JsonObject[]): readonly string[] {
  return definitions.flatMap(({ type = 'custom', name }) => (type === 'custom' ? [String(name)] : []))
}

/** For a loop of ours: every tool that is offered can be run. */
export function checkRunnable({ unrun = [] }: Toolset): void {
  if (unrun.length === 0) return
  throw bad(
    `run: nothing runs the tools ${unrun.join(', ')}. Give runTool(call, signal), or each tool as { description, inputSchema, run }.`,
  )
}

function checked(name: string, tool: unknown): Tool {
  if (isObject(tool) && typeof tool.run === 'function') return tool as unknown as Tool
  throw bad(`tools.${name}: expected { description, inputSchema, run(input, { signal }) }.`)
}

/** What a request holds has to be JSON, and stays what it is whatever becomes of the object. */
function definitionOf(tool: unknown): JsonObject {
  const copy: unknown = isObject(tool) ? JSON.parse(JSON.stringify(tool)) : null
  if (isObject(copy) && typeof copy.name === 'string') return copy as JsonObject
  throw bad('tools: expected definitions with a name, as the Messages API takes them.')
}

function callRunner(run: RunCall): RunTool {
  return async (call, signal) => answerOf(await run(call, abortSignal(signal)), call.name)
}

function runnerOf(tools: ReadonlyMap<string, Tool>, otherwise: RunTool): RunTool {
  return async (call, signal) => {
    const tool = tools.get(call.name)
    if (tool === undefined) return otherwise(call, signal)
    const context = { id: call.id, name: call.name, signal: abortSignal(signal) }
    const output = await tool.run(call.input as never, context)
    return answerOf(output, call.name)
  }
}

function answerOf(output: ToolOutput, name: string): Awaited<ReturnType<RunTool>> {
  const { content, isError } =
    isObject(output) && 'content' in output ? output : { content: output, isError: undefined }
  if (typeof content !== 'string' && !Array.isArray(content))
    throw bad(`The tool ${name} gave back ${typeof content}: expected a text or a list of blocks.`)
  return isError === undefined ? { content } : { content, is_error: isError }
}

function abortSignal(signal: Signal | undefined): AbortSignal {
  return signal instanceof AbortSignal ? signal : new AbortController().signal
}

function unknownTool(call: { readonly name: string }): Awaited<ReturnType<RunTool>> {
  return { content: `There is no tool ${call.name}.`, is_error: true }
}

function bad(message: string): TidemarkError {
  return new TidemarkError('bad-option', message, { details: { option: 'tools' } })
}
