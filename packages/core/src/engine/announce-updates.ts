/**
 * Tells the model what changed in system prompt, tools and context sources since the last request. Changes are appended
 * as messages, so that the cached prefix stays the same until the next prefix snapshot.
 */

import { hasLiveCache } from '../cache/cache-model.ts'
import { type CacheMonitor, withAnnouncedRewrite } from '../cache/cache-monitor.ts'
import { mayUseProviderEdits } from '../clearing/propose-clearing.ts'
import {
  findForeignResponseIds,
  findThinkingResponseIds,
  isVisibleToModel,
} from '../context/context-entry.ts'
import type { ContextView } from '../context/context-view.ts'
import type { TracedMessage } from '../context/flatten-context.ts'
import { TidemarkError } from '../errors.ts'
import { isThinkingBlock, isToolResult, isToolUse, toBlocks, withoutCacheMarker } from '../log/block.ts'
import { findNonJsonPath, isNestedTooDeep, isObject, type JsonObject } from '../log/json.ts'
import type { KnownRecord, SnapshotSection } from '../log/record.ts'
import type { ProviderProfile } from '../policy/provider-profile.ts'
import type { CacheMissZone } from '../policy/provider-spelling.ts'
import { findFeatureStates, NO_SWITCHES } from '../policy/switches.ts'
import { countMessages, findMessageAt, type MessageList, toMessageBlocks } from '../request/block-index.ts'
import { chooseSnapshotTtl, tallyLoggedGaps } from '../request/cache-ttl.ts'
import {
  buildRequestPrefix,
  type CurrentSnapshot,
  createPrefixSnapshot,
  type DesiredPrefix,
  hasBoundThinking,
  isLoadedUpfront,
  withContextEditBetas,
} from '../request/prefix-snapshot.ts'
import {
  createSnapshotRecord,
  type PrefixChange,
  type PrefixChangeCause,
  planPrefixChange,
} from '../request/prefix-updates.ts'
import {
  type PlacedSection,
  type SectionText,
  type SectionTexts,
  SYSTEM_PROMPT_DYNAMIC_BOUNDARY,
} from '../request/system-prompt.ts'
import { collectSourceUpdates } from '../sources/collect-sources.ts'
import { type ContextSource, type SourceItem, updateShownAttachments } from '../sources/context-source.ts'
import { replaceLoneSurrogates } from '../text/truncate-text.ts'
import type { TurnEvent, TurnFailure } from './events.ts'
import type { OfferedPrefix, TurnHost } from './host.ts'
import {
  appendUnlinkedRecords,
  isTurnAborted,
  type TurnContext,
  type UnlinkedRecord,
} from './session-writer.ts'

const ABORTED: TurnFailure = { ok: false, reason: 'aborted' }

/** Maximum number of passes, more than are ever needed: a new prefix snapshot may leave changes for the next pass. */
const MAX_ROUNDS = 8

/**
 * Appends changes of system prompt and tools since the model last saw them. The first time this is a prefix snapshot,
 * later an update message, or a new snapshot if a message cannot express the change.
 */
export async function* appendPrefixUpdates(turn: TurnContext): AsyncGenerator<TurnEvent, TurnFailure | null> {
  let present = await readHostPrefix(turn)
  if ('ok' in present) return isTurnAborted(turn) ? ABORTED : present
  if (turn.state.prefix.current === null) {
    const epoch = createPrefixSnapshot(withChosenTtl(turn, present), turn.host.profile)
    yield { type: 'epoch-opened', epoch }
    // The log may come from a program that used another provider, whose items this provider does not accept.
    const foreign = findForeignResponseIds(turn.state.view.entries.toArray(), turn.host.profile.origin)
    const failure = yield* appendUnlinkedRecords(turn, [createSnapshotRecord(epoch, [], foreign)])
    if (failure !== null) return failure
  }
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    const change = diffPresentPrefix(turn, present)
    if (change.kind === 'none') return null
    // Sections of the system prompt may depend on the model, so a change of model computes them again.
    if (round === 0 && change.kind === 'epoch' && change.causes.some(({ kind }) => kind === 'model')) {
      turn.state = { ...turn.state, sectionTexts: new Map() }
      present = await readHostPrefix(turn)
      if ('ok' in present) return isTurnAborted(turn) ? ABORTED : present
      continue
    }
    yield { type: 'prefix-changed', change }
    const failure = yield* appendUnlinkedRecords(turn, change.records)
    if (failure !== null) return failure
    if (change.kind === 'epoch' && change.breaksCache) {
      const watch = announceSnapshotToMonitor(turn.state.cacheMonitor, turn.host.source, change.causes)
      turn.state = { ...turn.state, cacheMonitor: watch }
    }
  }
  throw unstablePrefixError()
}

/** Plans how to tell the model what changed between the prefix that it knows and the one that the host wants now. */
function diffPresentPrefix(turn: TurnContext, present: DesiredPrefix): PrefixChange {
  const { state, host } = turn
  const { current } = state.prefix
  if (current === null) throw unstablePrefixError()
  const { volatile } = host.policy.cache
  const rules = {
    profile: host.profile,
    volatile,
    lateTools: host.lateTools ?? 'define',
    isClientLed: host.client !== undefined,
    isBound: volatile === 'inline' && hasBoundThinking(recordsWithThinking(state.view), host.profile),
    isCold: isPrefixCold(turn, current),
    holds: mustDelayUpdate(state.flat, host.profile),
  }
  const prefix = { ...state.prefix, current }
  const change = planPrefixChange(prefix, present, rules)
  if (change.kind !== 'epoch') return change
  // Lifetime and bound thinking are looked up only for a new prefix snapshot, because that reads the log and the context.
  const isBound = host.profile.thinking.binding === 'prefix'
  const entries = state.view.entries.toArray()
  const boundResponses = isBound ? findThinkingResponseIds(entries) : []
  const foreignResponses = findForeignResponseIds(entries, host.profile.origin)
  return planPrefixChange(prefix, withChosenTtl(turn, present), {
    ...rules,
    boundResponses,
    foreignResponses,
  })
}

/** Returns true if no live cache entry begins with the tools and the system prompt of the snapshot in effect. */
function isPrefixCold({ state, host }: TurnContext, current: CurrentSnapshot): boolean {
  if (state.cacheModel === null) return false
  const { tools, system } = buildRequestPrefix(current, { previous: state.lastRequest?.front })
  const front = [...tools.filter(isLoadedUpfront), ...system.map(({ block }) => block)]
  return !hasLiveCache(state.cacheModel, front, host.clock.now())
}

function* recordsWithThinking({ entries }: ContextView): Generator<KnownRecord> {
  for (const { record, cleared } of entries) if (cleared?.thinking !== true) yield record
}

/** Adds the cache lifetime to choose for a new prefix snapshot. Reads the pauses between model calls from the log. */
export function withChosenTtl({ state, host }: TurnContext, present: DesiredPrefix): DesiredPrefix {
  const { policy, profile, switches = NO_SWITCHES, source, isInteractive } = host
  const ttl = chooseSnapshotTtl({
    policy: policy.cache,
    cache: profile.cache,
    switches,
    source,
    rates: host.pricesOf(present.model, new Date(host.clock.now()).toISOString()),
    isInteractive,
    latched: state.prefix.current?.epoch.ttl,
    readGaps: () => tallyLoggedGaps(state.session, profile.cache),
    ...(host.isBedrock === undefined ? {} : { isBedrock: host.isBedrock }),
    ...(host.entitlement === undefined ? {} : { entitlement: host.entitlement }),
    ...(host.client?.ttl === undefined ? {} : { requested: host.client.ttl }),
  })
  return { ...present, ttl }
}

function unstablePrefixError(): TidemarkError {
  const expected = 'Expected tools, model and parameters that stay the same when they are written and read'
  return new TidemarkError('bad-option', `${expected}: give only what JSON can say.`)
}

/**
 * Tells the cache monitor about a new prefix snapshot, so that the changes of system prompt, tools or model in it are
 * not reported as a cache break.
 */
export function announceSnapshotToMonitor(
  watch: CacheMonitor,
  source: string,
  causes: readonly PrefixChangeCause[],
): CacheMonitor {
  const act = causes.map(describeCause).join(', ')
  return ZONES.reduce(
    (next, zone) => withAnnouncedRewrite(next, source, { kind: 'rewrite', zone, act }),
    watch,
  )
}

const ZONES: readonly CacheMissZone[] = ['model', 'tools', 'system', 'other']

function describeCause(cause: PrefixChangeCause): string {
  switch (cause.kind) {
    case 'model':
      return `changed the model from ${cause.from} to ${cause.to}`
    case 'account':
      return 'changed the account'
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

// Reads the system prompt and tools that the host wants now. If a section or tool cannot be supplied, the turn ends
// with a message that names it.

type PrefixFailure = Extract<TurnFailure, { readonly reason: 'prefix' }>

/**
 * Returns the sections of the system prompt, the tools, the model and the parameters that the host wants now. Section
 * texts computed earlier are reused, except those of volatile sections; new ones are remembered in the state. Returns a
 * failure if the host cannot supply one of them.
 */
export async function readHostPrefix(turn: TurnContext): Promise<DesiredPrefix | PrefixFailure> {
  const { host } = turn
  const { known, since } = findReusableTexts(turn)
  const due = host.sections.filter(({ name, part }) => part === 'volatile' || !known.has(name))
  const rendered = await Promise.all(due.map((section) => renderSection(turn, section)))
  const failed = rendered.find((each) => 'ok' in each)
  if (failed !== undefined) return failed
  const texts = new Map([...known, ...rendered.flatMap((each) => ('ok' in each ? [] : [each]))])
  turn.state = { ...turn.state, sectionTexts: texts, sectionTextsSince: since }
  const offered = readHostTools(host)
  if ('ok' in offered) return offered
  const parameters = withEngineBetas(offered.parameters, host)
  const usedTools = offered.tools.length === 0 ? listUsedTools(turn) : []
  return { ...offered, usedTools, parameters, sections: listSectionsWithText(host.sections, texts) }
}

/** Returns the sections that have a text. The boundary string of the system prompt is removed from computed texts. */
export function listSectionsWithText(
  sections: readonly PlacedSection[],
  texts: SectionTexts,
): readonly SnapshotSection[] {
  return sections.flatMap(({ name, part }) => {
    const text = (texts.get(name) ?? '').replaceAll(SYSTEM_PROMPT_DYNAMIC_BOUNDARY, '')
    return text.trim() === '' ? [] : [{ name, part, text }]
  })
}

/** Returns the tools that the messages use, as last defined; a tool whose definition is unknown takes any input. */
function listUsedTools(turn: TurnContext): readonly JsonObject[] {
  if (!turn.host.profile.tools.declaredWhenUsed) return []
  const { flat, prefix, calledTools } = turn.state
  const { current, tools } = prefix
  const defined = new Map((current?.epoch.tools ?? []).map((tool) => [tool.name, tool]))
  // Frozen messages (those that no later record can change) are searched once, so only those added since then are searched.
  const known = calledTools !== null && flat.frozen.extends(calledTools.frozen) ? calledTools : null
  const added = listCalledTools(flat.frozen.toArray(known?.frozen.length ?? 0))
  const names = new Set([...(known?.names ?? []), ...added])
  turn.state = { ...turn.state, calledTools: { frozen: flat.frozen, names } }
  return [...new Set([...names, ...listCalledTools(flat.tail)])].map(
    (name) => defined.get(name) ?? tools.get(name)?.definition ?? { name, input_schema: { type: 'object' } },
  )
}

function listCalledTools(messages: readonly TracedMessage[]): readonly string[] {
  return messages.flatMap(({ message }) =>
    toBlocks(message.content).flatMap((block) => (isToolUse(block) ? [String(block.name)] : [])),
  )
}

/**
 * Returns the section texts of the system prompt that can be reused. After a compaction none can, unless the context
 * has thinking that is valid only with the same prefix.
 */
function findReusableTexts({ state, host }: TurnContext): {
  readonly known: SectionTexts
  readonly since: string | null
} {
  const since = state.view.rewrites.findLast(({ kind }) => kind === 'compact')?.uuid ?? null
  if (since === state.sectionTextsSince || state.sectionTexts.size === 0)
    return { known: state.sectionTexts, since }
  return hasBoundThinking(recordsWithThinking(state.view), host.profile)
    ? { known: state.sectionTexts, since: state.sectionTextsSince }
    : { known: new Map(), since }
}

async function renderSection(
  turn: TurnContext,
  { name, compute }: PlacedSection,
): Promise<readonly [string, SectionText] | PrefixFailure> {
  try {
    const text: unknown = await computeInTime(turn, compute)
    if (text === null || text === undefined) return [name, null]
    return typeof text === 'string'
      ? [name, replaceLoneSurrogates(text)]
      : createPrefixFailure(`Section "${name}" gave no text: ${typeof text}.`)
  } catch (thrown) {
    return createPrefixFailure(`Section "${name}" could not be computed: ${describeThrown(thrown)}`)
  }
}

/** Computes a section within the time limit of hooks, since a section, too, runs code of the host. Throws if it takes longer. */
async function computeInTime(
  { host, signal }: TurnContext,
  compute: PlacedSection['compute'],
): Promise<unknown> {
  const { timeoutSeconds } = host.policy.turn.hooks
  const end = await host.compaction.deadlines.within(timeoutSeconds * 1000, async () => compute(), signal)
  if (end.ok) return end.value
  throw new Error(
    end.why === 'timeout' ? `it took longer than ${timeoutSeconds} seconds.` : 'it was aborted.',
  )
}

/**
 * Reads tools, model and parameters from the host. Drops undefined fields and, if caching is on, the host's cache
 * markers. Returns a failure if a value is not JSON.
 */
function readHostTools(host: TurnHost): OfferedPrefix | PrefixFailure {
  const offered = host.readOfferedPrefix()
  const { model } = offered
  const tools = replaceLoneSurrogates(offered.tools.map(withoutUndefined))
  const parameters = replaceLoneSurrogates(withoutUndefined(offered.parameters))
  const path = findNonJsonPath({ model, parameters, tools })
  if (path !== null)
    return createPrefixFailure(`${nameTool(path, tools)} is no JSON value: give only what JSON can say.`)
  return findFeatureStates(host.policy, host.switches ?? NO_SWITCHES).caching.on
    ? { ...offered, tools: tools.map(withoutCacheMarker), parameters: withoutCacheMarker(parameters) }
    : { ...offered, tools, parameters }
}

/** Turns a path such as `tools.3.description` into `description of tool Read`, for error messages. */
function nameTool(path: string, tools: OfferedPrefix['tools']): string {
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

/** Removes undefined fields from a value. Returns the same value if it has none. */
function withoutUndefined<T>(value: T): T {
  return findNonJsonPath(value) === null || isNestedTooDeep(value) ? value : (dropUndefined(value) as T)
}

function dropUndefined(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(dropUndefined)
  if (!isObject(value) || Object.getPrototypeOf(value) !== Object.prototype) return value
  const entries = Object.entries(value).filter(([, item]) => item !== undefined)
  return Object.fromEntries(entries.map(([name, item]) => [name, dropUndefined(item)]))
}

// Names of provider betas that context edits need. They are sent from the first request on, because adding them later
// would break the cache.

/** Returns the host's parameters, with the beta names added that the engine's requests need. */
export function withEngineBetas(
  parameters: JsonObject,
  { policy, profile, client }: Pick<TurnHost, 'policy' | 'profile' | 'client'>,
): JsonObject {
  const needsBetas = client === undefined && mayUseProviderEdits({ policy, profile })
  return needsBetas ? withContextEditBetas(parameters, profile) : parameters
}

// Appends the context sources of a session: the reminder in front of an empty conversation, and later what changed
// (todos, modes, memory files). Changes are appended as messages, so that the cached prefix stays the same.

/**
 * Returns the records that stand in front of the first prompt: the reminder with the instructions of user and project.
 * Returns none if the conversation has begun, or if the reminder would have no text.
 */
export async function* collectOpeningRecords(
  turn: TurnContext,
): AsyncGenerator<TurnEvent, readonly UnlinkedRecord[]> {
  const isOpening = ({ kind }: ContextSource): boolean => kind === 'ambient'
  return hasBegun(turn) ? [] : yield* collectUpdates(turn, isOpening)
}

function hasBegun({ state }: TurnContext): boolean {
  const { entries } = state.view
  for (let index = 0; index < entries.length; index += 1) {
    const entry = entries.at(index)
    if (entry !== undefined && isVisibleToModel(entry)) return true
  }
  return false
}

/** Appends todos, plan and other context sources that changed since the context last showed them. */
export async function* appendSourceUpdates(turn: TurnContext): AsyncGenerator<TurnEvent, TurnFailure | null> {
  const { flat } = turn.state
  // Nothing may follow a response that the provider is to continue.
  if (findMessageAt(flat, countMessages(flat) - 1)?.message.role === 'assistant') return null
  const isDelayed = mustDelayUpdate(flat, turn.host.profile)
  const records = yield* collectUpdates(turn, ({ isUrgent = false }) => isUrgent || !isDelayed)
  if (isTurnAborted(turn)) return ABORTED
  return yield* appendUnlinkedRecords(turn, records)
}

/**
 * True if announcing a change must wait. After an assistant message, an announcement would end the unfinished turn.
 * With providers that strip the thinking of finished turns, an announcement after tool results would end a turn with
 * thinking, and so break the cache.
 */
export function mustDelayUpdate(messages: MessageList, profile: ProviderProfile): boolean {
  const last = countMessages(messages) - 1
  const message = findMessageAt(messages, last)
  if (message === undefined) return false
  if (message.message.role === 'assistant') return true
  if (!profile.thinking.stripsFinishedTurns || !toMessageBlocks(message).every(isToolResult)) return false
  return hasThinkingSincePrompt(messages, last)
}

function hasThinkingSincePrompt(messages: MessageList, from: number): boolean {
  for (let index = from; index >= 0; index -= 1) {
    const message = findMessageAt(messages, index)
    if (message === undefined) continue
    if (message.message.role === 'assistant' && toMessageBlocks(message).some(isThinkingBlock)) return true
    if (message.message.role === 'user' && !toMessageBlocks(message).every(isToolResult)) return false
  }
  return false
}

/** Returns the records with what changed in some of the context sources, and emits which sources failed. */
async function* collectUpdates(
  turn: TurnContext,
  isWanted: (source: ContextSource) => boolean,
): AsyncGenerator<TurnEvent, readonly UnlinkedRecord[]> {
  const { host, state } = turn
  const { compaction } = host
  const sources = compaction.sources?.filter((source) => source.tellsChanges && isWanted(source)) ?? []
  if (sources.length === 0) return []
  const shown = updateShownAttachments(state.shownAttachments, state.view.entries)
  const { carried, failed } = await collectSourceUpdates(limitSourceTime(turn, sources), {
    session: state.session,
    shown,
    policy: host.policy,
    budgets: compaction.scaled.budgets,
    measure: compaction.estimator.text,
  })
  turn.state = { ...turn.state, shownAttachments: shown }
  if (!isTurnAborted(turn))
    for (const { carrier, why } of failed) yield { type: 'restore-failed', carrier, why }
  return carried.map(({ attachment }) => ({ type: 'attachment', isMeta: true, attachment }))
}

/**
 * Returns the context sources with a time limit for each. A source that exceeds the limit, or hangs when the turn is
 * aborted, fails. Items that it supplied before that, and those of the other sources, are still used.
 */
export function limitSourceTime(
  { host, signal }: Pick<TurnContext, 'host' | 'signal'>,
  sources: readonly ContextSource[],
): readonly ContextSource[] {
  const { deadlines } = host.compaction
  const { timeoutSeconds } = host.policy.rehydrate
  const tooLong = `took longer than ${timeoutSeconds} seconds`
  return sources.map((carrier) => ({
    name: carrier.name,
    kind: carrier.kind,
    tellsChanges: carrier.tellsChanges,
    isWhole: carrier.isWhole,
    isUrgent: carrier.isUrgent ?? false,
    limit: carrier.limit.bind(carrier),
    render: async function* (context): AsyncGenerator<SourceItem, void> {
      const offers = carrier.render(context)[Symbol.asyncIterator]()
      const end = host.clock.now() + timeoutSeconds * 1000
      try {
        for (;;) {
          const left = end - host.clock.now()
          const next = left <= 0 ? TIMED_OUT : await deadlines.within(left, async () => offers.next(), signal)
          if (!next.ok) throw new Error(next.why === 'timeout' ? tooLong : 'was aborted')
          if (next.value.done === true) return
          yield replaceLoneSurrogates(next.value.value)
        }
      } finally {
        // The source's `return` is not awaited, because a source that hangs would hang there too.
        offers.return?.().then(undefined, () => {})
      }
    },
  }))
}

const TIMED_OUT = { ok: false, why: 'timeout' } as const
