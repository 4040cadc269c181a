/**
 * The coder: a script that works through a coding task with searches, parallel reads, edits, and tests that fail and
 * pass. It has its own simulated repository, so every tool call can be answered consistently without real tools.
 */
import { TidemarkError } from '@tidemark/core'
import { type Block, type JsonObject, type MessageParam, readTextField, toBlocks } from '../protocol/api.ts'
import { hashText } from '../protocol/clock-and-ids.ts'
import type { SimulatedRepository } from './coder-repository.ts'
import { type CoderStep, createCoderSteps } from './coder-steps.ts'
import { CODER_TOOLS, runCoderTool } from './coder-tools.ts'
import { createFillerText } from './filler-text.ts'
import {
  listMessageTexts,
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
  /** The task that the final text mentions. Default: the user prompt. */
  readonly task?: string
}

export interface Coder {
  readonly script: Script
  /** Definitions of the coder's tools. The coder calls only tools that the request declares. */
  readonly tools: readonly JsonObject[]
  /**
   * Runs a tool call on the simulated repository and returns the `tool_result` block. The repository is in the state
   * of the step that made the call.
   */
  toolResult(call: ToolCall | Block): Block
  /** Returns the files of the simulated repository after the given number of steps. Default: 0. */
  repository(steps?: number): SimulatedRepository
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
  const steps = createCoderSteps(settings)
  const reached = new Map<string, CoderPosition>()

  const script: Script = (request, context) => {
    const key = readSessionKey(request)
    const position = choosePosition(findPosition(request.messages, settings.turns), request, reached.get(key))
    reached.set(key, nextPosition(position, settings.turns))
    const step = position.step < settings.turns ? steps.stepAt(toStepIndex(position, settings.turns)) : null
    return step === null
      ? finalReply(position, request, settings)
      : replyForStep(step, position, { request, context, settings })
  }

  return {
    script,
    tools: CODER_TOOLS,
    toolResult(call) {
      const { id, name, input } = toToolCall(call)
      const { repository } = steps.stepAt(parseCallStep(id) ?? findLatestStep(reached, settings.turns))
      const size = { seed: `${settings.seed}/${id}`, outputTokens: settings.resultTokens }
      const { text, isError } = runCoderTool(repository, { id, name, input }, size)
      return { type: 'tool_result', tool_use_id: id, content: text, ...(isError ? { is_error: true } : {}) }
    },
    repository: (count = 0) => steps.stepAt(count).repository,
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
    ? laterPosition(found.position, reached)
    : found.position
}

function nextPosition({ task, step }: CoderPosition, turns: number): CoderPosition {
  return step < turns ? { task, step: step + 1 } : { task: task + 1, step: 0 }
}

function findLatestStep(reached: ReadonlyMap<string, CoderPosition>, turns: number): number {
  return Math.max(0, ...[...reached.values()].map((position) => toStepIndex(position, turns)))
}

interface StepContext {
  readonly request: ScriptRequest
  readonly context: ScriptContext
  readonly settings: CoderSettings
}

function replyForStep(
  step: CoderStep,
  position: CoderPosition,
  { request, context, settings }: StepContext,
): Reply {
  const index = toStepIndex(position, settings.turns)
  const tag = hashText(`${settings.seed}/${readSessionKey(request)}/${context.index}`).slice(0, 8)
  const declared = new Set(request.tools.map((tool) => tool.name))
  const calls: readonly ReplyBlock[] = step.calls
    .filter((call) => declared.has(call.name))
    .map((call, number) => ({ type: 'tool_use', id: formatCallId({ index, call: number, tag }), ...call }))
  const texts = settings.textTokens > 0 || calls.length === 0 ? [stepTextBlock(step, position, settings)] : []
  return { blocks: [...thinkingBlocks(settings, index), ...texts, ...calls] }
}

function stepTextBlock({ intent }: CoderStep, position: CoderPosition, settings: CoderSettings): ReplyBlock {
  const head = `${formatMarker(position, settings.turns)}: ${intent}.`
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
  const text = `${formatMarker(position, settings.turns)}.${about} ${more}`
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

// The coder finds its last step in the conversation, from its tool call ids and from phrases such as `Step 3 of 24`
// in its texts. After a compaction only a summary may be left, which may not contain the phrases.

/**
 * Position of the next response: the number of the task (one per user prompt) and of the step within the task. If
 * `step` equals the number of turns, the response is the task's final text.
 */
interface CoderPosition {
  readonly task: number
  readonly step: number
}

const START_POSITION: CoderPosition = { task: 0, step: 0 }

export interface FoundCoderPosition {
  readonly position: CoderPosition
  /** True if the position was found in a response of the coder; false if it was found in a summary or not at all. */
  readonly isCertain: boolean
  /** True if a summary follows the newest response of the coder, or if only a summary is left. */
  readonly isCompacted: boolean
}

function findPosition(messages: readonly MessageParam[], turns: number): FoundCoderPosition {
  const at = messages.findLastIndex((message) => findMessagePosition(message, turns) !== null)
  const newest = messages[at]
  const read = newest === undefined ? null : findMessagePosition(newest, turns)
  const summaries = messages.slice(at + 1).flatMap(findSummaryTexts)
  const quoted = summaries.flatMap(findMarkers)
  return {
    position: [...quoted, read ?? START_POSITION].reduce(laterPosition),
    isCertain: read !== null,
    isCompacted: summaries.length > 0,
  }
}

function laterPosition(one: CoderPosition, other: CoderPosition): CoderPosition {
  const isLater = one.task === other.task ? one.step > other.step : one.task > other.task
  return isLater ? one : other
}

/** Returns the index of a step counted over all tasks; 0 for the first step of the first task. */
function toStepIndex({ task, step }: CoderPosition, turns: number): number {
  return task === 0 ? step : task * turns + step
}

function formatCallId({ index, call, tag }: { index: number; call: number; tag: string }): string {
  return `toolu_coder_${index.toString(36)}_${call}_${tag}`
}

/** Returns the index of the step that made a tool call; null if the coder did not create the call id. */
function parseCallStep(id: string): number | null {
  const [, index] = /^toolu_coder_([0-9a-z]+)_\d+_/.exec(id) ?? []
  return index === undefined ? null : Number.parseInt(index, 36)
}

/**
 * Returns the words with which a response of the coder begins, such as `Step 3 of 24` or `Task 1 done after 24
 * steps`.
 */
function formatMarker({ task, step }: CoderPosition, turns: number): string {
  if (step >= turns) return `Task ${task + 1} done after ${turns} steps`
  const of = Number.isFinite(turns) ? ` of ${turns}` : ''
  return task === 0 ? `Step ${step + 1}${of}` : `Task ${task + 1}, step ${step + 1}${of}`
}

function findMessagePosition(message: MessageParam, turns: number): CoderPosition | null {
  if (message.role !== 'assistant') return null
  const found = toBlocks(message.content).flatMap((block) => findBlockPositions(block, turns))
  return found.length === 0 ? null : found.reduce(laterPosition)
}

function findBlockPositions(block: Block, turns: number): readonly CoderPosition[] {
  if (block.type === 'text') return findMarkers(readTextField(block, 'text'))
  const index = block.type === 'tool_use' ? parseCallStep(readTextField(block, 'id')) : null
  return index === null ? [] : [{ task: Math.floor(index / turns), step: (index % turns) + 1 }]
}

const MARKER_PATTERN = /\bTask (\d+) done after \d+ steps\b|\b(?:Task (\d+), step|Step) (\d+)\b(?! steps)/g

/**
 * Finds phrases such as `Step 3 of 24` in a text. Returns for each phrase the position of the response that comes
 * next.
 */
function findMarkers(text: string): readonly CoderPosition[] {
  return [...text.matchAll(MARKER_PATTERN)].map(([, done, task, step]) =>
    done === undefined
      ? { task: task === undefined ? 0 : Number(task) - 1, step: Number(step) }
      : { task: Number(done), step: 0 },
  )
}

const SUMMARY_PATTERN = /\bsummar(?:y|i[sz]ed)\b/i
const SESSION_PATTERN = /\b(?:conversation|session|continu\w+)\b/i

/**
 * Returns the texts of summaries in a message: compaction blocks, and user texts that mention a summary of the
 * conversation.
 */
function findSummaryTexts(message: MessageParam): readonly string[] {
  return toBlocks(message.content).flatMap((block) => {
    if (block.type === 'compaction') return [readTextField(block, 'content')]
    const text = block.type === 'text' && message.role === 'user' ? readTextField(block, 'text') : ''
    return SUMMARY_PATTERN.test(text) && SESSION_PATTERN.test(text) ? [text] : []
  })
}
