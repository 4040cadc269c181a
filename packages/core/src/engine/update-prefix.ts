/**
 * Before a request: announce what changed since the last one. Prefix updates: system prompt and tools, announced as
 * messages until the next snapshot. Source updates: todos, plan and other state of the work.
 */

import type { ProviderZone } from '../cache/cache-break.ts'
import { announceRewrite, type CacheMonitor } from '../cache/cache-monitor.ts'
import { mayUseProviderEdits } from '../clearing/propose-clearing.ts'
import type { ContextView } from '../context/context-view.ts'
import { TidemarkError } from '../errors.ts'
import { findNonJson, isObject, isTooDeep, type JsonObject } from '../log/json.ts'
import type { KnownRecord } from '../log/record.ts'
import type { BetaRule, ProviderProfile } from '../policy/provider-profile.ts'
import { findMechanismStates, NO_SWITCHES } from '../policy/switches.ts'
import { withoutCacheControl } from '../request/build-request.ts'
import { chooseTtl, readGapsFromLog } from '../request/cache-ttl.ts'
import { createSnapshot, type DesiredPrefix, hasBoundThinking, readBetas } from '../request/prefix.ts'
import {
  createSnapshotRecord,
  diffPrefix,
  mustDelayUpdate,
  type PrefixChange,
  type PrefixChangeCause,
} from '../request/prefix-updates.ts'
import {
  listPresentSections,
  listSectionsToCompute,
  type PlacedSection,
  type SectionText,
  type SectionTexts,
} from '../request/system-prompt.ts'
import { type ContextSource, type SourceItem, updateShownAttachments } from '../sources/context-source.ts'
import { collectUpdates } from '../sources/updates.ts'
import type { TurnEvent, TurnFailure } from './events.ts'
import type { CompactionHost, ModelSettings, TurnHost } from './host.ts'
import type { Signal } from './ports.ts'
import { appendBodies, type TurnContext } from './session-writer.ts'

/** A new snapshot may leave changes over, which are announced in the next round; more rounds than this never settle. */
const MAX_ROUNDS = 8

/**
 * Appends what changed about system prompt and tools since the model last saw them: the first snapshot, an update, or a
 * new snapshot where an update is not possible.
 */
export async function* appendPrefixUpdates(turn: TurnContext): AsyncGenerator<TurnEvent, TurnFailure | null> {
  let present = await readPresentPrefix(turn)
  if ('ok' in present) return present
  if (turn.state.prefix.current === null) {
    const epoch = createSnapshot(withTtl(turn, present), turn.host.profile)
    yield { type: 'epoch-opened', epoch }
    const failure = yield* appendBodies(turn, [createSnapshotRecord(epoch)])
    if (failure !== null) return failure
  }
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    const change = diffPresentPrefix(turn, present)
    if (change.kind === 'none') return null
    // Sections may depend on the model: with another one they are rendered again.
    if (round === 0 && change.kind === 'epoch' && change.causes.some(({ kind }) => kind === 'model')) {
      turn.state = { ...turn.state, sectionTexts: new Map() }
      present = await readPresentPrefix(turn)
      if ('ok' in present) return present
      continue
    }
    yield { type: 'prefix-changed', change }
    const failure = yield* appendBodies(turn, change.records)
    if (failure !== null) return failure
    if (change.kind === 'epoch' && change.breaksCache) {
      const watch = announceSnapshot(turn.state.cacheMonitor, turn.host.source, change.causes)
      turn.state = { ...turn.state, cacheMonitor: watch }
    }
  }
  throw unstablePrefixError()
}

function diffPresentPrefix(turn: TurnContext, present: DesiredPrefix): PrefixChange {
  const { state, host } = turn
  const { current } = state.prefix
  if (current === null) throw unstablePrefixError()
  const { volatile } = host.policy.cache
  const lateTools = host.lateTools ?? 'announce'
  const mayRewrite = volatile === 'inline' || lateTools === 'define'
  const rules = {
    profile: host.profile,
    volatile,
    lateTools,
    isBound: mayRewrite && hasBoundThinking(recordsWithThinking(state.view), host.profile),
    holds: mustDelayUpdate(state.flat, host.profile),
  }
  const prefix = { ...state.prefix, current }
  const change = diffPrefix(prefix, present, rules)
  // Only a new snapshot chooses the cache lifetime, which takes reading the log.
  return change.kind === 'epoch' ? diffPrefix(prefix, withTtl(turn, present), rules) : change
}

function* recordsWithThinking({ entries }: ContextView): Generator<KnownRecord> {
  for (const { record, cleared } of entries) if (cleared?.thinking !== true) yield record
}

function withTtl({ state, host }: TurnContext, present: DesiredPrefix): DesiredPrefix {
  const { policy, profile, switches = NO_SWITCHES, source, isInteractive } = host
  const ttl = chooseTtl({
    policy: policy.cache,
    cache: profile.cache,
    switches,
    source,
    rates: host.pricesOf(present.model, new Date(host.clock.now()).toISOString()),
    isInteractive,
    latched: state.prefix.current?.epoch.ttl,
    readGaps: () => readGapsFromLog(state.session, profile.cache),
    ...(host.isBedrock === undefined ? {} : { isBedrock: host.isBedrock }),
    ...(host.entitlement === undefined ? {} : { entitlement: host.entitlement }),
  })
  return { ...present, ttl }
}

function unstablePrefixError(): TidemarkError {
  const expected = 'Expected tools, model and parameters that stay the same when they are written and read'
  return new TidemarkError('bad-option', `${expected}: give only what JSON can say.`)
}

/**
 * Announces a new snapshot to the cache monitor. It absorbs all pending changes, so any change of the prefix, in
 * whichever zone, is its doing and no break.
 */
export function announceSnapshot(
  watch: CacheMonitor,
  source: string,
  causes: readonly PrefixChangeCause[],
): CacheMonitor {
  const act = causes.map(describeCause).join(', ')
  return ZONES.reduce((next, zone) => announceRewrite(next, source, { kind: 'rewrite', zone, act }), watch)
}

const ZONES: readonly ProviderZone[] = ['model', 'tools', 'system', 'other']

function describeCause(cause: PrefixChangeCause): string {
  switch (cause.kind) {
    case 'model':
      return `changed the model from ${cause.from} to ${cause.to}`
    case 'sections':
      return `rewrote ${listNames('section', cause.names)}`
    case 'tools':
      return `defined ${listNames('tool', cause.names)}`
    case 'parameters':
      return `changed ${listNames('parameter', cause.names)}`
  }
}

const MAX_NAMES = 3

function listNames(noun: string, names: readonly string[]): string {
  const more = names.length - MAX_NAMES
  const listed = names.slice(0, MAX_NAMES).join(', ') + (more > 0 ? ` and ${more} more` : '')
  return `${noun}${names.length === 1 ? '' : 's'} ${listed}`
}

// The prefix as the host wants it now, made fit for the log. A section or tool that cannot be had ends the turn with a
// message that names it.

type PrefixFailure = Extract<TurnFailure, { readonly reason: 'prefix' }>

/** Sections, tools, model and parameters as they should be now. Sections already rendered are reused. */
export async function readPresentPrefix(turn: TurnContext): Promise<DesiredPrefix | PrefixFailure> {
  const { host } = turn
  const { known, since } = findReusableTexts(turn)
  const rendered = await Promise.all(listSectionsToCompute(host.sections, known).map(renderSection))
  const failed = rendered.find((each) => 'ok' in each)
  if (failed !== undefined) return failed
  const texts = new Map([...known, ...rendered.flatMap((each) => ('ok' in each ? [] : [each]))])
  turn.state = { ...turn.state, sectionTexts: texts, sectionTextsSince: since }
  const offered = readHostTools(host)
  if ('ok' in offered) return offered
  const parameters = withOwnBetas(offered.parameters, host)
  return { ...offered, parameters, sections: listPresentSections(host.sections, texts) }
}

/** A compaction makes the texts stale, unless it kept thinking that is bound to the prefix. */
function findReusableTexts({ state, host }: TurnContext): {
  readonly known: SectionTexts
  readonly since: string | null
} {
  const since = state.view.acts.findLast(({ kind }) => kind === 'compact')?.uuid ?? null
  if (since === state.sectionTextsSince || state.sectionTexts.size === 0)
    return { known: state.sectionTexts, since }
  return hasBoundThinking(recordsWithThinking(state.view), host.profile)
    ? { known: state.sectionTexts, since: state.sectionTextsSince }
    : { known: new Map(), since }
}

async function renderSection({
  name,
  compute,
}: PlacedSection): Promise<readonly [string, SectionText] | PrefixFailure> {
  try {
    const text: unknown = await compute()
    if (text === null || text === undefined) return [name, null]
    return typeof text === 'string'
      ? [name, text]
      : createPrefixFailure(`Section "${name}" gave no text: ${typeof text}.`)
  } catch (thrown) {
    return createPrefixFailure(`Section "${name}" could not be computed: ${describeThrown(thrown)}`)
  }
}

/** Without undefined fields, as JSON would leave them out, and, if caching is on, without the host's own cache markers. */
function readHostTools(host: TurnHost): ModelSettings | PrefixFailure {
  let offered: ModelSettings
  try {
    offered = host.modelSettings()
  } catch (thrown) {
    return createPrefixFailure(`Tools, model and parameters could not be had: ${describeThrown(thrown)}`)
  }
  const { model } = offered
  const [tools, parameters] = [offered.tools.map(withoutUndefined), withoutUndefined(offered.parameters)]
  const path = findNonJson({ model, parameters, tools })
  if (path !== null)
    return createPrefixFailure(`${nameTool(path, tools)} is no JSON value: give only what JSON can say.`)
  return findMechanismStates(host.policy, host.switches ?? NO_SWITCHES).caching.on
    ? { ...offered, tools: tools.map(withoutCacheControl), parameters: withoutCacheControl(parameters) }
    : { ...offered, tools, parameters }
}

/** `tools.3.description` as `description of tool Read`. */
function nameTool(path: string, tools: ModelSettings['tools']): string {
  const [head, index, ...rest] = path.split('.')
  const tool = head === 'tools' ? tools[Number(index)] : undefined
  const name = isObject(tool) && typeof tool.name === 'string' ? tool.name : null
  return name === null ? path : `${rest.join('.') || 'the definition'} of tool ${name}`
}

function createPrefixFailure(message: string): PrefixFailure {
  return { ok: false, reason: 'prefix', message }
}

function describeThrown(thrown: unknown): string {
  const text = thrown instanceof Error ? thrown.message : String(thrown)
  return text.trim() === '' ? 'no reason was given' : text
}

/** The same object if no field is undefined. */
function withoutUndefined<T>(value: T): T {
  return findNonJson(value) === null || isTooDeep(value) ? value : (dropUndefined(value) as T)
}

function dropUndefined(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(dropUndefined)
  if (!isObject(value) || Object.getPrototypeOf(value) !== Object.prototype) return value
  const entries = Object.entries(value).filter(([, item]) => item !== undefined)
  return Object.fromEntries(entries.map(([name, item]) => [name, dropUndefined(item)]))
}

// Betas that the provider's context edits need. They are named from the start of a session: naming them with the first
// edit would itself break the cache.

/** The host's parameters, with the betas that the engine's own requests need. */
export function withOwnBetas(
  parameters: JsonObject,
  { policy, profile }: Pick<TurnHost, 'policy' | 'profile'>,
): JsonObject {
  if (!mayUseProviderEdits({ policy, profile })) return parameters
  const given = readBetas(parameters)
  const missing = missingEditBetas(given, profile).flatMap(({ betas }) => betas.slice(0, 1))
  return missing.length === 0 ? parameters : { ...parameters, betas: [...given, ...new Set(missing)] }
}

/** A request with these parameters may carry context edits. */
export function hasEditBetas(parameters: JsonObject, profile: ProviderProfile): boolean {
  return missingEditBetas(readBetas(parameters), profile).length === 0
}

function missingEditBetas(
  named: readonly string[],
  { betas, contextEdits }: ProviderProfile,
): readonly BetaRule[] {
  const edits: readonly (string | null)[] = [contextEdits.clearThinking, contextEdits.clearToolUses]
  return betas.filter(
    ({ where, name, betas: any }) =>
      where === 'edit' && edits.includes(name) && !any.some((beta) => named.includes(beta)),
  )
}

/** Appends what changed about the state of the work since the context last showed it. */
export async function* appendSourceUpdates(turn: TurnContext): AsyncGenerator<TurnEvent, TurnFailure | null> {
  const { policy, profile } = turn.host
  const compaction = turn.host.compaction
  const isTelling = compaction?.sources?.some(({ tellsChanges }) => tellsChanges) ?? false
  if (compaction === undefined || !isTelling || mustDelayUpdate(turn.state.flat, profile)) return null
  const { session, view } = turn.state
  const shown = updateShownAttachments(turn.state.shownAttachments, view.entries)
  const { carried, failed } = await collectUpdates(boundSources(compaction, turn.signal), {
    session,
    shown,
    policy,
    budgets: compaction.scaled.budgets,
    measure: compaction.estimator.text,
  })
  turn.state = { ...turn.state, shownAttachments: shown }
  if (turn.signal?.aborted === true) return { ok: false, reason: 'aborted' }
  for (const { carrier, why } of failed) yield { type: 'restore-failed', carrier, why }
  return yield* appendBodies(
    turn,
    carried.map(({ attachment }) => ({ type: 'attachment', isMeta: true, attachment })),
  )
}

/** Seconds that a context source may take for one item, for example a file on a disk that does not respond. */
const MAX_ITEM_SECONDS = 20

/** The context sources, each bounded in time: one that takes too long fails, and the others are used all the same. */
export function boundSources(
  { sources = [], deadlines }: CompactionHost,
  signal: Signal | undefined,
): readonly ContextSource[] {
  return sources.map((carrier) => ({
    name: carrier.name,
    kind: carrier.kind,
    tellsChanges: carrier.tellsChanges,
    isWhole: carrier.isWhole,
    limit: (context) => carrier.limit(context),
    render: async function* (context): AsyncGenerator<SourceItem, void> {
      const offers = carrier.render(context)[Symbol.asyncIterator]()
      try {
        for (;;) {
          const next = await deadlines.within(MAX_ITEM_SECONDS * 1000, () => offers.next(), signal)
          if (!next.ok) throw new Error(next.why === 'timeout' ? ITEM_TIMEOUT_MESSAGE : 'was called off')
          if (next.value.done === true) return
          yield next.value.value
        }
      } finally {
        // Not awaited: a source that hangs would hang here again.
        offers.return?.().then(undefined, () => {})
      }
    },
  }))
}

const ITEM_TIMEOUT_MESSAGE = `took longer than ${MAX_ITEM_SECONDS} seconds`
