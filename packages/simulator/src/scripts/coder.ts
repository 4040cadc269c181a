/**
 * The coder: a script that works through a coding task with searches, parallel reads, edits, and tests that fail and
 * pass. It has its own simulated repository, so every tool call can be answered consistently without real tools. For a
 * client with real tools, it writes that repository on the client's disk first.
 */
import { TidemarkError } from '@tidemark/core/errors'
import { hashText } from '../protocol/clock-and-ids.ts'
import { type Block, isObject, type JsonObject } from '../protocol/messages-request.ts'
import {
  type CoderClient,
  createClientCalls,
  createIdleCall,
  findCoderClient,
  listRemainingCalls,
} from './coder-client.ts'
import {
  type CallIdParts,
  type CoderPosition,
  type FoundCoderPosition,
  findCoderPosition,
  formatCallId,
  formatStepMarker,
  parseCallId,
  pickLaterPosition,
  toStepIndex,
} from './coder-position.ts'
import type { SimulatedRepository } from './coder-repository.ts'
import { type CoderStep, createCoderSteps, listFilesWithUnseenEdits } from './coder-steps.ts'
import { CODER_TOOLS, runCoderTool } from './coder-tools.ts'
import { createSchemaValue, findToolsByRole } from './declared-tools.ts'
import { createFillerText } from './filler-text.ts'
import {
  listMessageTexts,
  listToolCalls,
  listToolResults,
  type Reply,
  type ReplyBlock,
  readSessionKey,
  type Script,
  type ScriptContext,
  type ScriptRequest,
  SESSION_HEADER,
  type ToolCall,
  takeCharacters,
} from './script.ts'

export interface CoderOptions {
  /** Number of responses with tool calls per user prompt, before the final text. `Infinity` for no end. Default: 24. */
  readonly turns?: number
  /** Seed for random content. The same seed gives the same repository, steps and texts. Default: `coder`. */
  readonly seed?: string
  /** Number of source files in the simulated repository, each with a test. Default: 6. */
  readonly files?: number
  /** Tokens of a tool result that contains a file or a test run. Default: 800. */
  readonly resultTokens?: number
  /** Tokens of text in a response in addition to its tool calls; 0 for none. Default: 40. */
  readonly textTokens?: number
  /** Tokens of thinking in a response, sent only if the request has thinking on; 0 for none. Default: 0. */
  readonly thinkingTokens?: number
  /** Maximum number of tool calls in one response. Default: 3. */
  readonly parallel?: number
  /**
   * `each-job`: each job begins by reading its files, even if the request shows them. `unseen`: a file is read, with an
   * extra response, only if the request does not show the lines to edit; only with the coder's own tools. Default:
   * `each-job`.
   */
  readonly reads?: 'each-job' | 'unseen'
  /** The task that the final text mentions. Default: the user prompt. */
  readonly task?: string
}

export interface Coder {
  readonly script: Script
  /**
   * Definitions of the coder's own tools, which `toolResult` runs. The coder calls only tools that the request declares.
   * If one of them can write files, as those of a real client, the coder uses the client's tools and files.
   */
  readonly tools: readonly JsonObject[]
  /**
   * Runs a tool call on the simulated repository and returns the `tool_result` block. The repository is in the state
   * of the step that made the call.
   */
  toolResult(call: ToolCall | Block): Block
  /** Returns the files of the simulated repository after the given number of steps. Default: 0. */
  repository(steps?: number): SimulatedRepository
  /**
   * Returns the files that the coder has written with the tools of a client after the given number of steps. The paths
   * are relative to the folder `tidemark-coder` in the client's working directory.
   */
  clientFiles(steps: number): SimulatedRepository
}

type CoderSettings = Required<Omit<CoderOptions, 'task'>> & Pick<CoderOptions, 'task'>

export const CODER_DEFAULTS: CoderSettings = {
  turns: 24,
  seed: 'coder',
  files: 6,
  resultTokens: 800,
  textTokens: 40,
  thinkingTokens: 0,
  parallel: 3,
  reads: 'each-job',
}

/**
 * Creates a coder with its script, tools and simulated repository. Throws a `TidemarkError` (`bad-option`) for a
 * value that is not a whole number in range.
 *
 * @example
 * const coder = createCoder({ turns: 12, resultTokens: 500 })
 * const simulator = createSimulator({ script: withSummaries(coder.script) })
 * // Declare coder.tools in the request, and answer each tool_use block with coder.toolResult(block).
 */
export function createCoder(options: CoderOptions = {}): Coder {
  const settings = validateSettings({ ...CODER_DEFAULTS, ...options })
  const steps = createCoderSteps({ ...settings, place: 'simulated' })
  const clientSteps = createCoderSteps({ ...settings, place: 'client', reads: 'each-job' })
  const reached = new Map<string, CoderPosition>()

  const script: Script = (request, context) => {
    const client = hasOnlyOwnTools(request.tools) ? null : findCoderClient(request)
    if (client === null && !hasOwnTools(request.tools)) return createSideReply(request)
    const { stepAt } = client === null ? steps : clientSteps
    const key = readSessionKey(request)
    const found = findCoderPosition(request.messages, settings.turns)
    const position = choosePosition(found, request, reached.get(key))
    const stage = { request, context, settings, client, stepAt }
    const before =
      client === null
        ? createLookReply(position, stage)
        : createRepairReply(client, { ...found, position }, stage)
    reached.set(key, before === null ? nextPosition(position, settings.turns) : position)
    if (before !== null) return before
    return position.step < settings.turns
      ? replyForStep(position, stage)
      : finalReply(position, request, settings)
  }

  return {
    script,
    tools: CODER_TOOLS,
    toolResult(call) {
      const { id, name, input } = toToolCall(call)
      const { repository } = steps.stepAt(parseCallId(id)?.index ?? findLatestStep(reached, settings.turns))
      const size = { seed: `${settings.seed}/${id}`, outputTokens: settings.resultTokens }
      const { text, isError } = runCoderTool(repository, { id, name, input }, size)
      return { type: 'tool_result', tool_use_id: id, content: text, ...(isError ? { is_error: true } : {}) }
    },
    repository: (count = 0) => steps.stepAt(count).repository,
    clientFiles: (count) => clientSteps.stepAt(count).repository,
  }
}

function validateSettings(settings: CoderSettings): CoderSettings {
  const least = {
    turns: 1,
    files: 1,
    resultTokens: 1,
    textTokens: 0,
    thinkingTokens: 0,
    parallel: 1,
  } as const
  for (const [name, minimum] of Object.entries(least)) {
    const value = settings[name as keyof typeof least]
    if (
      !(value >= minimum) ||
      !(Number.isInteger(value) || (name === 'turns' && value === Number.POSITIVE_INFINITY))
    )
      throw new TidemarkError(
        'bad-option',
        `The coder's ${name} must be a whole number of at least ${minimum}, not ${value}.`,
      )
  }
  return settings
}

/**
 * Chooses the step for the next response. The conversation normally shows it. The step stored for the session is used
 * only if it is later, and only after a compaction or if the conversation shows no step and the header
 * `x-simulator-session` is set.
 */
function choosePosition(
  found: FoundCoderPosition,
  { headers }: ScriptRequest,
  reached: CoderPosition | undefined,
): CoderPosition {
  const isNamed = !found.isCertain && headers[SESSION_HEADER] !== undefined
  return reached !== undefined && (found.isCompacted || isNamed)
    ? pickLaterPosition(found.position, reached)
    : found.position
}

function nextPosition({ task, step }: CoderPosition, turns: number): CoderPosition {
  return step < turns ? { task, step: step + 1 } : { task: task + 1, step: 0 }
}

function findLatestStep(reached: ReadonlyMap<string, CoderPosition>, turns: number): number {
  return Math.max(0, ...[...reached.values()].map((position) => toStepIndex(position, turns)))
}

/** Checks whether a request declares tools of the coder's own, by their names. */
function hasOwnTools(tools: readonly JsonObject[]): boolean {
  return tools.some(({ name }) => CODER_TOOLS.some((own) => own.name === name))
}

/** Checks whether the coder's own tools are declared, but no tool that writes files. */
function hasOnlyOwnTools(tools: readonly JsonObject[]): boolean {
  return hasOwnTools(tools) && findToolsByRole(tools).write === undefined
}

/**
 * Answers a request without tools for the coder, such as one for the title of a conversation. The answer is JSON if the
 * request has a schema for it, otherwise the beginning of the prompt.
 */
function createSideReply({ messages, body }: ScriptRequest): Reply {
  const format: unknown = body.output_config?.format ?? body.output_format
  const schema: unknown = isObject(format) ? format.schema : null
  const text = isObject(schema)
    ? JSON.stringify(createSchemaValue(schema as JsonObject))
    : takeCharacters(findPrompt(messages), SIDE_REPLY_LENGTH)
  return { blocks: [{ type: 'text', text: text || 'ok' }] }
}

const SIDE_REPLY_LENGTH = 60

interface Stage {
  readonly request: ScriptRequest
  readonly context: ScriptContext
  readonly settings: CoderSettings
  /** The client whose tools are used; null for the coder's own tools. */
  readonly client: CoderClient | null
  stepAt(index: number): CoderStep
}

function replyForStep(position: CoderPosition, stage: Stage): Reply {
  const { settings, client } = stage
  const index = toStepIndex(position, settings.turns)
  const step = stage.stepAt(index)
  const calls =
    client === null ? createOwnCalls(step, index, stage) : createStepCalls(step, index, client, stage)
  const text = stepTextBlock(step.intent, position, settings)
  const texts = settings.textTokens > 0 || calls.length === 0 ? [text] : []
  return { blocks: [...thinkingBlocks(settings, index), ...texts, ...calls] }
}

/** Creates the part of call ids that is different in each request. */
function createTag({ request, context, settings }: Stage): string {
  return hashText(`${settings.seed}/${readSessionKey(request)}/${context.index}`).slice(0, 8)
}

function createOwnCalls({ calls }: CoderStep, index: number, stage: Stage): readonly ReplyBlock[] {
  const declared = new Set(stage.request.tools.map((tool) => tool.name))
  return calls
    .filter((call) => declared.has(call.name))
    .map(({ name, input }, number) => {
      const id = formatCallId({ index, number, repair: null, file: 0 }, createTag(stage))
      return { type: 'tool_use', id, name, input }
    })
}

function createStepCalls(
  { calls, repository }: CoderStep,
  index: number,
  client: CoderClient,
  stage: Stage,
): readonly ReplyBlock[] {
  const formatId = (place: CallIdParts) => formatCallId(place, createTag(stage))
  const placed = calls.map((call, number) => ({ place: { index, number, repair: null, file: 0 }, call }))
  const made = createClientCalls(placed, client, { after: stage.stepAt(index + 1).repository, formatId })
  if (made.length > 0) return made
  const idle = createIdleCall(client, repository)
  const id = formatId({ index, number: calls.length, repair: null, file: 0 })
  return idle === null ? [] : [{ type: 'tool_use', id, ...idle }]
}

/** Creates a response that repairs what failed in the last step; null if there is nothing to repair. */
function createRepairReply(
  client: CoderClient,
  { position, isCompacted }: FoundCoderPosition,
  stage: Stage,
): Reply | null {
  const index = toStepIndex(position, stage.settings.turns) - 1
  if (position.step === 0) return null
  const repairs = listRemainingCalls(stage.request.messages, { index, isCompacted }, stage.stepAt)
  if (repairs[0]?.place.index !== index) return null
  const after = stage.stepAt(index + 1).repository
  const formatId = (place: CallIdParts) => formatCallId(place, createTag(stage))
  const calls = createClientCalls(repairs, client, { after, formatId })
  if (calls.length === 0) return null
  const intent = 'I look at the files that I changed and repair them if something failed'
  const text = stepTextBlock(intent, { ...position, step: position.step - 1 }, stage.settings)
  return { blocks: [...thinkingBlocks(stage.settings, index), text, ...calls] }
}

/** Creates a response that reads the files of the next edits. Null if the request already shows the lines to edit. */
function createLookReply({ task, step }: CoderPosition, stage: Stage): Reply | null {
  const { settings, request } = stage
  const index = toStepIndex({ task, step }, settings.turns)
  if (settings.reads !== 'unseen' || step >= settings.turns) return null
  const { messages } = request
  const last = messages.findLast(({ role }) => role === 'assistant')
  const isLooking = (last === undefined ? [] : listToolCalls(last)).some(({ id }) => {
    const place = parseCallId(id)
    return place?.repair === 'look' && place.index === index - 1
  })
  const texts = messages.flatMap((message) => [
    ...listMessageTexts(message),
    ...listToolResults(message).map(({ text }) => text),
  ])
  const paths = isLooking ? [] : listFilesWithUnseenEdits(stage.stepAt(index), texts)
  if (paths.length === 0) return null
  const calls = paths.map((file_path, file) => {
    const id = formatCallId({ index: index - 1, number: 0, repair: 'look', file }, createTag(stage))
    return { type: 'tool_use', id, name: 'Read', input: { file_path } } as const
  })
  const position = step === 0 ? { task: task - 1, step: settings.turns } : { task, step: step - 1 }
  return { blocks: [stepTextBlock('I read the lines that I edit', position, settings), ...calls] }
}

function stepTextBlock(intent: string, position: CoderPosition, settings: CoderSettings): ReplyBlock {
  const head = `${formatStepMarker(position, settings.turns)}: ${intent}.`
  const spare = settings.textTokens - Math.ceil(Buffer.byteLength(head) / 4)
  const more = createFillerText(`${settings.seed}/text/${position.task}/${position.step}`, Math.max(0, spare))
  return { type: 'text', text: more === '' ? head : `${head} ${more}` }
}

function thinkingBlocks({ seed, thinkingTokens }: CoderSettings, index: number): readonly ReplyBlock[] {
  if (thinkingTokens === 0) return []
  return [{ type: 'thinking', thinking: createFillerText(`${seed}/thinking/${index}`, thinkingTokens) }]
}

function finalReply(position: CoderPosition, { messages }: ScriptRequest, settings: CoderSettings): Reply {
  const task = settings.task ?? findPrompt(messages)
  const about = task === '' ? '' : ` “${takeCharacters(task, 120)}” is done.`
  const more = createFillerText(`${settings.seed}/last/${position.task}`, settings.textTokens)
  const text = `${formatStepMarker(position, settings.turns)}.${about} ${more}`
  return { blocks: [{ type: 'text', text: text.trim() }] }
}

/** Returns the first line of the last user text. */
function findPrompt(messages: ScriptRequest['messages']): string {
  const prompts = messages.filter(({ role }) => role === 'user').flatMap(listMessageTexts)
  return prompts.at(-1)?.trim().split('\n')[0] ?? ''
}

function toToolCall(call: ToolCall | Block): ToolCall {
  const { id, name, input } = call
  return { id: String(id ?? ''), name: String(name ?? ''), input: (input ?? {}) as JsonObject }
}
