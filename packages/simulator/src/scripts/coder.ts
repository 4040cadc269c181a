/**
 * A model that works: a task of any number of turns, with searches, parallel reads, edits, tests that fail and
 * pass, sized to order. It keeps a make-believe repository, so that a host without tools can have every call
 * answered, and the answers agree with each other.
 */
import { TidemarkError } from '@tidemark/core'
import { type Block, blocksOf, type JsonObject, type MessageParam, textField } from '../protocol/api.ts'
import { digest } from '../protocol/clock-and-ids.ts'
import type { Repository } from './coder-repository.ts'
import { createSteps, type Step } from './coder-steps.ts'
import { CODER_TOOLS, runTool } from './coder-tools.ts'
import { prose } from './filler-text.ts'
import {
  beginning,
  type Reply,
  type ReplyBlock,
  type Script,
  type ScriptContext,
  type ScriptRequest,
  SESSION_HEADER,
  sessionKey,
  type ToolCall,
  textsOf,
} from './script.ts'

export interface CoderOptions {
  /** Responses with tool calls to one prompt of the person, before the last word; `Infinity` for no end. */
  readonly turns?: number
  /** The same seed gives the same repository, steps and words. */
  readonly seed?: string
  /** Source files of the repository; each has a test beside it. */
  readonly files?: number
  /** What reading a file or running the tests comes to. */
  readonly resultTokens?: number
  /** Text of a response beside its calls; 0 for none. */
  readonly textTokens?: number
  /** Thinking of a response; the simulator sends it only where the request has thinking on. 0 for none. */
  readonly thinkingTokens?: number
  /** The most calls in one response. */
  readonly parallel?: number
  /** What the coder says it works on; otherwise the prompt it was given. */
  readonly task?: string
}

export interface Coder {
  readonly script: Script
  /** The tools it calls, as a request declares them. It calls none that a request does not declare. */
  readonly tools: readonly JsonObject[]
  /** The block that answers a call: run against the repository as it was at that step. */
  toolResult(call: ToolCall | Block): Block
  /** The repository after so many steps, by path; at the start unless said. */
  repository(steps?: number): Repository
}

export type CoderSettings = Required<Omit<CoderOptions, 'task'>> & Pick<CoderOptions, 'task'>

export const CODER_DEFAULTS: CoderSettings = {
  turns: 24,
  seed: 'coder',
  files: 6,
  resultTokens: 800,
  textTokens: 40,
  thinkingTokens: 0,
  parallel: 3,
}

export function createCoder(options: CoderOptions = {}): Coder {
  const settings = checked({ ...CODER_DEFAULTS, ...options })
  const steps = createSteps(settings)
  const reached = new Map<string, Position>()

  const script: Script = (request, context) => {
    const key = sessionKey(request)
    const position = whereTo(findPosition(request.messages, settings.turns), request, reached.get(key))
    reached.set(key, after(position, settings.turns))
    const step = position.step < settings.turns ? steps.at(stepIndex(position, settings.turns)) : null
    return step === null
      ? lastWord(position, request, settings)
      : stepReply(step, position, { request, context, settings })
  }

  return {
    script,
    tools: CODER_TOOLS,
    toolResult(call) {
      const { id, name, input } = called(call)
      const { repository } = steps.at(stepOfCall(id) ?? latest(reached, settings.turns))
      const size = { seed: `${settings.seed}/${id}`, outputTokens: settings.resultTokens }
      const { text, isError } = runTool(repository, { id, name, input }, size)
      return { type: 'tool_result', tool_use_id: id, content: text, ...(isError ? { is_error: true } : {}) }
    },
    repository: (count = 0) => steps.at(count).repository,
  }
}

function checked(settings: CoderSettings): CoderSettings {
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
 * The conversation says where to go on. Only where a compaction took that away does the coder's own memory of
 * the session count, and where the session is named by a header made for it.
 */
function whereTo(found: Found, { headers }: ScriptRequest, reached: Position | undefined): Position {
  const isNamed = !found.isCertain && headers[SESSION_HEADER] !== undefined
  return reached !== undefined && (found.isCompacted || isNamed)
    ? later(found.position, reached)
    : found.position
}

function after({ task, step }: Position, turns: number): Position {
  return step < turns ? { task, step: step + 1 } : { task: task + 1, step: 0 }
}

function latest(reached: ReadonlyMap<string, Position>, turns: number): number {
  return Math.max(0, ...[...reached.values()].map((position) => stepIndex(position, turns)))
}

interface StepContext {
  readonly request: ScriptRequest
  readonly context: ScriptContext
  readonly settings: CoderSettings
}

function stepReply(step: Step, position: Position, { request, context, settings }: StepContext): Reply {
  const index = stepIndex(position, settings.turns)
  const tag = digest(`${settings.seed}/${sessionKey(request)}/${context.index}`).slice(0, 8)
  const declared = new Set(request.tools.map((tool) => tool.name))
  const calls: readonly ReplyBlock[] = step.calls
    .filter((call) => declared.has(call.name))
    .map((call, number) => ({ type: 'tool_use', id: callId({ index, call: number, tag }), ...call }))
  const said = settings.textTokens > 0 || calls.length === 0 ? [textBlock(step, position, settings)] : []
  return { blocks: [...thoughts(settings, index), ...said, ...calls] }
}

function textBlock({ intent }: Step, position: Position, settings: CoderSettings): ReplyBlock {
  const head = `${marker(position, settings.turns)}: ${intent}.`
  const spare = settings.textTokens - Math.ceil(Buffer.byteLength(head) / 4)
  const more = prose(`${settings.seed}/text/${position.task}/${position.step}`, Math.max(0, spare))
  return { type: 'text', text: more === '' ? head : `${head} ${more}` }
}

function thoughts({ seed, thinkingTokens }: CoderSettings, index: number): readonly ReplyBlock[] {
  if (thinkingTokens === 0) return []
  return [{ type: 'thinking', thinking: prose(`${seed}/thinking/${index}`, thinkingTokens) }]
}

function lastWord(position: Position, { messages }: ScriptRequest, settings: CoderSettings): Reply {
  const task = settings.task ?? promptIn(messages)
  const about = task === '' ? '' : ` “${beginning(task, 120)}” is done.`
  const more = prose(`${settings.seed}/last/${position.task}`, settings.textTokens)
  const text = `${marker(position, settings.turns)}.${about} ${more}`
  return { blocks: [{ type: 'text', text: text.trim() }] }
}

/** The first line of what the person said last. */
function promptIn(messages: ScriptRequest['messages']): string {
  const prompts = messages.filter(({ role }) => role === 'user').flatMap(textsOf)
  return prompts.at(-1)?.trim().split('\n')[0] ?? ''
}

function called(call: ToolCall | Block): ToolCall {
  const { id, name, input } = call
  return { id: String(id ?? ''), name: String(name ?? ''), input: (input ?? {}) as JsonObject }
}

// How far the coder has come, read off the conversation: every call says it in its id, every text in its first
// words. After a compaction there may be nothing left but a summary, which may or may not quote them.

/** The next response: a step of a task, or its last word where `step` is the number of turns. */
export interface Position {
  readonly task: number
  readonly step: number
}

export const START: Position = { task: 0, step: 0 }

export interface Found {
  readonly position: Position
  /** The newest response of the coder that is still there says so. */
  readonly isCertain: boolean
  /** A summary stands behind that response, or in its place. */
  readonly isCompacted: boolean
}

export function findPosition(messages: readonly MessageParam[], turns: number): Found {
  const at = messages.findLastIndex((message) => positionIn(message, turns) !== null)
  const newest = messages[at]
  const read = newest === undefined ? null : positionIn(newest, turns)
  const said = messages.slice(at + 1).flatMap(summaryTexts)
  const quoted = said.flatMap((text) => markersIn(text))
  return {
    position: [...quoted, read ?? START].reduce(later),
    isCertain: read !== null,
    isCompacted: said.length > 0,
  }
}

export function later(one: Position, other: Position): Position {
  const isLater = one.task === other.task ? one.step > other.step : one.task > other.task
  return isLater ? one : other
}

/** Of all steps, whatever the task. */
export function stepIndex({ task, step }: Position, turns: number): number {
  return task === 0 ? step : task * turns + step
}

export function callId({ index, call, tag }: { index: number; call: number; tag: string }): string {
  return `toolu_coder_${index.toString(36)}_${call}_${tag}`
}

/** The step that a call belongs to; null where it is not one of the coder's. */
export function stepOfCall(id: string): number | null {
  const [, index] = /^toolu_coder_([0-9a-z]+)_\d+_/.exec(id) ?? []
  return index === undefined ? null : Number.parseInt(index, 36)
}

/** The first words of a step, and of the last word on a task. */
export function marker({ task, step }: Position, turns: number): string {
  if (step >= turns) return `Task ${task + 1} done after ${turns} steps`
  const of = Number.isFinite(turns) ? ` of ${turns}` : ''
  return task === 0 ? `Step ${step + 1}${of}` : `Task ${task + 1}, step ${step + 1}${of}`
}

function positionIn(message: MessageParam, turns: number): Position | null {
  if (message.role !== 'assistant') return null
  const found = blocksOf(message.content).flatMap((block) => positionsIn(block, turns))
  return found.length === 0 ? null : found.reduce(later)
}

function positionsIn(block: Block, turns: number): readonly Position[] {
  if (block.type === 'text') return markersIn(textField(block, 'text'))
  const index = block.type === 'tool_use' ? stepOfCall(textField(block, 'id')) : null
  return index === null ? [] : [{ task: Math.floor(index / turns), step: (index % turns) + 1 }]
}

const MARKER = /\bTask (\d+) done after \d+ steps\b|\b(?:Task (\d+), step|Step) (\d+)\b(?! steps)/g

/** The position after each marker in the text. */
function markersIn(text: string): readonly Position[] {
  return [...text.matchAll(MARKER)].map(([, done, task, step]) =>
    done === undefined
      ? { task: task === undefined ? 0 : Number(task) - 1, step: Number(step) }
      : { task: Number(done), step: 0 },
  )
}

const SUMMARY = /\bsummar(?:y|i[sz]ed)\b/i
const OF_A_SESSION = /\b(?:conversation|session|continu\w+)\b/i

/** What stands for a conversation that went before: a provider's block, or text that says it is a summary. */
function summaryTexts(message: MessageParam): readonly string[] {
  return blocksOf(message.content).flatMap((block) => {
    if (block.type === 'compaction') return [textField(block, 'content')]
    const text = block.type === 'text' && message.role === 'user' ? textField(block, 'text') : ''
    return SUMMARY.test(text) && OF_A_SESSION.test(text) ? [text] : []
  })
}
