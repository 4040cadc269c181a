/**
 * Replays a session log under policies of Tidemark, at the prices of the session's model at its date: what each would have
 * cost, and how many edits would still have seen the lines that they replace. Subagents are replayed as sessions of their
 * own. Open loop: the recorded model does not react to what it is shown.
 */
import { findRates, type PolicyOverrides, type PresetName, presets, type TokenRates } from '@tidemark/core'
import { type Catalogue, lookUpModel, modelCatalogue, pricesAtDate } from '@tidemark/wire'
import { findMainModel, listLogCalls } from '../inspect/logged-calls.ts'
import type { LogContents } from '../logs/read-log.ts'
import type { PriceOverrides } from '../models/anthropic.ts'
import { createEnginePolicy } from './engine-policy.ts'
import { type RecordedSession, readRecordedSession } from './recorded-session.ts'
import { type ReplayTotals, replaySession } from './replay-session.ts'

export interface NamedPolicy {
  readonly name: string
  readonly policy: PolicyOverrides
}

export interface PolicyReplay {
  readonly name: string
  /** Dollars of all calls under the policy, summaries included. */
  readonly usd: number
  /** Edits whose old text had been shown before (`used`), and those of them that saw it in their request (`seen`). */
  readonly anchors: { readonly used: number; readonly seen: number }
  readonly compactions: number
  readonly clearings: number
}

export type LogReplay =
  | {
      readonly ok: true
      readonly model: string
      readonly calls: number
      readonly policies: readonly PolicyReplay[]
    }
  | { readonly ok: false; readonly why: string }

export interface ReplayLogOptions {
  readonly policies: readonly NamedPolicy[]
  readonly catalogue?: Catalogue
  /** Context window in tokens. Default: that of the session's model. */
  readonly window?: number
  readonly onProgress?: (policy: string) => void
  readonly signal?: AbortSignal
}

/** A window that no session fills, for the policy that does nothing. */
const UNBOUNDED = 100_000_000

export async function replayLog(log: LogContents, options: ReplayLogOptions): Promise<LogReplay> {
  const { catalogue = modelCatalogue } = options
  const model = findMainModel(listLogCalls(log, new Set()))
  const found = lookUpModel(catalogue, model)
  if (!found.found) return { ok: false, why: `its model ${model} is not in the catalogue` }
  const window = options.window ?? found.model.window
  if (window === null) return { ok: false, why: `the context window of ${model} is not known` }
  const at = log.records.find(({ record }) => record.timestamp !== undefined)?.record.timestamp ?? ''
  const rates = toCompleteRates(findRates(pricesAtDate(found.model, at), 0))
  if (rates === null) return { ok: false, why: `the prices of ${model} are not known` }
  const conversations = [log, ...log.agents].map(({ records }) =>
    readRecordedSession(records.map(({ record }) => record)),
  )
  const sessions = conversations.filter(({ steps }) => steps.some(({ kind }) => kind === 'response'))
  if (sessions.length === 0) return { ok: false, why: 'it has no response of a model' }
  const policies: PolicyReplay[] = []
  for (const named of options.policies) {
    options.onProgress?.(named.name)
    policies.push(await replayPolicy(sessions, named, { window, rates, ...pickSignal(options) }))
  }
  const calls = sessions.reduce((sum, { steps }) => sum + steps.filter(isResponse).length, 0)
  return { ok: true, model, calls, policies }
}

function pickSignal({ signal }: ReplayLogOptions): { readonly signal?: AbortSignal } {
  return signal === undefined ? {} : { signal }
}

function isResponse({ kind }: RecordedSession['steps'][number]): boolean {
  return kind === 'response'
}

async function replayPolicy(
  sessions: readonly RecordedSession[],
  { name, policy }: NamedPolicy,
  { window, rates, signal }: { window: number; rates: Required<PriceOverrides>; signal?: AbortSignal },
): Promise<PolicyReplay> {
  const engine = createEnginePolicy({
    name,
    policy,
    rates,
    window: policy === presets.nothing ? UNBOUNDED : window,
  })
  const totals: ReplayTotals[] = []
  for (const session of sessions) {
    signal?.throwIfAborted()
    totals.push(await replaySession(session, engine, { rates, isScaled: true }))
  }
  const sum = (field: keyof ReplayTotals): number => totals.reduce((all, each) => all + each[field], 0)
  return {
    name,
    usd: sum('cost') / 1_000_000,
    anchors: { used: sum('edits'), seen: sum('editsInView') },
    compactions: sum('compactions'),
    clearings: sum('clearings'),
  }
}

/** Returns the rates if all of them are known; a provider without a price for writes charges the input price. */
function toCompleteRates({
  input,
  cacheRead,
  write5m,
  write1h,
  output,
}: TokenRates): Required<PriceOverrides> | null {
  if (input === null || output === null) return null
  const short = write5m ?? input
  return { input, output, cacheRead: cacheRead ?? input, write5m: short, write1h: write1h ?? short }
}

export function isPresetName(name: string): name is PresetName {
  return Object.hasOwn(presets, name)
}
