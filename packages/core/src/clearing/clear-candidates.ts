/**
 * Selects the tool results that can be cleared: old enough, seen by the model, not pinned, and larger than their
 * placeholder. Also computes how many tokens a clearing frees and which files the host must no longer treat as read,
 * and creates the placeholder.
 */
import type { FirstToolChange } from '../cache/cache-model.ts'
import type { ToolResultBlock } from '../log/block.ts'
import {
  CLEARED_RESULT_TEXT,
  type ClearedInput,
  type ClearMode,
  type MicrocompactMetadata,
} from '../log/record.ts'
import {
  type AttachedMemoryFile,
  countShownTokens,
  findToolResult,
  type IndexedToolResult,
  type SupersedeReason,
  type ToolResultIndex,
} from './tool-result-index.ts'

/** A proposed clearing, with its savings and cost. Nothing has been changed yet. */
export interface ClearProposal {
  readonly way: ClearMode
  readonly metadata: MicrocompactMetadata
  /** Tokens that the clearing removes from all later API requests. */
  readonly freedTokens: number
  /** Tokens after the first cleared content, which must be written to the cache again. */
  readonly rewrittenTokens: number
  /**
   * Dollars that writing these tokens again costs above reading them from the cache; 0 if the cache has expired, null
   * if prices are unknown.
   */
  readonly cost: number | null
  /** Model calls after which the clearing has paid for itself; null if it never does. */
  readonly breakEvenCalls: number | null
  /** Reason for the clearing, as a sentence for the user. */
  readonly why: string
  /** The first tool call or result that changes: what is cached in front of it stays cached. */
  readonly firstChange: FirstToolChange
  readonly released: ReleasedContent
}

/** Content that a clearing removes from the context. The host must no longer assume that the model can see it. */
interface ReleasedContent {
  readonly toolUseIds: readonly string[]
  /** Paths of files whose complete text the context no longer contains, including removed memory files. */
  readonly filePaths: readonly string[]
}

/** A tool call whose result, large inputs, or both can be cleared. */
export interface ClearCandidate {
  readonly result: IndexedToolResult
  /** Estimated tokens that clearing the tool result frees; 0 if only the inputs of the tool call are cleared. */
  readonly frees: number
  /** Estimated tokens that clearing the large inputs of the tool call frees. */
  readonly freesInputs: number
  readonly superseded: SupersedeReason | null
  /**
   * Ids of later tool calls whose result only says that the file is "unchanged" since this result. This result can be
   * cleared only together with them.
   */
  readonly dependents: readonly string[]
}

interface ClearCandidateInput {
  readonly register: ToolResultIndex
  /** uuids of pinned records, which are never cleared. */
  readonly pins: readonly string[]
  /** Number of newest clearable tool results that are not cleared. */
  readonly keep: number
  /** Files used last whose newest read and newest change are not cleared, up to so many tokens; default none. */
  readonly keptFiles?: { readonly count: number; readonly tokens: number }
  /**
   * The placeholder that replaces a cleared result, used to estimate its size; null if a cleared result leaves no placeholder.
   */
  readonly placeholder: ToolResultBlock | null
}

/**
 * Returns the tool results that can be cleared, oldest first. Left out are the `keep` newest, those of `keptFiles`, pinned
 * ones, those that the model has not answered yet, and those too small to be worth a placeholder.
 */
export function findClearCandidates({
  register,
  pins,
  keep,
  keptFiles = { count: 0, tokens: 0 },
  placeholder,
}: ClearCandidateInput): readonly ClearCandidate[] {
  const pinned = new Set(pins)
  const placeholderTokens = placeholder === null ? 0 : register.rules.estimator.block(placeholder)
  const needed = listNewestFileCalls(register, keptFiles)
  const old = listClearable(register)
    .slice(0, -keep || undefined)
    .filter(({ call }) => !needed.has(call.id))
  const free = new Map(old.filter((result) => canClear(register, result, pinned)).map((r) => [r.call.id, r]))
  return [...free.values()].flatMap((result): readonly ClearCandidate[] => {
    const { id, inputs } = result.call
    const pointing = register.referringCalls.get(id) ?? []
    const dependents = pointing.filter(
      (dependent) => findToolResult(register, dependent)?.isCleared === false,
    )
    if (dependents.some((dependent) => !free.has(dependent))) return []
    const isWorth = !result.isCleared && result.tokens >= MIN_PLACEHOLDERS * placeholderTokens
    const frees = isWorth ? result.tokens - placeholderTokens : 0
    const freesInputs = inputs.reduce(
      (sum, { tokens }) => sum + Math.max(0, tokens - INPUT_PLACEHOLDER_TOKENS),
      0,
    )
    const superseded = register.supersession.superseded.get(id) ?? null
    return frees + freesInputs === 0 ? [] : [{ result, frees, freesInputs, superseded, dependents }]
  })
}

/**
 * Returns the ids of the newest read and the newest change of each of the `count` files used last, as far as they fit
 * in `tokens`.
 */
function listNewestFileCalls(
  { results }: ToolResultIndex,
  { count, tokens }: { readonly count: number; readonly tokens: number },
): ReadonlySet<string> {
  const paths = new Set<string>()
  const newest = new Map<string, string>()
  let left = tokens
  for (let index = results.length - 1; index >= 0 && left > 0 && count > 0; index -= 1) {
    const result = results.at(index)
    const { id = '', path = null, kind } = result?.call ?? {}
    if (result === undefined || path === null || (kind !== 'read' && kind !== 'edit' && kind !== 'write'))
      continue
    if (!paths.has(path) && paths.size === count) continue
    paths.add(path)
    const key = `${kind === 'read' ? 'read' : 'change'} ${path}`
    if (newest.has(key)) continue
    left -= countShownTokens(result)
    if (left >= 0) newest.set(key, id)
  }
  return new Set(newest.values())
}

/**
 * A tool result is a candidate only if it has at least this many times the tokens of its placeholder. Smaller ones are
 * cleared only along with the result that they refer to.
 */
const MIN_PLACEHOLDERS = 2

/** Estimated tokens of the placeholder that replaces a large tool call input. */
const INPUT_PLACEHOLDER_TOKENS = 10

/** Lists the clearable tool results, oldest first, without those that were already cleared or that the provider has removed. */
function listClearable({ results, removedByProvider }: ToolResultIndex): readonly IndexedToolResult[] {
  return [...results].filter(
    (result) =>
      result.call.isClearable &&
      countShownTokens(result) > 0 &&
      removedByProvider.get(result.call.id) === undefined,
  )
}

/**
 * Checks whether a tool result may be cleared. It must not be pinned, and the model must have answered it and all other
 * results of the same response.
 */
function canClear(
  register: ToolResultIndex,
  result: IndexedToolResult,
  pinned: ReadonlySet<string>,
): boolean {
  const isSeen =
    result.place < register.lastResponsePlace && !register.openResponses.includes(result.call.response)
  return isSeen && !pinned.has(result.uuid) && !pinned.has(result.call.uuid)
}

/** Counts the estimated tokens of content that clearing a candidate removes, ignoring its placeholder. */
export function countCandidateTokens({ result, frees }: ClearCandidate): number {
  const inputs = result.call.inputs.reduce((sum, { tokens }) => sum + tokens, 0)
  return (frees > 0 ? result.tokens : 0) + inputs
}

/** Moves superseded tool results to the front if `isSupersededFirst`. Otherwise keeps the order, oldest first. */
export function orderCandidates(
  candidates: readonly ClearCandidate[],
  isSupersededFirst: boolean,
): readonly ClearCandidate[] {
  if (!isSupersededFirst) return candidates
  const superseded = candidates.filter((candidate) => candidate.superseded !== null)
  return [...superseded, ...candidates.filter((candidate) => candidate.superseded === null)]
}

/**
 * Returns the id of the first tool call whose result could be cleared now; null if there is none. A cache marker before that
 * result survives a clearing. If the inputs of the call could be cleared too, the change would begin at the call itself, so an
 * earlier result is returned. Results that only the provider removed count, because the messages still contain them.
 */
export function findFirstClearableCallId(
  register: ToolResultIndex,
  pins: readonly string[],
  placeholder: ToolResultBlock = createResultPlaceholder(SAMPLE_CALL_ID, NO_RETRIEVAL),
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

/** Checks whether the tool may be cleared, and the result has at least `least` tokens or its call has large inputs. */
function isLong({ call, tokens, isCleared }: IndexedToolResult, least: number): boolean {
  return call.isClearable && (call.inputs.length > 0 || (!isCleared && tokens >= least))
}

/**
 * Returns the id of the call in front of whose result a cache marker survives a clearing of `results[index]`: its own if it has
 * no large inputs, else that of the last call of an earlier response (its own if there is none).
 */
function findEdge(results: ToolResultIndex['results'], index: number): string | null {
  const call = results.at(index)?.call
  if (call === undefined || call.inputs.length === 0) return call?.id ?? null
  let before = index - 1
  while (before >= 0 && results.at(before)?.call.response === call.response) before -= 1
  return before < 0 ? call.id : (results.at(before)?.call.id ?? call.id)
}

// The following functions compute what a clearing removes, listed in conversation order.

/** The tool results to clear, and the fields of tool inputs to clear. */
export interface ClearSelection {
  readonly results: readonly IndexedToolResult[]
  readonly inputs: readonly (ClearedInput & { readonly result: IndexedToolResult })[]
}

/**
 * Returns everything that clearing the candidates removes. A result that only says "unchanged" since a cleared result
 * is cleared too, even if it is small.
 */
export function toClearSelection(
  register: ToolResultIndex,
  candidates: readonly ClearCandidate[],
): ClearSelection {
  const own = candidates.filter(({ frees }) => frees > 0)
  const ids = new Set([...own.map(({ result }) => result.call.id), ...own.flatMap((one) => one.dependents)])
  const results = [...ids].flatMap((id) => findToolResult(register, id) ?? [])
  const inputs = candidates.flatMap(({ result }) =>
    result.call.inputs.map(({ field }) => ({ toolUseId: result.call.id, field, result })),
  )
  return {
    results: results.toSorted(comparePlaces),
    inputs: inputs.toSorted((one, other) => comparePlaces(one.result, other.result)),
  }
}

function comparePlaces(one: IndexedToolResult, other: IndexedToolResult): number {
  return one.place - other.place || one.call.place - other.call.place
}

/** Sums the estimated tokens that clearing the candidates frees. */
export function countFreedTokens(candidates: readonly ClearCandidate[]): number {
  return candidates.reduce((sum, { frees, freesInputs }) => sum + frees + freesInputs, 0)
}

/**
 * Finds the first tool call or result that the selection changes, its place in the context, and the index of its
 * response. Tool calls come before the results of the same response. Throws for an empty selection.
 */
export function findFirstClearedPart({ results, inputs }: ClearSelection): {
  readonly change: FirstToolChange
  readonly place: number
  readonly response: number
} {
  const changes = [
    ...inputs.map(({ result: { call } }) => ({ call, place: call.place, part: 'call' as const })),
    ...results.map(({ call, place }) => ({ call, place, part: 'result' as const })),
  ]
  const { call, place, part } = changes.reduce((first, each) =>
    each.call.response < first.call.response ? each : first,
  )
  return { change: { toolUseId: call.id, part }, place, response: call.response }
}

/**
 * Returns the tool results and files that a clearing removes from the context. A file is not listed while another tool
 * call still shows its complete text.
 */
export function findClearedContent(
  register: ToolResultIndex,
  chosen: ClearSelection,
  memories: readonly AttachedMemoryFile[],
): ReleasedContent {
  const gone = new Set(chosen.results.map(({ call }) => call.id))
  const shorn = new Set(chosen.inputs.map(({ toolUseId }) => toolUseId))
  const touched = [...chosen.results, ...chosen.inputs.map(({ result }) => result)]
  const paths = new Set(touched.flatMap(({ call }) => call.path ?? []))
  const shown = new Set<string>()
  for (const result of paths.size === 0 ? [] : register.results) {
    const { path, id } = result.call
    if (
      path !== null &&
      paths.has(path) &&
      showsWholeFile(register, result) &&
      !gone.has(id) &&
      !shorn.has(id)
    )
      shown.add(path)
  }
  const files = [...paths].filter((path) => !shown.has(path))
  return { toolUseIds: [...gone], filePaths: [...new Set([...files, ...memories.map(({ path }) => path)])] }
}

/** Checks whether a tool call and its result together show the complete text of a file. */
export function showsWholeFile(
  { removedByProvider }: ToolResultIndex,
  { call, isError, isComplete, isCleared }: IndexedToolResult,
): boolean {
  const isFile = call.kind === 'write' || (call.kind === 'read' && call.range === null)
  return isFile && !isError && isComplete && !isCleared && removedByProvider.get(call.id) === undefined
}

/**
 * Finds outdated memory files in the context, oldest first. A memory file is outdated if it was attached again or
 * overwritten later. Pinned ones are left out.
 */
export function findOutdatedMemoryFiles(
  { memories, results }: ToolResultIndex,
  pins: readonly string[],
): readonly AttachedMemoryFile[] {
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

// The placeholder tells the model that a tool result was cleared and how to read the original text.

/**
 * Default name of the tool with which the model reads earlier content. A host with its own tool of this name sets another name.
 */
export const DEFAULT_HISTORY_TOOL_NAME = 'history'

/** Ways in which the model can read content that was removed from its context. List only ways that really work. */
export interface RetrievalMethods {
  /** Name under which the history tool is offered to the model; null if it is not offered. */
  readonly historyTool: string | null
  /** Path of a file with the whole conversation that the model can read; null if there is none. */
  readonly transcript: string | null
}

/** The model has no way to read removed content. */
export const NO_RETRIEVAL: RetrievalMethods = { historyTool: null, transcript: null }

/**
 * Returns the second line of a placeholder: how the model can read the text, or that it cannot. `id` names a record, a
 * tool call or a blob.
 */
export function formatRetrievalHint(id: string, paths: RetrievalMethods): string {
  if (paths.historyTool !== null)
    return `To read it, call ${paths.historyTool} with ${JSON.stringify({ id })}.`
  return paths.transcript === null ? NOT_READABLE : `To read it, look for ${id} in ${paths.transcript}.`
}

const NOT_READABLE = 'It cannot be read back here. If you need it, obtain it again.'

/** Creates the placeholder that replaces a cleared tool result. */
export function createResultPlaceholder(toolUseId: string, paths: RetrievalMethods): ToolResultBlock {
  const content = `${CLEARED_RESULT_TEXT}\n${formatRetrievalHint(toolUseId, paths)}`
  return { type: 'tool_result', tool_use_id: toolUseId, content }
}

/** A tool call id of typical length, for estimating the size of a placeholder. */
export const SAMPLE_CALL_ID = 'toolu_000000000000000000000000'
