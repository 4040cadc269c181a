/**
 * Turns selected tool results into a clearing proposal: what else must be cleared with them, the cost, whether the
 * clearing pays for itself, and the metadata for the log.
 */
import type { CacheTemperature, FirstToolChange } from '../cache/cache-model.ts'
import { formatCount, type TokenRates } from '../cost/prices.ts'
import { isThinkingBlock, toBlocks } from '../log/block.ts'
import type { ClearMode, MicrocompactMetadata } from '../log/record.ts'
import type { Policy } from '../policy/policy.ts'
import type { ProviderProfile, ThinkingMode } from '../policy/provider-profile.ts'
import type { ScaledLimits } from '../policy/scale-policy.ts'
import {
  type ClearCandidate,
  type ClearProposal,
  type ClearSelection,
  countFreedTokens,
  findClearedContent,
  findFirstClearedPart,
  findOutdatedMemoryFiles,
  formatRetrievalHint,
  type RetrievalMethods,
  toClearSelection,
} from './clear-candidates.ts'
import type { AttachedMemoryFile, ToolResultIndex } from './tool-result-index.ts'

/** Input of a clearing proposal: the tool result index, the policy and profile, and the state of the cache. */
export interface ClearProposalInput {
  readonly register: ToolResultIndex
  readonly policy: Policy
  /** Thresholds and budgets of `policy`, computed for the model's context window. */
  readonly scaled: ScaledLimits
  readonly profile: ProviderProfile
  /** uuids of pinned records, which are never cleared. */
  readonly pins: readonly string[]
  readonly cache: CacheTemperature
  readonly prices: CachePrices
  readonly retrieval: RetrievalMethods
  /** Tokens of the next API request. `expected`: best estimate, used in reports. `high`: upper bound, used in decisions. */
  readonly context: { readonly expected: number; readonly high: number }
  /** Factor that corrects token estimates in this session: actual tokens divided by estimated tokens. */
  readonly scale: number
  /** Milliseconds since the newest response; null if there is no response yet. */
  readonly idleMs: number | null
  /** The thinking mode of the API request; null for the model's default. */
  readonly thinkingMode: ThinkingMode | null
  /** Tokens by which each model call enlarges the context; null or absent if that is not known. */
  readonly growthPerCall?: number | null
  /**
   * Set if the user asked for a clearing. Tool results are cleared until at most this many tokens of clearable results
   * are left, even below the usual thresholds.
   */
  readonly target?: number
}

/**
 * Returns how many of the files used last keep their newest read and change, and within how many estimated tokens: as
 * many as a compaction has for the files that it attaches again. No files if the user asked for the clearing.
 */
export function computeKeptFilesLimit({ policy, scaled, scale, target }: ClearProposalInput): {
  readonly count: number
  readonly tokens: number
} {
  return {
    count: target === undefined ? policy.clear.keptFiles : 0,
    tokens: scaled.budgets.files.total / scale,
  }
}

/** A proposal, or null if nothing is proposed. `why`: the reason for either, as text for the user. */
export interface ProposalOutcome<P> {
  readonly proposal: P | null
  readonly why: string
}

/** The tool results that one clearing mode selected, and the reason. */
interface ClearModeSelection {
  readonly way: ClearMode
  readonly candidates: readonly ClearCandidate[]
  /** Minimum number of tokens that the clearing must free. Below that it is not proposed. */
  readonly minimum: number
  /** True if the clearing is made even if it does not pay for itself. */
  readonly isNeeded: boolean
  /** Reason for the clearing, as the beginning of a sentence. */
  readonly because: string
}

/**
 * Checks whether to clear even if it does not pay for itself: the context is above the auto-compact threshold, or the
 * user asked for the clearing.
 */
export function mustClearAtAnyCost({ scaled, context, target }: ClearProposalInput): boolean {
  return target !== undefined || (scaled.known && context.high >= scaled.lines.autoCompact)
}

/**
 * Turns a selection into a proposal. Declines, with the reason, if too little would be freed, if thinking that must stay
 * would become invalid, or if the clearing neither is needed nor pays for itself.
 */
export function buildClearProposal(
  question: ClearProposalInput,
  choice: ClearModeSelection,
): ProposalOutcome<ClearProposal> {
  const { register, scale, policy, pins } = question
  const { way, candidates, because } = choice
  const chosen = toClearSelection(register, candidates)
  const freed = Math.round(scale * countFreedTokens(candidates))
  if (chosen.results.length + chosen.inputs.length === 0 || freed < choice.minimum) {
    return decline(
      `${because}, but clearing would free ${formatCount(freed)} tokens of the ${formatCount(choice.minimum)} that a rewrite must be worth`,
    )
  }
  const first = findFirstClearedPart(chosen)
  const bound = findInvalidatedThinking(question, first.response)
  if (!bound.ok) return decline(`${because}, but ${bound.why}`)
  const removes = policy.clear.boundThinking === 'remove'
  const thinking = removes ? bound.responses : []
  const memories = findOutdatedMemoryFiles(register, pins).filter(
    ({ place }) => place > first.place || isEarlierChangeFree(question),
  )
  const along = memories.reduce((sum, memory) => sum + memory.tokens, removes ? bound.tokens : 0)
  const saved = freed + Math.round(scale * along)
  const price = priceChange(question, first.change, saved)
  const refusal = explainLoss(question, choice, { ...price, freed: saved })
  if (refusal !== null) return decline(refusal)
  const why = describeProposal({ because, chosen, thinking, saved, price })
  const proposal: ClearProposal = {
    way,
    metadata: toMetadata(question, { way, chosen, memories, thinking, saved }),
    freedTokens: saved,
    rewrittenTokens: price.rewritten,
    cost: price.cost,
    breakEvenCalls: price.breakEvenCalls,
    why,
    firstChange: first.change,
    released: findClearedContent(register, chosen, memories),
  }
  return { proposal, why }
}

/**
 * Checks whether the clearing may also change what stands in front of the first cleared result. If not, stale memory files in
 * front of it stay: without them, more of a warm cache would be written again and bound thinking would become invalid.
 */
function isEarlierChangeFree({ cache, profile }: ClearProposalInput): boolean {
  return !cache.isWarm && profile.thinking.binding !== 'prefix'
}

function decline(why: string): ProposalOutcome<ClearProposal> {
  return { proposal: null, why }
}

interface ClearedContent {
  readonly chosen: ClearSelection
  /** Ids of the responses whose thinking is also removed. */
  readonly thinking: readonly string[]
  readonly saved: number
}

function toMetadata(
  { retrieval, target, context }: ClearProposalInput,
  cleared: ClearedContent & { readonly way: ClearMode; readonly memories: readonly AttachedMemoryFile[] },
): MicrocompactMetadata {
  const { way, chosen, memories, thinking, saved } = cleared
  const ids = chosen.results.map(({ call }) => call.id)
  const notes = ids.map((id) => [id, formatRetrievalHint(id, retrieval)] as const)
  const inputs = chosen.inputs.map(({ toolUseId, field }) => ({ toolUseId, field }))
  return {
    trigger: target === undefined ? 'auto' : 'manual',
    way,
    preTokens: context.expected,
    tokensSaved: saved,
    compactedToolIds: ids,
    clearedAttachmentUUIDs: memories.map(({ uuid }) => uuid),
    ...(notes.length === 0 ? {} : { notes: Object.fromEntries(notes) }),
    ...(inputs.length === 0 ? {} : { clearedInputs: inputs }),
    ...(thinking.length === 0 ? {} : { clearedThinking: thinking }),
  }
}

function describeProposal(
  cleared: ClearedContent & { readonly because: string; readonly price: ChangePrice },
): string {
  const { because, chosen, thinking, saved, price } = cleared
  const parts = [
    chosen.results.length > 0 ? formatCountedNoun(chosen.results.length, 'old result') : '',
    chosen.inputs.length > 0 ? formatCountedNoun(chosen.inputs.length, 'large input') : '',
    thinking.length > 0 ? `the thinking of ${formatCountedNoun(thinking.length, 'response')}` : '',
  ].filter((part) => part !== '')
  const { rewritten, breakEvenCalls } = price
  const paid =
    rewritten === 0
      ? 'nothing is written again'
      : `${formatCount(rewritten)} tokens are written again${breakEvenCalls === null ? '' : `, paid back in ${formatCountedNoun(Math.ceil(breakEvenCalls), 'call')}`}`
  return `${because}: clearing ${parts.join(', ')} frees ${formatCount(saved)} tokens; ${paid}`
}

/** Returns the count followed by the noun, with an s unless the count is 1: "3 calls". */
export function formatCountedNoun(count: number, noun: string): string {
  return `${formatCount(count)} ${noun}${count === 1 ? '' : 's'}`
}

// A clearing frees E tokens, which no later call reads. Once, the L tokens after them are written to the cache instead of
// read from it. With read price r and write price w, it has paid for itself after (w/r − 1) · L / E calls.

interface CachePrices {
  /** Dollars per million tokens; null if prices are unknown. */
  readonly rates: TokenRates | null
  /** Which of the two cache-write prices applies; it depends on the cache lifetime in use. */
  readonly write: 'writeShort' | 'writeLong'
}

/** What a rewrite of cached tokens costs, and after how many calls it has paid for itself. */
export interface RewritePrice {
  /** Model calls after which the savings exceed the cost of the rewrite; null if they never do. */
  readonly breakEvenCalls: number | null
  /** Dollars that writing the tokens to the cache costs above reading them from it; null if prices are unknown. */
  readonly cost: number | null
  /** True if prices are unknown and the usual ratio of write price to read price was used. */
  readonly isAssumed: boolean
}

interface ChangePrice extends RewritePrice {
  /** Tokens that are written to the cache again. */
  readonly rewritten: number
}

/**
 * Computes the cost of a clearing. It is zero if the cache has expired, because the whole request must then be written
 * in any case.
 */
function priceChange(
  { cache, prices }: ClearProposalInput,
  change: FirstToolChange,
  freed: number,
): ChangePrice {
  if (!cache.isWarm) return { rewritten: 0, breakEvenCalls: 0, cost: 0, isAssumed: false }
  const rewritten = Math.max(0, Math.round(cache.countTokensToRewrite(change)) - freed)
  return { rewritten, ...priceRewrite(freed, rewritten, prices) }
}

/** Explains why a clearing would not pay for itself. Returns null if it would, or if it is made regardless of cost. */
function explainLoss(
  question: ClearProposalInput,
  choice: ClearModeSelection,
  price: ChangePrice & { readonly freed: number },
): string | null {
  const { policy, cache } = question
  const { breakEvenCalls, rewritten, isAssumed } = price
  if (!policy.clear.priceGate || choice.isNeeded || !cache.isWarm) return null
  const expected = estimateBenefitingCalls(question, price.freed)
  if (canPayOff(price, expected)) return null
  const calls =
    breakEvenCalls === null ? 'never' : `only after ${formatCount(Math.ceil(breakEvenCalls))} calls`
  const assumed = isAssumed ? ' (prices are not known; the usual ratio of write to read is assumed)' : ''
  return `${choice.because}, but the ${formatCount(rewritten)} tokens behind would be written to the cache again, which pays ${calls} and some ${formatCount(Math.floor(expected))} are expected${assumed}`
}

/** Typical ratio of the 5-minute cache-write price to the cache-read price, used if prices are unknown. */
const USUAL_WRITE_TO_READ_RATIO = 12.5

/**
 * Computes the cost of a rewrite with a warm cache: `freed` tokens are removed, and `rewritten` tokens must be written
 * to the cache again.
 */
export function priceRewrite(freed: number, rewritten: number, prices: CachePrices): RewritePrice {
  const read = prices.rates?.cacheRead ?? null
  const write = prices.rates?.[prices.write] ?? null
  const isAssumed = read === null || write === null
  const inReads = isAssumed ? USUAL_WRITE_TO_READ_RATIO : write / read
  const cost = isAssumed ? null : (Math.max(0, write - read) * rewritten) / 1_000_000
  return { breakEvenCalls: countBreakEvenCalls(freed, rewritten, inReads), cost, isAssumed }
}

function countBreakEvenCalls(freed: number, rewritten: number, inReads: number): number | null {
  if (rewritten <= 0 || inReads <= 1) return 0
  if (freed <= 0 || !Number.isFinite(inReads)) return null
  return ((inReads - 1) * rewritten) / freed
}

/**
 * Estimates how many calls will benefit from a clearing that frees `freed` tokens: those until the cache expires or, if
 * that comes first, until the context has grown to the auto-compact threshold. The compaction there replaces what the
 * clearing had written to the cache.
 */
export function estimateBenefitingCalls(
  { cache, scaled, context, growthPerCall = null }: ClearProposalInput,
  freed: number,
): number {
  const compacts = scaled.known && scaled.lines.limit === scaled.lines.autoCompact
  if (!compacts || growthPerCall === null || growthPerCall <= 0) return cache.expectedCalls
  const room = scaled.lines.autoCompact - (context.high - freed)
  return Math.min(cache.expectedCalls, Math.max(0, room) / growthPerCall)
}

/** Returns true if more calls are expected than are needed to save what the rewrite costs. */
export function canPayOff({ breakEvenCalls }: RewritePrice, expectedCalls: number): boolean {
  return breakEvenCalls !== null && expectedCalls > breakEvenCalls
}

// Some providers accept a thinking block only if everything before it is unchanged, so a clearing invalidates all
// later thinking. Depending on policy, the invalid thinking is removed too, or left for the provider to drop.

type BoundInput = Pick<ClearProposalInput, 'register' | 'profile' | 'thinkingMode'>

type BoundResult =
  | { readonly ok: true; readonly responses: readonly string[]; readonly tokens: number }
  | { readonly ok: false; readonly why: string }

const NOT_BOUND: BoundResult = { ok: true, responses: [], tokens: 0 }

const MUST_KEEP_THINKING =
  'the current turn must begin with its thinking, which a clearing before it would make invalid; wait for the end of the turn'

/**
 * Finds the responses whose thinking a clearing would invalidate, oldest first, and the estimated tokens of that thinking. Not
 * ok, with the reason, if some of it must stay. `changed`: index of the response with the first changed tool call or result.
 */
export function findInvalidatedThinking(question: BoundInput, changed: number): BoundResult {
  const { register, profile } = question
  if (profile.thinking.binding !== 'prefix') return NOT_BOUND
  const first = register.responses.at(changed + 1)
  if (first === undefined) return NOT_BOUND
  const tokens = new Map<string, number>()
  const behind = new Set(register.responses.toArray(changed + 1).map(({ id }) => id))
  for (const entry of register.entries.toArray(first.place)) {
    const { record, cleared } = entry
    if (record.type !== 'assistant' || cleared?.thinking === true) continue
    const { id, content } = record.message
    if (!behind.has(id) || !toBlocks(content).some(isThinkingBlock)) continue
    tokens.set(id, (tokens.get(id) ?? 0) + register.rules.estimator.thinking(entry))
  }
  if (mustKeep(question, tokens)) return { ok: false, why: MUST_KEEP_THINKING }
  return { ok: true, responses: [...tokens.keys()], tokens: [...tokens.values()].reduce((a, b) => a + b, 0) }
}

/**
 * Checks whether the clearing would invalidate thinking that must stay. In some thinking modes, an unfinished turn must
 * begin with its thinking.
 */
function mustKeep(
  { register, profile, thinkingMode }: BoundInput,
  lost: ReadonlyMap<string, number>,
): boolean {
  const { firstInModes, whenAbsent } = profile.thinking
  if (!firstInModes.includes(thinkingMode ?? whenAbsent)) return false
  const { responses, lastPromptPlace } = register
  let opening = responses.length
  while (opening > 0 && (responses.at(opening - 1)?.place ?? -1) >= lastPromptPlace) opening -= 1
  const id = responses.at(opening)?.id
  return id !== undefined && lost.has(id)
}
