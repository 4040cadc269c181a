/** What could be cleared now: old enough, seen by the model, not pinned, and worth more than what would stand in its place. */
import type { ToolResultBlock } from '../conversation/block.ts'
import { type Register, resultOf, sizeOfItem } from './register-state.ts'
import type { ToolResult } from './registered.ts'
import { NOWHERE, SAMPLE_ID, stubOf } from './stub.ts'
import type { SupersedeReason } from './supersede.ts'

export interface Candidate {
  readonly result: ToolResult
  /** Tokens, as estimated, that clearing the result frees; 0 where it is left. */
  readonly frees: number
  /** The same for the large inputs of its call. */
  readonly freesInputs: number
  readonly superseded: SupersedeReason | null
  /** Results that say "as you have it already" of this one: they go with it or it stays. */
  readonly dependents: readonly string[]
}

export interface CandidateQuestion {
  readonly register: Register
  /** uuids of pinned records. */
  readonly pins: readonly string[]
  /** Newest clearable results that stay. */
  readonly keep: number
  /** What stands where a result was, for weighing; null where nothing does, so that all of it is freed. */
  readonly stub: ToolResultBlock | null
}

/** Oldest first. */
export function candidatesOf(question: CandidateQuestion): readonly Candidate[] {
  const { register, keep } = question
  const pinned = new Set(question.pins)
  const stubTokens = question.stub === null ? 0 : register.rules.estimator.block(question.stub)
  const old = activeResults(register).slice(0, -keep || undefined)
  const free = new Map(old.filter((result) => isFree(register, result, pinned)).map((r) => [r.call.id, r]))
  return [...free.values()].flatMap((result) => candidateFrom(register, { result, stubTokens, free }))
}

/** Clearable results that are shown and that nobody has taken out, oldest first. */
export function activeResults(register: Register): readonly ToolResult[] {
  return [...register.results].filter((result) => isActive(register, result))
}

function isActive({ remote }: Register, result: ToolResult): boolean {
  return result.call.isClearable && sizeOfItem(result) > 0 && remote.get(result.call.id) === undefined
}

/** What came behind the newest response has been seen by nobody yet. */
function isFree(register: Register, result: ToolResult, pinned: ReadonlySet<string>): boolean {
  const isSeen = result.place < register.answeredAt && !isOpen(register, result)
  return isSeen && !pinned.has(result.uuid) && !pinned.has(result.call.uuid)
}

/** Its response is still being answered: records of it may come behind some of its results. */
function isOpen({ asking }: Register, { call }: ToolResult): boolean {
  return asking.includes(call.response)
}

interface Weighing {
  readonly result: ToolResult
  readonly stubTokens: number
  readonly free: ReadonlyMap<string, ToolResult>
}

function candidateFrom(register: Register, { result, stubTokens, free }: Weighing): readonly Candidate[] {
  const { id, inputs } = result.call
  const dependents = dependentsOf(register, id)
  if (dependents.some((dependent) => !free.has(dependent))) return []
  const isWorth = !result.isCleared && result.tokens >= LEAST_IN_STUBS * stubTokens
  const frees = isWorth ? result.tokens - stubTokens : 0
  const freesInputs = inputs.reduce((sum, { tokens }) => sum + Math.max(0, tokens - INPUT_STUB_TOKENS), 0)
  const superseded = register.supersession.superseded.get(id)?.why ?? null
  return frees + freesInputs === 0 ? [] : [{ result, frees, freesInputs, superseded, dependents }]
}

/** A result that is hardly longer than what would stand in its place says more as it is. */
const LEAST_IN_STUBS = 2

/** What stands where a large input was is a few words. */
const INPUT_STUB_TOKENS = 10

function dependentsOf(register: Register, id: string): readonly string[] {
  const pointing = register.pointedAtBy.get(id) ?? []
  return pointing.filter((dependent) => resultOf(register, dependent)?.isCleared === false)
}

/** Tokens, as estimated, that are clearable no more once it is cleared: what stands in its place does not count. */
export function sizeOfCandidate({ result, frees }: Candidate): number {
  const inputs = result.call.inputs.reduce((sum, { tokens }) => sum + tokens, 0)
  return (frees > 0 ? result.tokens : 0) + inputs
}

/** Those that a later call made worthless first, each group oldest first. */
export function inOrder(candidates: readonly Candidate[], isSupersededFirst: boolean): readonly Candidate[] {
  if (!isSupersededFirst) return candidates
  const worthless = candidates.filter(({ superseded }) => superseded !== null)
  return [...worthless, ...candidates.filter(({ superseded }) => superseded === null)]
}

/**
 * The first result that tier 1 could clear as things are: where the edge of the cache stands. One that is too short
 * to be cleared does not hold it back; one that the provider has taken out does, since the messages still have it.
 * Where the input of its call could go too, the change would begin before it, so the edge stands at the result
 * before that call. `stub`: what would stand in its place.
 */
export function firstClearable(
  register: Register,
  pins: readonly string[],
  stub: ToolResultBlock = stubOf(SAMPLE_ID, NOWHERE),
): string | null {
  const { results, firstActive, rules } = register
  const least = LEAST_IN_STUBS * rules.estimator.block(stub)
  for (let index = firstActive ?? results.length; index < results.length; index += 1) {
    const result = results.at(index)
    if (result === undefined || !isLong(result, least)) continue
    if (!pins.includes(result.uuid) && !pins.includes(result.call.uuid)) return edgeAt(results, index)
  }
  return null
}

/** Long enough to be cleared, or with inputs that are. */
function isLong({ call, tokens, isCleared }: ToolResult, least: number): boolean {
  return call.isClearable && (call.inputs.length > 0 || (!isCleared && tokens >= least))
}

function edgeAt(results: Register['results'], index: number): string | null {
  const call = results.at(index)?.call
  if (call === undefined || call.inputs.length === 0) return call?.id ?? null
  let before = index - 1
  while (results.at(before)?.call.response === call.response && before >= 0) before -= 1
  return before < 0 ? call.id : (results.at(before)?.call.id ?? call.id)
}
