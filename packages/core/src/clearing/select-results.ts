/** What could be cleared now: old enough, seen by the model, not pinned, and worth more than what would stand in its place. */

import type { FirstChange } from '../cache/cache-temperature.ts'
import type { ToolResultBlock } from '../log/block.ts'
import type { ClearedInput, ClearWay, MicrocompactMetadata } from '../log/record.ts'
import { NOWHERE, SAMPLE_ID, stubOf } from './placeholder.ts'
import {
  type Memory,
  type Register,
  resultOf,
  type SupersedeReason,
  sizeOfItem,
  type ToolResult,
} from './tool-result-index.ts'

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

// What a clearing takes away, in the order of the view: the first of it, the tokens of it, and what the host must forget.

export interface Chosen {
  /** In the order of the view. */
  readonly results: readonly ToolResult[]
  readonly inputs: readonly (ClearedInput & { readonly result: ToolResult })[]
}

/** A result that refers to a cleared one goes with it, however small it is. */
export function chosenOf(register: Register, candidates: readonly Candidate[]): Chosen {
  const own = candidates.filter(({ frees }) => frees > 0)
  const ids = new Set([...own.map(({ result }) => result.call.id), ...own.flatMap((one) => one.dependents)])
  const results = [...ids].flatMap((id) => resultOf(register, id) ?? [])
  const inputs = candidates.flatMap(({ result }) =>
    result.call.inputs.map(({ field }) => ({ toolUseId: result.call.id, field, result })),
  )
  return {
    results: results.toSorted(inView),
    inputs: inputs.toSorted((one, other) => inView(one.result, other.result)),
  }
}

function inView(one: ToolResult, other: ToolResult): number {
  return one.place - other.place || one.call.place - other.call.place
}

export function freedBy(candidates: readonly Candidate[]): number {
  return candidates.reduce((sum, { frees, freesInputs }) => sum + frees + freesInputs, 0)
}

export interface First {
  readonly change: FirstChange
  readonly response: number
}

/** Calls come before the results of their response, so of two changes in one response the call's is first. */
export function firstChange({ results, inputs }: Chosen): First {
  const changes: readonly First[] = [
    ...inputs.map(({ result }) => changeOf(result, 'call')),
    ...results.map((result) => changeOf(result, 'result')),
  ]
  return changes.reduce((first, each) => (each.response < first.response ? each : first))
}

function changeOf({ call }: ToolResult, part: FirstChange['part']): First {
  return { change: { toolUseId: call.id, part }, response: call.response }
}

/** A file stays known while a complete read or a whole write of it is shown. */
export function releasedBy(register: Register, chosen: Chosen, memories: readonly Memory[]): Released {
  const gone = new Set(chosen.results.map(({ call }) => call.id))
  const shorn = new Set(chosen.inputs.map(({ toolUseId }) => toolUseId))
  const touched = [...chosen.results, ...chosen.inputs.map(({ result }) => result)]
  const paths = new Set(touched.flatMap(({ call }) => call.path ?? []))
  const shown = new Set<string>()
  for (const result of paths.size === 0 ? [] : register.results) {
    const { path, id } = result.call
    if (path !== null && paths.has(path) && showsFile(register, result) && !gone.has(id) && !shorn.has(id))
      shown.add(path)
  }
  const files = [...paths].filter((path) => !shown.has(path))
  return { toolUseIds: [...gone], filePaths: [...new Set([...files, ...memories.map(({ path }) => path)])] }
}

/** The result, with its call, tells the whole of a file. */
export function showsFile(
  { remote }: Register,
  { call, isError, isComplete, isCleared }: ToolResult,
): boolean {
  const isFile = call.kind === 'write' || (call.kind === 'read' && call.range === null)
  return isFile && !isError && isComplete && !isCleared && remote.get(call.id) === undefined
}

// Memory files in the view that no longer say what is so: attached again later, or overwritten since.

/** Oldest first. Pinned ones stay. */
export function staleMemories(register: Register, pins: readonly string[]): readonly Memory[] {
  if (register.memories.length === 0) return []
  const newest = new Map([...register.memories].map(({ path, place }) => [path, place]))
  const written = writtenPlaces(register)
  return [...register.memories].filter(({ path, place, uuid }) => {
    const isStale = place < (newest.get(path) ?? place) || place < (written.get(path) ?? place)
    return isStale && !pins.includes(uuid)
  })
}

/** By path: where a call that wrote the whole file was answered last. */
function writtenPlaces({ results }: Register): ReadonlyMap<string, number> {
  const places = new Map<string, number>()
  for (const { call, place, isError } of results) {
    if (call.kind === 'write' && call.path !== null && !isError) places.set(call.path, place)
  }
  return places
}

// A clearing as it is proposed: what it would take away, what that costs, and what the host must forget.

export interface ClearProposal {
  readonly way: ClearWay
  readonly metadata: MicrocompactMetadata
  /** Tokens that later requests no longer carry. */
  readonly freedTokens: number
  /** Tokens behind it that are written to the cache again. */
  readonly rewrittenTokens: number
  /** Dollars above the price of reading them; 0 where the cache is cold, null where prices are not known. */
  readonly cost: number | null
  /** Calls after which it has paid for itself; null: never. */
  readonly breakEvenCalls: number | null
  /** In words that a person can act on. */
  readonly why: string
  readonly firstChange: FirstChange
  readonly released: Released
}

/** What left the view: whatever the host holds to be "already in the context" must be let go. */
export interface Released {
  readonly toolUseIds: readonly string[]
  /** Files of which no complete text is shown any more, and memory files taken out. */
  readonly filePaths: readonly string[]
}
