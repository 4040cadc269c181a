/**
 * Which results can be cleared: old enough, seen by the model, not pinned, and larger than the placeholder that replaces
 * them. Also what a selection frees, what the host must forget with it, and the text of the placeholder.
 */

import type { FirstRewrittenPart } from '../cache/cache-temperature.ts'
import type { ToolResultBlock } from '../log/block.ts'
import {
  CLEARED_RESULT_TEXT,
  type ClearedInput,
  type ClearMode,
  type MicrocompactMetadata,
} from '../log/record.ts'
import {
  countShownTokens,
  findResult,
  type MemoryFile,
  type SupersedeReason,
  type ToolResult,
  type ToolResultIndex,
} from './tool-result-index.ts'

/** A clearing that could be made. */
export interface ClearProposal {
  readonly way: ClearMode
  readonly metadata: MicrocompactMetadata
  /** Tokens that later requests no longer carry. */
  readonly freedTokens: number
  /** Tokens behind the first change that are written to the cache again. */
  readonly rewrittenTokens: number
  /** Dollars above the price of reading them; 0 if the cache is cold, null if prices are not known. */
  readonly cost: number | null
  /** Calls after which it has paid for itself; null: never. */
  readonly breakEvenCalls: number | null
  /** For the user. */
  readonly why: string
  readonly firstChange: FirstRewrittenPart
  readonly released: ReleasedContent
}

/** What is no longer in the context: the host's "already read" caches must drop it. */
export interface ReleasedContent {
  readonly toolUseIds: readonly string[]
  /** Files whose complete text is no longer shown, and removed memory files. */
  readonly filePaths: readonly string[]
}

export interface Candidate {
  readonly result: ToolResult
  /** Estimated tokens that clearing the result frees; 0 if the result itself stays. */
  readonly frees: number
  /** The same for the large inputs of its call. */
  readonly freesInputs: number
  readonly superseded: SupersedeReason | null
  /** Ids of results that only say "unchanged" of this one: they are cleared with it, or it stays. */
  readonly dependents: readonly string[]
}

export interface CandidateInput {
  readonly register: ToolResultIndex
  /** uuids of pinned records. */
  readonly pins: readonly string[]
  /** Number of newest clearable results that stay. */
  readonly keep: number
  /** The placeholder of a cleared result, for its size; null if none is left, so that the whole result is freed. */
  readonly placeholder: ToolResultBlock | null
}

/** Oldest first. */
export function findCandidates({ register, pins, keep, placeholder }: CandidateInput): readonly Candidate[] {
  const pinned = new Set(pins)
  const placeholderTokens = placeholder === null ? 0 : register.rules.estimator.block(placeholder)
  const old = listClearable(register).slice(0, -keep || undefined)
  const free = new Map(old.filter((result) => canClear(register, result, pinned)).map((r) => [r.call.id, r]))
  return [...free.values()].flatMap((result): readonly Candidate[] => {
    const { id, inputs } = result.call
    const pointing = register.referringCalls.get(id) ?? []
    const dependents = pointing.filter((dependent) => findResult(register, dependent)?.isCleared === false)
    if (dependents.some((dependent) => !free.has(dependent))) return []
    const isWorth = !result.isCleared && result.tokens >= MIN_PLACEHOLDERS * placeholderTokens
    const frees = isWorth ? result.tokens - placeholderTokens : 0
    const freesInputs = inputs.reduce(
      (sum, { tokens }) => sum + Math.max(0, tokens - INPUT_PLACEHOLDER_TOKENS),
      0,
    )
    const superseded = register.supersession.superseded.get(id)?.why ?? null
    return frees + freesInputs === 0 ? [] : [{ result, frees, freesInputs, superseded, dependents }]
  })
}

/** A result shorter than this many placeholders is more useful as it is. */
const MIN_PLACEHOLDERS = 2

/** Estimated tokens of the placeholder of a large input. */
const INPUT_PLACEHOLDER_TOKENS = 10

/** Clearable results that are shown and that the provider has not removed, oldest first. */
function listClearable({ results, removedByProvider }: ToolResultIndex): readonly ToolResult[] {
  return [...results].filter(
    (result) =>
      result.call.isClearable &&
      countShownTokens(result) > 0 &&
      removedByProvider.get(result.call.id) === undefined,
  )
}

/** Results after the newest response were not seen by the model yet, nor all results of a response still being answered. */
function canClear(register: ToolResultIndex, result: ToolResult, pinned: ReadonlySet<string>): boolean {
  const isSeen =
    result.place < register.lastResponsePlace && !register.openResponses.includes(result.call.response)
  return isSeen && !pinned.has(result.uuid) && !pinned.has(result.call.uuid)
}

/** Estimated tokens of clearable content that clearing it removes; the placeholder does not count. */
export function countCandidateTokens({ result, frees }: Candidate): number {
  const inputs = result.call.inputs.reduce((sum, { tokens }) => sum + tokens, 0)
  return (frees > 0 ? result.tokens : 0) + inputs
}

/** Superseded results first if wanted, each group oldest first. */
export function orderCandidates(
  candidates: readonly Candidate[],
  isSupersededFirst: boolean,
): readonly Candidate[] {
  if (!isSupersededFirst) return candidates
  const superseded = candidates.filter((candidate) => candidate.superseded !== null)
  return [...superseded, ...candidates.filter((candidate) => candidate.superseded === null)]
}

/**
 * The id of the first result that tier 1 could clear now: the cache marker before it stays valid. A result too short to be
 * cleared is passed over; one the provider has removed is not, since the messages still contain it. If the input of its
 * call could be cleared too, the change would begin at the call, so the result before that call is returned.
 * `placeholder`: what would replace it.
 */
export function findFirstClearable(
  register: ToolResultIndex,
  pins: readonly string[],
  placeholder: ToolResultBlock = createPlaceholder(SAMPLE_CALL_ID, NO_RETRIEVAL),
): string | null {
  const { results, firstClearableResult, rules } = register
  const least = MIN_PLACEHOLDERS * rules.estimator.block(placeholder)
  for (let index = firstClearableResult ?? results.length; index < results.length; index += 1) {
    const result = results.at(index)
    if (result === undefined || !isLong(result, least)) continue
    if (!pins.includes(result.uuid) && !pins.includes(result.call.uuid)) return findEdge(results, index)
  }
  return null
}

/** Long enough to be cleared, or with large inputs. */
function isLong({ call, tokens, isCleared }: ToolResult, least: number): boolean {
  return call.isClearable && (call.inputs.length > 0 || (!isCleared && tokens >= least))
}

function findEdge(results: ToolResultIndex['results'], index: number): string | null {
  const call = results.at(index)?.call
  if (call === undefined || call.inputs.length === 0) return call?.id ?? null
  let before = index - 1
  while (before >= 0 && results.at(before)?.call.response === call.response) before -= 1
  return before < 0 ? call.id : (results.at(before)?.call.id ?? call.id)
}

// What a clearing removes, in the order of the context.

export interface ClearSelection {
  readonly results: readonly ToolResult[]
  readonly inputs: readonly (ClearedInput & { readonly result: ToolResult })[]
}

/** A result that refers to a cleared one is cleared with it, however small it is. */
export function toSelection(register: ToolResultIndex, candidates: readonly Candidate[]): ClearSelection {
  const own = candidates.filter(({ frees }) => frees > 0)
  const ids = new Set([...own.map(({ result }) => result.call.id), ...own.flatMap((one) => one.dependents)])
  const results = [...ids].flatMap((id) => findResult(register, id) ?? [])
  const inputs = candidates.flatMap(({ result }) =>
    result.call.inputs.map(({ field }) => ({ toolUseId: result.call.id, field, result })),
  )
  return {
    results: results.toSorted(comparePlaces),
    inputs: inputs.toSorted((one, other) => comparePlaces(one.result, other.result)),
  }
}

function comparePlaces(one: ToolResult, other: ToolResult): number {
  return one.place - other.place || one.call.place - other.call.place
}

/** Estimated tokens. */
export function countFreedTokens(candidates: readonly Candidate[]): number {
  return candidates.reduce((sum, { frees, freesInputs }) => sum + frees + freesInputs, 0)
}

/** The first change, and the index of its response. Calls precede the results of their response. */
export function findFirstChange({ results, inputs }: ClearSelection): {
  readonly change: FirstRewrittenPart
  readonly response: number
} {
  const changes = [
    ...inputs.map(({ result }) => ({ call: result.call, part: 'call' as const })),
    ...results.map(({ call }) => ({ call, part: 'result' as const })),
  ]
  const { call, part } = changes.reduce((first, each) =>
    each.call.response < first.call.response ? each : first,
  )
  return { change: { toolUseId: call.id, part }, response: call.response }
}

/** A file counts as known while a complete read or a whole write of it is shown. */
export function findReleased(
  register: ToolResultIndex,
  chosen: ClearSelection,
  memories: readonly MemoryFile[],
): ReleasedContent {
  const gone = new Set(chosen.results.map(({ call }) => call.id))
  const shorn = new Set(chosen.inputs.map(({ toolUseId }) => toolUseId))
  const touched = [...chosen.results, ...chosen.inputs.map(({ result }) => result)]
  const paths = new Set(touched.flatMap(({ call }) => call.path ?? []))
  const shown = new Set<string>()
  for (const result of paths.size === 0 ? [] : register.results) {
    const { path, id } = result.call
    if (path !== null && paths.has(path) && isFileShown(register, result) && !gone.has(id) && !shorn.has(id))
      shown.add(path)
  }
  const files = [...paths].filter((path) => !shown.has(path))
  return { toolUseIds: [...gone], filePaths: [...new Set([...files, ...memories.map(({ path }) => path)])] }
}

/** The result, with its call, shows the whole text of a file. */
export function isFileShown(
  { removedByProvider }: ToolResultIndex,
  { call, isError, isComplete, isCleared }: ToolResult,
): boolean {
  const isFile = call.kind === 'write' || (call.kind === 'read' && call.range === null)
  return isFile && !isError && isComplete && !isCleared && removedByProvider.get(call.id) === undefined
}

/** Memory files in the context that are out of date: attached again later, or overwritten since. Oldest first, no pinned ones. */
export function findStaleMemories(
  { memories, results }: ToolResultIndex,
  pins: readonly string[],
): readonly MemoryFile[] {
  if (memories.length === 0) return []
  const newest = new Map([...memories].map(({ path, place }) => [path, place]))
  for (const { call, place, isError } of results) {
    if (call.kind !== 'write' || call.path === null || isError) continue
    newest.set(call.path, Math.max(place, newest.get(call.path) ?? place))
  }
  return [...memories].filter(
    ({ path, place, uuid }) => place < (newest.get(path) ?? place) && !pins.includes(uuid),
  )
}

// The placeholder: that a result was cleared, and how the model can read its text.

/** The tool's usual name; a host with another tool of this name chooses another. */
export const HISTORY_TOOL_NAME = 'history'

/** How the model can read what is no longer in the context. Name only what it can really read. */
export interface RetrievalPaths {
  /** The name of the history tool as the model is offered it; null if it is not. */
  readonly historyTool: string | null
  /** A file with the whole conversation that the model can read; null if there is none. */
  readonly transcript: string | null
}

export const NO_RETRIEVAL: RetrievalPaths = { historyTool: null, transcript: null }

/** The second line of a placeholder. `id`: of a record, a tool call or a blob. Null if the model cannot read the text. */
export function retrievalHint(id: string, paths: RetrievalPaths): string | null {
  if (paths.historyTool !== null)
    return `To read it, call ${paths.historyTool} with ${JSON.stringify({ id })}.`
  return paths.transcript === null ? null : `To read it, look for ${id} in ${paths.transcript}.`
}

/** A result as it is shown once cleared. */
export function createPlaceholder(toolUseId: string, paths: RetrievalPaths): ToolResultBlock {
  const note = retrievalHint(toolUseId, paths)
  const content = note === null ? CLEARED_RESULT_TEXT : `${CLEARED_RESULT_TEXT}\n${note}`
  return { type: 'tool_result', tool_use_id: toolUseId, content }
}

/** As long as the ids of providers: for estimating the size of a placeholder. */
export const SAMPLE_CALL_ID = 'toolu_000000000000000000000000'
