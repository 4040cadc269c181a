/** Converts the caller's tools to what a turn needs: definitions for the API request, and a function that runs tool calls. */
import { DEFAULT_HISTORY_TOOL_NAME } from '@tidemark/core/clearing/clear-candidates'
import type { ToolRunner } from '@tidemark/core/engine/host'
import type { Signal } from '@tidemark/core/engine/ports'
import type { SessionState } from '@tidemark/core/engine/session-state'
import { TidemarkError } from '@tidemark/core/errors'
import { isHistoryToolDefinition } from '@tidemark/core/history/history-tool'
import type { ToolUseBlock } from '@tidemark/core/log/block'
import { isObject, type JsonObject, omitUndefined } from '@tidemark/core/log/json'
import { formatErrorValue } from '@tidemark/core/policy/policy-fields'
import type { TidemarkSettings } from './options.ts'
import { toRecordedAnswers, type UserAnswer } from './user-answers.ts'

/** A tool whose calls `session.run` executes. */
export interface Tool {
  readonly description?: string
  /** The JSON schema of the tool's input. Default: an object without fields. */
  readonly inputSchema?: object
  /** True if calls of this tool may run at the same time as other such calls. Default: false. */
  readonly parallel?: boolean
  /** Runs a tool call. An exception becomes an error result that the model sees. */
  readonly run: (input: never, context: ToolContext) => ToolOutput | Promise<ToolOutput>
}

export interface ToolContext {
  /** The id of the tool call. */
  readonly id: string
  readonly name: string
  /** Aborted when the turn is aborted. */
  readonly signal: AbortSignal
  /** Emits the event `tool-progress`, for example with new output of a command. The model does not see it. */
  readonly progress: (text: string) => void
}

/** The output of a tool: text or content blocks, optionally marked as an error. */
export type ToolOutput =
  | string
  | readonly object[]
  | {
      readonly content: string | readonly object[]
      readonly isError?: boolean
      /**
       * For a tool that asks the user: what the user answered. It is recorded as the user's own words, which summaries and
       * notes keep. Nothing else in the output of a tool counts as the user's, whatever it says.
       */
      readonly answers?: readonly UserAnswer[]
    }

/** Tools, keyed by name. */
export type Tools = Readonly<Record<string, Tool>>

/** Tool definitions in the format of the API, for callers that run their own loop or give `runTool`. */
export type ToolDefinitions = readonly object[]

export interface Toolset {
  readonly definitions: readonly JsonObject[]
  readonly run: ToolRunner
  /** Returns true if calls of the tool may run at the same time as others. */
  readonly isParallel?: (name: string) => boolean
  /** Returns true if the tool exists or if `runTool` decides about that. Default: true for all names. */
  readonly hasTool?: (name: string) => boolean
  /** Like `hasTool`, but waits for `findTool`, which may supply the tool a moment later. */
  readonly waitForTool?: (name: string) => Promise<boolean>
  /** Names of tools that have no function to run them; such tools work only with `session.next`. */
  readonly withoutRunner?: readonly string[]
  /** True if there is at least one tool, and the caller gave `runTool` or the tools' own functions to run them. */
  readonly isRunnable?: boolean
}

export interface ToolOptions {
  /** The tools. A function is called before each request, for tools that change, such as those of MCP servers. */
  readonly tools?: Tools | ToolDefinitions | (() => Tools)
  /** Runs the calls of tools that are given as definitions. An exception becomes an error result that the model sees. */
  readonly runTool?: RunToolCall
  /**
   * Called for a tool that `tools` lacks, such as one of a server that is still starting. Returns the tool when it is there, or
   * null. An exception becomes an error result for the model. Used only with tools that have functions: calls of plain
   * definitions go to `runTool`.
   */
  readonly findTool?: FindTool
}

type FindTool = (name: string) => Tool | null | Promise<Tool | null>

type RunToolCall = (call: ToolUseBlock, signal: AbortSignal) => ToolOutput | Promise<ToolOutput>

/** Creates a toolset from tools keyed by name or from API tool definitions. Throws `bad-option` for any other value. */
export function createToolset({ tools = [], runTool, findTool }: ToolOptions): Toolset {
  if (findTool !== undefined && typeof findTool !== 'function')
    throw badTools('findTool: expected a function (name) that returns a tool, or null.')
  if (typeof tools === 'function') return createChangingToolset(tools, { runTool, findTool })
  if (runTool !== undefined && typeof runTool !== 'function')
    throw badTools('runTool: expected a function (call, signal) that returns the result of the tool.')
  const fallback: ToolRunner =
    runTool === undefined
      ? ({ name }) => ({ content: `There is no tool ${name}.`, is_error: true })
      : async (call, signal) => toToolResult(await runTool(call, toAbortSignal(signal)), call.name)
  if (Array.isArray(tools)) {
    if (findTool !== undefined)
      throw badTools('findTool: expected tools beside it, as { name: tool } or as a function.')
    const definitions = tools.map(toDefinition)
    // Tools with a type other than `custom` are run by the provider.
    const unrun = definitions.flatMap(({ type = 'custom', name }) =>
      type === 'custom' ? [String(name)] : [],
    )
    const isRunnable = runTool !== undefined && definitions.length > 0
    return {
      definitions,
      run: fallback,
      isParallel: () => false,
      withoutRunner: runTool === undefined ? unrun : [],
      isRunnable,
    }
  }
  if (!isObject(tools))
    throw badTools('tools: expected { name: { description, inputSchema, run } } or definitions.')
  const named = new Map(Object.entries(tools).map(([name, tool]) => [name, checkTool(name, tool)]))
  const definitions = [...named].map(
    ([name, { description, inputSchema = { type: 'object', properties: {} } }]) =>
      toDefinition({ name, ...omitUndefined({ description }), input_schema: inputSchema }),
  )
  const run: ToolRunner = async (call, signal, report = () => {}) => {
    const tool = named.get(call.name) ?? (await findTool?.(call.name)) ?? undefined
    if (tool === undefined) return fallback(call, signal)
    const context = { id: call.id, name: call.name, signal: toAbortSignal(signal), progress: report }
    return toToolResult(await tool.run(call.input as never, context), call.name)
  }
  const isParallel = (name: string): boolean => named.get(name)?.parallel === true
  const hasTool = (name: string): boolean => named.has(name) || runTool !== undefined
  const waitForTool = async (name: string): Promise<boolean> =>
    hasTool(name) || ((await findTool?.(name)) ?? null) !== null
  return { definitions, run, isParallel, hasTool, waitForTool, isRunnable: definitions.length > 0 }
}

/** Creates a toolset from a function that returns tools. The tools are converted again when it returns another object. */
function createChangingToolset(
  read: () => Tools,
  others: { readonly [Name in 'runTool' | 'findTool']: ToolOptions[Name] | undefined },
): Toolset {
  let last: { readonly tools: Tools; readonly toolset: Toolset } | null = null
  const find = (): Toolset => {
    const tools = read()
    if (last?.tools !== tools) last = { tools, toolset: createToolset({ tools, ...omitUndefined(others) }) }
    return last.toolset
  }
  return {
    get definitions() {
      return find().definitions
    },
    run: (call, signal, report) => find().run(call, signal, report),
    isParallel: (name) => find().isParallel?.(name) === true,
    hasTool: (name) => find().hasTool?.(name) !== false,
    waitForTool: async (name) => (await find().waitForTool?.(name)) !== false,
    get isRunnable() {
      return find().isRunnable === true
    },
  }
}

function checkTool(name: string, tool: unknown): Tool {
  if (isObject(tool) && typeof tool.run === 'function') return tool as unknown as Tool
  throw badTools(`tools.${name}: expected { description, inputSchema, run(input, { signal }) }.`)
}

/** Returns a copy of a tool definition as JSON, so that later changes to the caller's object have no effect. */
function toDefinition(tool: unknown): JsonObject {
  const copy: unknown = isObject(tool) ? JSON.parse(JSON.stringify(tool)) : null
  if (isObject(copy) && typeof copy.name === 'string') return copy as JsonObject
  throw badTools('tools: expected definitions with a name, as the Messages API takes them.')
}

function toToolResult(output: ToolOutput, name: string): Awaited<ReturnType<ToolRunner>> {
  const { content, isError, answers } =
    isObject(output) && 'content' in output
      ? output
      : { content: output, isError: undefined, answers: undefined }
  if (typeof content !== 'string' && !Array.isArray(content))
    throw badTools(`The tool ${name} gave back ${typeof content}: expected a text or a list of blocks.`)
  const wrong = typeof content === 'string' ? undefined : content.find((block) => !isResultBlock(block))
  if (wrong !== undefined)
    throw badTools(
      `The tool ${name} gave back ${formatErrorValue(wrong)} in a list of blocks: expected { type: 'text', text }, or { type: 'image' | 'document', source }.`,
    )
  return {
    content,
    ...(isError === undefined ? {} : { is_error: isError }),
    ...(answers === undefined ? {} : { userInputs: toRecordedAnswers(answers, `The tool ${name}`) }),
  }
}

/** Checks whether a tool result may contain a block. A block that it may not contain would make every later request fail. */
function isResultBlock(block: unknown): boolean {
  if (!isObject(block)) return false
  if (block.type === 'text') return typeof block.text === 'string'
  if (block.type === 'image' || block.type === 'document')
    return isObject(block.source) && typeof block.source.type === 'string'
  return block.type === 'search_result' || block.type === 'tool_reference'
}

function toAbortSignal(signal: Signal | undefined): AbortSignal {
  return signal instanceof AbortSignal ? signal : new AbortController().signal
}

function badTools(message: string): TidemarkError {
  return new TidemarkError('bad-option', message, { details: { option: 'tools' } })
}

/**
 * Returns the tools of the newest request in the log, without the history tool, for a compaction before the first turn.
 * Their calls get an error result.
 */
export function readToolsFromLog(
  state: SessionState,
  { historyTool, isHistoryAutomatic }: TidemarkSettings,
): Toolset {
  const { current, tools } = state.prefix
  const isEngines = ({ name }: JsonObject): boolean =>
    name === historyTool && (!isHistoryAutomatic || isHistoryToolInLog(state))
  const declared = (current?.epoch.tools ?? []).filter(({ name }) => !tools.has(String(name)))
  const changed = [...tools.values()].flatMap(({ definition }) => (definition === null ? [] : [definition]))
  const definitions = [...declared, ...changed].filter((tool) => !isEngines(tool))
  return {
    definitions,
    run: ({ name }) => ({ content: `The tool ${name} is not connected.`, is_error: true }),
  }
}

/** Checks whether the newest request of the log declared the engine's history tool, and not a tool of the same name. */
export function isHistoryToolInLog({ prefix }: SessionState): boolean {
  const declared = prefix.current?.epoch.tools.find(({ name }) => name === DEFAULT_HISTORY_TOOL_NAME)
  const tool = prefix.tools.get(DEFAULT_HISTORY_TOOL_NAME)?.definition ?? declared
  return tool !== undefined && isHistoryToolDefinition(tool)
}
