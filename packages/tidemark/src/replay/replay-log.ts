/**
 * Replays a session log under policies of Tidemark, at the prices of its models at their dates: what each policy would
 * have cost, and how many edits would still have seen the lines that they replace. Subagents are replayed as sessions
 * of their own. The recorded responses stay the same, whatever a policy would have shown the model.
 */
import {
  findPriceFactor,
  findTierRates,
  type ModelPrices,
  scaleRates,
  type TokenRates,
} from '@tidemark/core/cost/prices'
import type { TokenUsage } from '@tidemark/core/log/reply-report'
import type { PolicyOverrides } from '@tidemark/core/policy/create-policy'
import { type PresetName, presets } from '@tidemark/core/policy/presets'
import {
  type Catalogue,
  createPriceFinder,
  lookUpModel,
  modelCatalogue,
} from '@tidemark/wire/catalogue/catalogue'
import { createModelEstimators } from '../inspect/context-contents.ts'
import { inspectLog } from '../inspect/inspect-log.ts'
import { findMainModel, listLogCalls } from '../inspect/logged-calls.ts'
import type { BreakCause, SessionReport } from '../inspect/report.ts'
import { createDayFormatter, priceLogCall } from '../inspect/spending.ts'
import type { LogContents } from '../logs/read-log.ts'
import type { PriceOverrides } from '../models/catalogue-model.ts'
import { createEnginePolicy } from './engine-policy.ts'
import type { PolicyReplay, ReplayPoint } from './policy-replay.ts'
import { type RecordedSession, type RecordedStep, readRecordedSession } from './recorded-session.ts'
import { type RecordedBill, type ReplayTotals, replaySession } from './replay-session.ts'

export interface NamedPolicy {
  readonly name: string
  readonly policy: PolicyOverrides
  /** True to replay without a limit of the context window. Default: true only for the preset `nothing`. */
  readonly isUnbounded?: boolean
}

export interface LogReplay {
  readonly ok: true
  /** The model with the most calls in the main conversation. */
  readonly model: string
  readonly recorded: RecordedCost
  /** Responses that were replayed, those of subagents included. */
  readonly calls: number
  readonly policies: readonly PolicyReplay[]
}

interface RecordedCost {
  /** Dollars by the logged usage, as `inspect` shows them; null if a price is unknown. */
  readonly usd: number | null
  /**
   * Dollars of a replay that changes nothing, with the cache lifetime of the recording. Null if the log has rewrites,
   * because the recorded requests then differ, and with `withPoints`. Compare with `usd` minus `breaksUsd`.
   */
  readonly replayedUsd: number | null
  /** Dollars of the recorded cache breaks that a replay does not repeat: all except those caused by a pause or another model. */
  readonly breaksUsd: number
}

interface ReplayLogOptions {
  readonly policies: readonly NamedPolicy[]
  readonly catalogue?: Catalogue
  /** Context window in tokens. Default: the one that `inspect` shows. */
  readonly window?: number
  /** True to return the requests of each policy and to skip the replay that changes nothing. Default: false. */
  readonly withPoints?: boolean
  readonly onProgress?: (policy: string) => void
  readonly signal?: AbortSignal
}

/** A window that no session fills, in tokens, for replays without a window limit. */
const UNBOUNDED = 100_000_000
/** Causes of cache breaks that also occur in a replay. */
const REPLAYED_BREAKS: ReadonlySet<BreakCause> = new Set(['expired', 'model-changed'])

/**
 * Replays a log under each policy, one after the other. Not ok, with a reason, if a price or a context window is
 * unknown, or if no model has responded.
 */
export async function replayLog(
  log: LogContents,
  options: ReplayLogOptions,
): Promise<LogReplay | { readonly ok: false; readonly why: string }> {
  const { catalogue = modelCatalogue, policies: named } = options
  const sessions = [log, ...log.agents]
    .map(({ records }) => readRecordedSession(records.map(({ record }) => record)))
    .filter(({ steps }) => steps.some(isResponse))
  if (sessions.length === 0) return { ok: false, why: 'it has no response of a model' }
  const bill = createRecordedBill(log, catalogue)
  const responses = sessions.flatMap(({ steps }) => steps.filter(isResponse))
  const unpriced = responses.find((step) => bill.findBaseRates(step) === null)
  if (unpriced !== undefined)
    return { ok: false, why: `the prices of its model ${unpriced.response?.model} are not known` }
  const report = inspectLog(log, { catalogue, toDay: createDayFormatter(), seenCalls: new Set() })
  const main = options.window ?? report.context.window
  if (main === null) return { ok: false, why: 'the context window of its model is not known' }
  const [own] = sessions
  const window = (session: RecordedSession): number =>
    options.window ?? (session === own ? main : (findModelWindow(session, catalogue) ?? main))
  const replay = (policy: NamedPolicy): Promise<PolicyReplay> =>
    replayPolicy(sessions, policy, { ...options, window, bill })
  const policies: PolicyReplay[] = []
  for (const policy of named) policies.push(await replay(policy))
  return {
    ok: true,
    model: findMainModel(listLogCalls(log, new Set())),
    calls: responses.length,
    recorded: {
      usd: report.costUsd,
      replayedUsd:
        isRewritten(report) || options.withPoints === true
          ? null
          : (await replay(createUnchangedPolicy(report))).usd,
      breaksUsd: report.cacheBreaks
        .filter(({ cause }) => !REPLAYED_BREAKS.has(cause))
        .reduce((sum, { costUsd }) => sum + (costUsd ?? 0), 0),
    },
    policies,
  }
}

function isRewritten({ compactions, clearings }: SessionReport): boolean {
  return compactions.length + clearings.length > 0
}

/** Creates a policy that changes nothing. Its cache lifetime is the one that most recorded writes had. */
function createUnchangedPolicy({ money: { byClass } }: SessionReport): NamedPolicy {
  const ttl = byClass.write1h.tokens > byClass.write5m.tokens ? 'long' : 'short'
  return { name: 'unchanged', policy: { ...presets.nothing, cache: { ttl } }, isUnbounded: true }
}

function isResponse({ kind }: RecordedStep): boolean {
  return kind === 'response'
}

function findModelWindow({ steps }: RecordedSession, catalogue: Catalogue): number | null {
  const found = lookUpModel(catalogue, steps.find(isResponse)?.response?.model ?? '')
  return found.found ? found.model.window : null
}

type CompleteRates = Required<Omit<PriceOverrides, 'write5m' | 'write1h'>>

interface LogBill extends RecordedBill {
  /** Returns the rates for a small request to the model that gave the response; null if the catalogue does not have them. */
  findBaseRates(response: RecordedStep): CompleteRates | null
}

/** Bills each response at the prices of its model at that time, with the output tokens that `inspect` counts. */
function createRecordedBill(log: LogContents, catalogue: Catalogue): LogBill {
  const findPrices = createPriceFinder(catalogue)
  const pricing = {
    catalogue,
    format: log.format,
    estimate: createModelEstimators(catalogue).countResponse,
  }
  const calls = new Map(listLogCalls(log, new Set()).map((call) => [call.key, call]))
  const findCall = ({ response }: RecordedStep) => calls.get(response?.key ?? '')
  const findStepPrices = ({ response, at }: RecordedStep): ModelPrices | null =>
    findPrices(response?.model ?? '', new Date(at).toISOString())
  return {
    findBaseRates(step) {
      const prices = findStepPrices(step)
      return prices === null ? null : toCompleteRates(findTierRates(prices, 0))
    },
    findTierRates(step) {
      const prices = findStepPrices(step)
      if (prices === null) return () => NO_RATES
      const factor = findFactor(findCall(step)?.usage ?? null, prices)
      return (promptTokens) =>
        toCompleteRates(scaleRates(findTierRates(prices, promptTokens), factor)) ?? NO_RATES
    },
    findOutput(step) {
      const call = findCall(step)
      if (call === undefined || call.usage === null) return undefined
      return priceLogCall(call, pricing, findPrices).tokens.output
    },
  }
}

function findFactor(usage: TokenUsage | null, prices: ModelPrices): number {
  return usage === null ? 1 : (findPriceFactor(usage, prices).factor ?? 1)
}

const NO_RATES: TokenRates = { input: 0, output: 0, cacheRead: 0, writeShort: 0, writeLong: 0 }

interface ReplayPolicyOptions extends Omit<ReplayLogOptions, 'window'> {
  readonly window: (session: RecordedSession) => number
  readonly bill: LogBill
}

async function replayPolicy(
  sessions: readonly RecordedSession[],
  { name, policy, isUnbounded = policy === presets.nothing }: NamedPolicy,
  { window, bill, signal, onProgress, withPoints = false }: ReplayPolicyOptions,
): Promise<PolicyReplay> {
  const totals: ReplayTotals[] = []
  const points: ReplayPoint[] = []
  for (const session of sessions) {
    const first = session.steps.find(isResponse)
    const rates = first === undefined ? null : bill.findBaseRates(first)
    const tokens = isUnbounded ? UNBOUNDED : window(session)
    const engine = createEnginePolicy({
      name,
      policy,
      ...(rates === null ? {} : { rates }),
      window: tokens,
    })
    const { length } = session.steps
    const onStep = (step: number): void => onProgress?.(`${name} ${Math.round((100 * step) / length)}%`)
    totals.push(
      await replaySession(session, engine, {
        bill,
        window: tokens,
        onStep,
        ...(withPoints && session === sessions[0]
          ? { onAnswer: (size, cost) => points.push({ tokens: Math.round(size), usd: cost / 1_000_000 }) }
          : {}),
        ...(signal === undefined ? {} : { signal }),
      }),
    )
  }
  const sum = (field: keyof ReplayTotals): number => totals.reduce((all, each) => all + each[field], 0)
  return {
    name,
    usd: sum('cost') / 1_000_000,
    anchors: { used: sum('edits'), seen: sum('editsInView') },
    compactions: sum('compactions'),
    clearings: sum('clearings'),
    refused: sum('refused'),
    ...(withPoints ? { points } : {}),
  }
}

/** Returns the rates if all are known. For a provider without a price for cache writes, these cost the input price. */
function toCompleteRates({
  input,
  cacheRead,
  writeShort,
  writeLong,
  output,
}: TokenRates): CompleteRates | null {
  if (input === null || output === null) return null
  const short = writeShort ?? input
  return { input, output, cacheRead: cacheRead ?? input, writeShort: short, writeLong: writeLong ?? short }
}

export function isPresetName(name: string): name is PresetName {
  return Object.hasOwn(presets, name)
}
