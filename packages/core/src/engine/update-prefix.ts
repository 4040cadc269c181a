/** Before a request: opens the epoch where none stands, and tells of all that changed about the prefix since. */

import { mayPreferNative } from '../clearing/propose-clearing.ts'
import type { View } from '../context/context-view.ts'
import { TidemarkError } from '../errors.ts'
import { firstNonJson, isObject, isTooDeep, type JsonObject } from '../log/json.ts'
import type { KnownRecord } from '../log/record.ts'
import type { Moment } from '../planner/plan-input.ts'
import type { BetaRule, Profile } from '../policy/provider-profile.ts'
import { mechanismStates, NO_SWITCHES } from '../policy/switches.ts'
import { unmarkedFields } from '../request/build-request.ts'
import { chooseTtl, recallGaps } from '../request/cache-ttl.ts'
import { betasIn, hasBoundThinking, openEpoch, type Present } from '../request/prefix.ts'
import {
  type ChangeCause,
  type ChangeRules,
  changesOf,
  epochRecord,
  mustHold,
  type PrefixChange,
} from '../request/prefix-updates.ts'
import {
  type PlacedSection,
  presentSections,
  type SectionText,
  sectionsDue,
} from '../request/system-prompt.ts'
import { advanceShown, type Carrier, type Offer } from '../sources/context-source.ts'
import { carryChanges } from '../sources/updates.ts'
import type { Halt, TurnEvent } from './events.ts'
import type { Offered, Room, TurnHost } from './host.ts'
import type { Signal } from './ports.ts'
import { announceEpoch, type SessionState } from './session-state.ts'
import { append, type TurnRun } from './session-writer.ts'

/** A new epoch, what it could not take in, and once more. */
const MOST_ROUNDS = 8

export async function* tellChanges(run: TurnRun): AsyncGenerator<TurnEvent, Halt | null> {
  let present = await presentNow(run)
  if ('ok' in present) return present
  const opened = yield* ensureEpoch(run, present)
  if (opened !== null) return opened
  for (let round = 0; round < MOST_ROUNDS; round += 1) {
    const change = changeNow(run, present)
    if (change.kind === 'none') return null
    // Sections may say which model they speak to, and behind a new one the old words are worth nothing.
    if (round === 0 && isOtherModel(change)) {
      present = await presentNow(forgetful(run))
      if ('ok' in present) return present
      continue
    }
    yield { type: 'prefix-changed', change }
    const halt = yield* append(run, change.records)
    if (halt !== null) return halt
    if (change.kind === 'epoch' && change.breaksCache) announce(run, change.causes)
  }
  throw unsettled()
}

function isOtherModel(change: PrefixChange): boolean {
  return change.kind === 'epoch' && change.causes.some(({ kind }) => kind === 'model')
}

function forgetful(run: TurnRun): TurnRun {
  run.state = { ...run.state, texts: new Map() }
  return run
}

function announce(run: TurnRun, causes: readonly ChangeCause[]): void {
  run.state = { ...run.state, watch: announceEpoch(run.state.watch, run.host.source, causes) }
}

async function* ensureEpoch(run: TurnRun, present: Present): AsyncGenerator<TurnEvent, Halt | null> {
  if (run.state.told.standing !== null) return null
  const epoch = openEpoch(withTtl(run, present), run.host.profile)
  yield { type: 'epoch-opened', epoch }
  return yield* append(run, [epochRecord(epoch)])
}

function changeNow(run: TurnRun, present: Present): PrefixChange {
  const { told } = run.state
  const { standing } = told
  if (standing === null) throw unsettled()
  const change = changesOf({ ...told, standing }, present, rulesOf(run))
  // Only an epoch asks how long the cache should live, and the answer takes reading the log.
  return change.kind === 'epoch'
    ? changesOf({ ...told, standing }, withTtl(run, present), rulesOf(run))
    : change
}

function rulesOf({ state, host }: TurnRun): ChangeRules {
  const { volatile } = host.policy.cache
  const lateTools = host.lateTools ?? 'announce'
  const mayRewrite = volatile === 'inline' || lateTools === 'define'
  return {
    profile: host.profile,
    volatile,
    lateTools,
    isBound: mayRewrite && hasBoundThinking(recordsIn(state.view), host.profile),
    holds: mustHold(state.flat, host.profile),
  }
}

function* recordsIn({ entries }: View): Generator<KnownRecord> {
  for (const { record, cleared } of entries) if (cleared?.thinking !== true) yield record
}

export async function presentNow(run: TurnRun): Promise<Present | PrefixHalt> {
  const { host } = run
  const { texts: known, textsSince } = standingTexts(run)
  const due = sectionsDue(host.sections, known)
  const computed = await computedNow(due)
  if ('ok' in computed) return computed
  const texts = new Map([...known, ...computed])
  run.state = { ...run.state, texts, textsSince }
  const offered = offeredNow(host)
  if ('ok' in offered) return offered
  const parameters = withOwnBetas(offered.parameters, host)
  return { ...offered, parameters, sections: presentSections(host.sections, texts) }
}

/** A compaction makes texts stale, unless it kept thinking that holds the prefix as it is. */
function standingTexts({ state, host }: TurnRun): Pick<SessionState, 'texts' | 'textsSince'> {
  const since = state.view.acts.findLast(({ kind }) => kind === 'compact')?.uuid ?? null
  if (since === state.textsSince || state.texts.size === 0) return { texts: state.texts, textsSince: since }
  return hasBoundThinking(recordsIn(state.view), host.profile)
    ? state
    : { texts: new Map(), textsSince: since }
}

function withTtl({ state, host }: TurnRun, present: Present): Present {
  const { policy, profile, switches = NO_SWITCHES, source, isInteractive } = host
  const ttl = chooseTtl({
    policy: policy.cache,
    cache: profile.cache,
    switches,
    source,
    rates: host.pricesOf(present.model, new Date(host.clock.now()).toISOString()),
    isInteractive,
    latched: state.told.standing?.epoch.ttl,
    gaps: () => recallGaps(state.session, profile.cache),
    ...(host.isBedrock === undefined ? {} : { isBedrock: host.isBedrock }),
    ...(host.entitlement === undefined ? {} : { entitlement: host.entitlement }),
  })
  return { ...present, ttl }
}

function unsettled(): TidemarkError {
  const expected = 'Expected tools, model and parameters that stay the same when they are written and read'
  return new TidemarkError('bad-option', `${expected}: give only what JSON can say.`)
}

// What a host gives for the prefix, made fit for the log before anything is built on it: fields that say nothing
// are left out as JSON would leave them out, cache markers of the host's own too where the caching is ours. What
// cannot be had ends the turn with words that name it.

type PrefixHalt = Extract<Halt, { readonly reason: 'prefix' }>

/** Tools, model and parameters as they should be now. */
function offeredNow(host: TurnHost): Offered | PrefixHalt {
  let offered: Offered
  try {
    offered = host.offered()
  } catch (thrown) {
    return haltOf(`Tools, model and parameters could not be had: ${wordsOf(thrown)}`)
  }
  const said = { ...offered, tools: offered.tools.map(saying), parameters: saying(offered.parameters) }
  const { tools, parameters, model } = said
  const path = firstNonJson({ model, parameters, tools })
  if (path !== null) return haltOf(`${nameOf(path, tools)} is no JSON value: give only what JSON can say.`)
  return cachingIsOurs(host)
    ? { ...said, tools: tools.map(unmarkedFields), parameters: unmarkedFields(parameters) }
    : said
}

function cachingIsOurs({ policy, switches = NO_SWITCHES }: TurnHost): boolean {
  return mechanismStates(policy, switches).caching.on
}

/** `tools.3.description` says less than whose description it is. */
function nameOf(path: string, tools: Offered['tools']): string {
  const [head, index, ...rest] = path.split('.')
  const tool = head === 'tools' ? tools[Number(index)] : undefined
  const name = isObject(tool) && typeof tool.name === 'string' ? tool.name : null
  return name === null ? path : `${rest.join('.') || 'the definition'} of tool ${name}`
}

/** Texts of sections by name, computed side by side. */
async function computedNow(
  due: readonly PlacedSection[],
): Promise<ReadonlyMap<string, SectionText> | PrefixHalt> {
  const computed = await Promise.all(due.map(computedText))
  const failed = computed.find((each) => 'ok' in each)
  if (failed !== undefined) return failed
  return new Map(computed.flatMap((each) => ('ok' in each ? [] : [[each.name, each.text] as const])))
}

interface Computed {
  readonly name: string
  readonly text: SectionText
}

async function computedText({ name, compute }: PlacedSection): Promise<Computed | PrefixHalt> {
  try {
    const text: unknown = await compute()
    if (text === null || text === undefined) return { name, text: null }
    return typeof text === 'string'
      ? { name, text }
      : haltOf(`Section "${name}" gave no text: ${typeof text}.`)
  } catch (thrown) {
    return haltOf(`Section "${name}" could not be computed: ${wordsOf(thrown)}`)
  }
}

function haltOf(message: string): PrefixHalt {
  return { ok: false, reason: 'prefix', message }
}

function wordsOf(thrown: unknown): string {
  const words = thrown instanceof Error ? thrown.message : String(thrown)
  return words.trim() === '' ? 'no reason was given' : words
}

/** The very same value where every field of it says something. */
function saying<T>(value: T): T {
  return firstNonJson(value) === null || isTooDeep(value) ? value : (withoutUndefined(value) as T)
}

function withoutUndefined(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutUndefined)
  if (!isObject(value) || Object.getPrototypeOf(value) !== Object.prototype) return value
  const entries = Object.entries(value).filter(([, item]) => item !== undefined)
  return Object.fromEntries(entries.map(([name, item]) => [name, withoutUndefined(item)]))
}

// Betas that edits by the provider take. They are named from the start of a session: naming them when the first
// edit is due would itself lose the cache.

/** The parameters with what the engine's own requests need beside what the host asks for. */
export function withOwnBetas(
  parameters: JsonObject,
  { policy, profile }: Pick<TurnHost, 'policy' | 'profile'>,
): JsonObject {
  if (!mayPreferNative({ policy, profile })) return parameters
  const given = betasIn(parameters)
  const missing = lacking(given, profile).flatMap(({ betas }) => betas.slice(0, 1))
  return missing.length === 0 ? parameters : { ...parameters, betas: [...given, ...new Set(missing)] }
}

/** The provider would take the edits with a request that has these parameters. */
export function namesEditBetas(parameters: JsonObject, profile: Profile): boolean {
  return lacking(betasIn(parameters), profile).length === 0
}

function lacking(named: readonly string[], { betas, contextEdits }: Profile): readonly BetaRule[] {
  const edits: readonly (string | null)[] = [contextEdits.clearThinking, contextEdits.clearToolUses]
  const isOurs = ({ where, name }: BetaRule): boolean => where === 'edit' && edits.includes(name)
  return betas.filter((rule) => isOurs(rule) && !rule.betas.some((beta) => named.includes(beta)))
}

// Between compactions: what changed about the work's state since the view last showed it is told, once.

export async function* tellCarriers(run: TurnRun, _: Moment): AsyncGenerator<TurnEvent, Halt | null> {
  const { room, policy, profile } = run.host
  const carriers = (room?.carriers ?? []).filter(({ tellsChanges }) => tellsChanges)
  if (room === undefined || carriers.length === 0 || mustHold(run.state.flat, profile)) return null
  const { state } = run
  const shown = advanceShown(state.shown, state.view.entries)
  const end = await carryChanges(boundedCarriers(room, run.signal), {
    session: state.session,
    shown,
    policy,
    budgets: room.scaled.budgets,
    measure: room.estimator.text,
  })
  run.state = { ...run.state, shown }
  if (run.signal?.aborted === true) return { ok: false, reason: 'aborted' }
  for (const { carrier, why } of end.failed) yield { type: 'restore-failed', carrier, why }
  const bodies = end.carried.map(({ attachment }) => ({
    type: 'attachment' as const,
    isMeta: true,
    attachment,
  }))
  return yield* append(run, bodies)
}

// Carriers that cannot hang a session: one that takes too long has failed, and the others come all the same.

/** Seconds that one thing of a carrier may take: a file on a disk that does not answer. */
const LONGEST_SECONDS = 20

export function boundedCarriers(
  { carriers = [], deadlines }: Room,
  signal: Signal | undefined,
): readonly Carrier[] {
  return carriers.map((carrier) => ({
    name: carrier.name,
    kind: carrier.kind,
    tellsChanges: carrier.tellsChanges,
    isWhole: carrier.isWhole,
    limit: (context) => carrier.limit(context),
    render: async function* (context): AsyncGenerator<Offer, void> {
      const offers = carrier.render(context)[Symbol.asyncIterator]()
      try {
        for (;;) {
          const next = await deadlines.within(LONGEST_SECONDS * 1000, () => offers.next(), signal)
          if (!next.ok) throw new Error(next.why === 'timeout' ? TOO_LONG : 'was called off')
          if (next.value.done === true) return
          yield next.value.value
        }
      } finally {
        // Not waited for: one that hangs would hang here again.
        offers.return?.().then(undefined, () => {})
      }
    },
  }))
}

const TOO_LONG = `took longer than ${LONGEST_SECONDS} seconds`
