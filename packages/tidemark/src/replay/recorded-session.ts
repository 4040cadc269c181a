/**
 * A recorded session as the steps of its conversation, without the rewrites of the program that recorded it: what was
 * put in, and what the model answered, with the recorded times. The size of system prompt and tools is taken from the
 * usage of the first response.
 */
import {
  type Block,
  buildSessionLog,
  type CallLookup,
  isKnownRecord,
  isRewriteBoundary,
  isSyntheticError,
  isToolResult,
  isToolUse,
  type KnownRecord,
  type RecordedUserInput,
  readRecordAt,
  readUserInputs,
  type SessionRecord,
  SYNTHETIC_MODEL,
  type ToolUseBlock,
  toBlocks,
  type UserInput,
} from '@tidemark/core'
import { countBlockTokens } from './billed-cache.ts'

export interface RecordedSession {
  readonly steps: readonly RecordedStep[]
  /** Tokens of system prompt and tools. */
  readonly prefixTokens: number
  readonly toolNames: readonly string[]
  /** Tokens by which the recorded requests grew, for each token that blocks are estimated at; 1 if the log does not tell. */
  readonly scale: number
}

export interface RecordedStep {
  readonly kind: 'input' | 'response'
  /** Milliseconds since 1970; never before the step before it. */
  readonly at: number
  readonly blocks: readonly Block[]
  /** True for input that the user typed, by the fields of the record: no tool result, and no text of the program. */
  readonly isPrompt: boolean
  /** What the user answered or refused in the results of this input. */
  readonly userInputs: readonly RecordedUserInput[]
}

/**
 * Largest size that is taken for a prefix, and the smallest. A log that continues another one begins with a large
 * request, of which most is conversation.
 */
const PREFIX_LIMITS = { least: 1_000, most: 80_000 }

export function readRecordedSession(records: readonly SessionRecord[]): RecordedSession {
  const branch = listBranch(records)
  const steps = listSteps(branch.filter((record) => !isRewrite(record)))
  const calls = steps.flatMap(({ blocks }) => blocks.filter(isToolUse))
  return {
    steps,
    prefixTokens: measurePrefix(branch),
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
        // A request that is smaller than the one before follows a rewrite.
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
function countRequestTokens({ message }: Extract<KnownRecord, { readonly type: 'assistant' }>): number {
  if (message.model === SYNTHETIC_MODEL) return 0
  const {
    input_tokens: input = 0,
    cache_read_input_tokens: read = 0,
    cache_creation_input_tokens: written = 0,
  } = (message.usage ?? {}) as Readonly<Record<string, number>>
  return input + read + written
}

function listBranch(records: readonly SessionRecord[]): readonly KnownRecord[] {
  const session = buildSessionLog(records)
  return [...session.branch]
    .map((index) => readRecordAt(session, index))
    .filter(isKnownRecord)
    .filter((record) => record.type === 'user' || record.type === 'assistant')
}

/** Returns true for what a rewrite of the recording program left, and for errors that it shows as responses. */
function isRewrite(record: KnownRecord): boolean {
  return isRewriteBoundary(record) || record.isCompactSummary === true || isSyntheticError(record)
}

function listSteps(records: readonly KnownRecord[]): readonly RecordedStep[] {
  const steps: RecordedStep[] = []
  const ids = new UniqueCallIds()
  let responseId: string | null = null
  let at = 0
  for (const record of records) {
    if (record.type !== 'user' && record.type !== 'assistant') continue
    at = Math.max(at, Date.parse(record.timestamp) || 0)
    const isResponse = record.type === 'assistant'
    const inputs = isResponse ? [] : readUserInputs(record, ids)
    const userInputs = inputs.flatMap((input) => toRecordedInput(input, ids))
    const blocks = ids.rename(toBlocks(record.message.content).filter(isSendable))
    const last = steps.at(-1)
    if (isResponse && last !== undefined && record.message.id === responseId) {
      steps[steps.length - 1] = { ...last, blocks: [...last.blocks, ...blocks] }
      continue
    }
    if (blocks.length === 0) continue
    responseId = isResponse ? record.message.id : null
    const isPrompt = inputs.length > 0 && !blocks.some(isToolResult)
    steps.push({ kind: isResponse ? 'response' : 'input', at, blocks, isPrompt, userInputs })
  }
  return steps
}

/** Returns what a host records of an answer or a refusal of the user; nothing for other inputs. */
function toRecordedInput(
  { kind, text, author, toolUseId, question }: UserInput,
  ids: UniqueCallIds,
): readonly RecordedUserInput[] {
  if (author.kind !== 'user' || toolUseId === null || (kind !== 'answer' && kind !== 'refusal')) return []
  const asked = question === null ? {} : { question: { text: question.text, options: question.options } }
  return [{ kind, text, toolUseId: ids.findId(toolUseId), ...asked }]
}

/** Returns true for a block that a provider would take back. Thinking of other vendors has no signature. */
function isSendable({ type, signature }: Block): boolean {
  return type !== 'thinking' || (typeof signature === 'string' && signature !== '')
}

/**
 * Gives each tool call an id of its own, since some providers use one twice, and drops results without a call and second
 * results of a call.
 */
class UniqueCallIds implements CallLookup {
  readonly #known = new Set<string>()
  /** The newest call of each recorded id. */
  readonly #calls = new Map<string, ToolUseBlock>()
  /** The new id of each recorded one that waits for its result. */
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

/** Returns the size of the first request less its messages. */
function measurePrefix(branch: readonly KnownRecord[]): number {
  let shown = 0
  for (const record of branch) {
    if (record.type !== 'user' && record.type !== 'assistant') continue
    const tokens = record.type === 'assistant' ? countRequestTokens(record) : 0
    if (tokens > 0)
      return Math.round(Math.min(PREFIX_LIMITS.most, Math.max(PREFIX_LIMITS.least, tokens - shown)))
    shown += toBlocks(record.message.content).reduce((sum, block) => sum + countBlockTokens(block), 0)
  }
  return PREFIX_LIMITS.least
}
