/**
 * A recorded session as the steps of its conversation, without the rewrites of the program that recorded it: inputs and
 * responses, with their recorded times. The size of system prompt and tools is taken from the usage of the first
 * response.
 */

import { readUserInputs, type ToolCallLookup, type UserInput } from '@tidemark/core/facts/user-input'
import { type Block, isToolResult, isToolUse, type ToolUseBlock, toBlocks } from '@tidemark/core/log/block'
import {
  type AssistantRecord,
  isKnownRecord,
  type KnownRecord,
  type RecordedUserInput,
  type SessionRecord,
  SYNTHETIC_MODEL,
} from '@tidemark/core/log/record'
import { buildSessionLog, requireRecordAt } from '@tidemark/core/log/session-log'
import { countPromptTokens } from '@tidemark/core/tokens/usage'
import { toResponseKey } from '../inspect/logged-calls.ts'
import { countBlockTokens } from './billed-cache.ts'

export interface RecordedSession {
  readonly steps: readonly RecordedStep[]
  /** Tokens of system prompt and tools. */
  readonly prefixTokens: number
  /**
   * Tokens of the first request that are neither system prompt, tools nor messages of this log: the conversation of an
   * earlier log.
   */
  readonly earlierTokens: number
  readonly toolNames: readonly string[]
  /** Growth of the recorded requests in tokens, divided by the estimated tokens of the added blocks; 1 if unknown. */
  readonly scale: number
}

export interface RecordedStep {
  readonly kind: 'input' | 'response'
  /** Milliseconds since 1970; never earlier than the previous step. */
  readonly at: number
  readonly blocks: readonly Block[]
  /** True for input that the user typed, by the fields of the record: no tool result, and no text of the program. */
  readonly isPrompt: boolean
  /** What the user answered or refused in the results of this input. */
  readonly userInputs: readonly RecordedUserInput[]
  /** Model of a response, and the key under which `inspect` lists its call; null for input. */
  readonly response: { readonly model: string; readonly key: string | null } | null
}

/**
 * Limits in tokens for the size of system prompt and tools, and the size that is assumed where it cannot be measured: a
 * log that continues another one begins with a large request that is mostly conversation. 41,000 is the median of
 * recorded sessions.
 */
const PREFIX_LIMITS = { least: 1_000, most: 80_000, unmeasured: 41_000 }

/** Reads the current branch of a log as steps. Rewrites of the recording program are left out, and tool calls get unique ids. */
export function readRecordedSession(records: readonly SessionRecord[]): RecordedSession {
  const branch = listBranch(records)
  const steps = listSteps(branch.filter((record) => !isRewrite(record)))
  const calls = steps.flatMap(({ blocks }) => blocks.filter(isToolUse))
  return {
    steps,
    ...findRecordedPrefix(branch, continuesAnotherLog(records)),
    toolNames: [...new Set(calls.map(({ name }) => name))].toSorted(),
    scale: measureScale(branch),
  }
}

const SCALE_LIMITS = { least: 0.5, most: 2 }

/** Compares the growth of the recorded requests with the estimate of what was added between them. */
function measureScale(branch: readonly KnownRecord[]): number {
  let [reported, estimated, before, added] = [0, 0, 0, 0]
  let responseId: string | null = null
  for (const record of branch) {
    if (record.type !== 'user' && record.type !== 'assistant') continue
    if (record.type === 'assistant' && record.message.id !== responseId) {
      responseId = record.message.id
      const context = countRequestTokens(record)
      if (context > 0) {
        // A request that is smaller than the previous one follows a rewrite, so it shows no growth.
        if (before > 0 && context > before) {
          reported += context - before
          estimated += added
        }
        before = context
        added = 0
      }
    }
    added += toBlocks(record.message.content).reduce((sum, block) => sum + countBlockTokens(block), 0)
  }
  if (reported === 0 || estimated === 0) return 1
  return Math.min(SCALE_LIMITS.most, Math.max(SCALE_LIMITS.least, reported / estimated))
}

/** Returns the tokens of the request that a response answers, as the provider reported them; 0 if the log has none. */
function countRequestTokens({ message, usage }: AssistantRecord): number {
  return message.model === SYNTHETIC_MODEL || usage === undefined ? 0 : countPromptTokens(usage)
}

function listBranch(records: readonly SessionRecord[]): readonly KnownRecord[] {
  const session = buildSessionLog(records)
  return [...session.branch]
    .map((index) => requireRecordAt(session, index))
    .filter(isKnownRecord)
    .filter((record) => record.type === 'user' || record.type === 'assistant')
}

/** Returns true for records of a rewrite by the recording program, and for what it wrote itself in place of a response. */
function isRewrite(record: KnownRecord): boolean {
  const isSynthetic = record.type === 'assistant' && record.message.model === SYNTHETIC_MODEL
  return record.isCompactSummary === true || isSynthetic
}

function listSteps(records: readonly KnownRecord[]): readonly RecordedStep[] {
  const steps: RecordedStep[] = []
  const ids = new UniqueCallIds()
  const responses = new Map<string, number>()
  let at = 0
  for (const record of records) {
    if (record.type !== 'user' && record.type !== 'assistant') continue
    at = Math.max(at, Date.parse(record.timestamp) || 0)
    const isResponse = record.type === 'assistant'
    const inputs = isResponse ? [] : readUserInputs(record, ids)
    const userInputs = inputs.flatMap((input) => toRecordedInput(input, ids))
    const blocks = ids.rename(toBlocks(record.message.content).filter(isSendable))
    if (blocks.length === 0) continue
    const begun = isResponse ? findBegunStep(steps, responses.get(identifyRequest(record))) : null
    if (begun !== null) {
      const { step, index } = begun
      steps[index] = { ...step, blocks: [...step.blocks, ...blocks] }
      continue
    }
    const isPrompt = inputs.length > 0 && !blocks.some(isToolResult)
    const response = isResponse ? { model: record.message.model, key: toResponseKey(record) } : null
    if (isResponse) responses.set(identifyRequest(record), steps.length)
    steps.push({ kind: isResponse ? 'response' : 'input', at, blocks, isPrompt, userInputs, response })
  }
  return steps
}

/** Identifies the request of a response by message id and request size, because gateways may repeat ids. */
function identifyRequest(record: AssistantRecord): string {
  const { requestId } = record as { readonly requestId?: unknown }
  return JSON.stringify([record.message.id, requestId ?? null, countRequestTokens(record)])
}

/**
 * Returns the response that a record continues: the newest one, if only results of its calls follow it. A program that
 * runs tools during a response records their results between the parts of the response.
 */
function findBegunStep(
  steps: readonly RecordedStep[],
  index: number | undefined,
): { readonly step: RecordedStep; readonly index: number } | null {
  const step = index === undefined ? undefined : steps[index]
  if (index === undefined || step === undefined) return null
  const since = steps.slice(index + 1)
  const isResults = since.every(({ kind, blocks }) => kind === 'input' && blocks.every(isToolResult))
  return isResults ? { step, index } : null
}

/** Returns the user's answer or refusal in the form in which a host records it; nothing for other inputs. */
function toRecordedInput(
  { kind, text, author, toolUseId, question }: UserInput,
  ids: UniqueCallIds,
): readonly RecordedUserInput[] {
  if (author.kind !== 'user' || toolUseId === null || (kind !== 'answer' && kind !== 'refusal')) return []
  const asked = question === null ? {} : { question: { text: question.text, options: question.options } }
  return [{ kind, text, toolUseId: ids.findId(toolUseId), ...asked }]
}

/** Returns true for a block that a provider would accept again. Thinking of other vendors has no signature. */
function isSendable({ type, signature }: Block): boolean {
  return type !== 'thinking' || (typeof signature === 'string' && signature !== '')
}

/**
 * Gives each tool call a unique id, because some providers reuse ids. Drops results without a call, and second results
 * of a call.
 */
class UniqueCallIds implements ToolCallLookup {
  readonly #known = new Set<string>()
  /** The newest call for each recorded id. */
  readonly #calls = new Map<string, ToolUseBlock>()
  /** The new id for each recorded id whose call has no result yet. */
  readonly #open = new Map<string, string>()

  rename(blocks: readonly Block[]): readonly Block[] {
    return blocks.flatMap((block): readonly Block[] => {
      if (isToolUse(block)) return [this.#renameCall(block)]
      if (!isToolResult(block)) return [block]
      const id = this.#open.get(block.tool_use_id)
      this.#open.delete(block.tool_use_id)
      return id === undefined ? [] : [id === block.tool_use_id ? block : { ...block, tool_use_id: id }]
    })
  }

  get(id: string): ToolUseBlock | undefined {
    return this.#calls.get(id)
  }

  /** Returns the id under which the result of a recorded call is replayed. */
  findId(recorded: string): string {
    return this.#open.get(recorded) ?? recorded
  }

  #renameCall(block: ToolUseBlock): Block {
    this.#calls.set(block.id, block)
    const id = this.#known.has(block.id) ? `${block.id}_${this.#known.size}` : block.id
    this.#known.add(id)
    this.#open.set(block.id, id)
    return id === block.id ? block : { ...block, id }
  }
}

/** Returns true if the first record of the conversation names a parent that is not in the log. */
function continuesAnotherLog(records: readonly SessionRecord[]): boolean {
  const parent = records.find(({ uuid }) => uuid !== undefined)?.parentUuid
  return typeof parent === 'string' && !records.some(({ uuid }) => uuid === parent)
}

/**
 * Returns the tokens of the first request that are not its messages: as prefix within the limits, the rest as earlier
 * conversation.
 */
function findRecordedPrefix(
  branch: readonly KnownRecord[],
  isContinued: boolean,
): Pick<RecordedSession, 'prefixTokens' | 'earlierTokens'> {
  const most = isContinued ? PREFIX_LIMITS.unmeasured : PREFIX_LIMITS.most
  let shown = 0
  for (const record of branch) {
    if (record.type !== 'user' && record.type !== 'assistant') continue
    const tokens = record.type === 'assistant' ? countRequestTokens(record) : 0
    if (tokens > 0) {
      const prefixTokens = Math.round(Math.min(most, Math.max(PREFIX_LIMITS.least, tokens - shown)))
      return { prefixTokens, earlierTokens: Math.max(0, Math.round(tokens - shown - prefixTokens)) }
    }
    shown += toBlocks(record.message.content).reduce((sum, block) => sum + countBlockTokens(block), 0)
  }
  return { prefixTokens: PREFIX_LIMITS.least, earlierTokens: 0 }
}
