/**
 * Rebuilds the API requests of one conversation from its log. Each request comes with the records logged since the
 * previous request.
 */
import type { SentMarker, SentRequest } from '@tidemark/core/cache/sent-request'
import { type ContextView, emptyContextView, updateContextView } from '@tidemark/core/context/context-view'
import { type FlattenedContext, flattenContext } from '@tidemark/core/context/flatten-context'
import { readUserInputs } from '@tidemark/core/facts/user-input'
import { isThinkingBlock, isToolResult, isToolUse, toBlocks } from '@tidemark/core/log/block'
import { isObject, type JsonObject } from '@tidemark/core/log/json'
import {
  isKnownRecord,
  type PrefixSnapshot,
  type PrefixUpdate,
  type SessionRecord,
} from '@tidemark/core/log/record'
import { appendRecordAsIs, emptySessionLog, type SessionLog } from '@tidemark/core/log/session-log'
import type { ProviderProfile } from '@tidemark/core/policy/provider-profile'
import { applyParameterChanges } from '@tidemark/core/request/prefix-snapshot'
import type { RecordWithLine } from '@tidemark/wire/readers/log-reader'
import { type LoggedCall, toResponseKey } from './logged-calls.ts'

export interface ReplayedRequest {
  readonly call: LoggedCall
  /** The line in the log of the response's first record. */
  readonly line: number
  readonly record: SessionRecord
  /** The approximate time at which the request was sent, in milliseconds; 0 if unknown. */
  readonly at: number
  readonly flat: FlattenedContext
  readonly prefix: LoggedPrefix
  readonly settings: LoggedThinkingSettings
  /** The uuid of the last compaction or clearing in the context; null if there is none. */
  readonly lastRewriteId: string | null
  /** The records logged since the previous request: from the first record of its response up to this response. */
  readonly recordsSincePrevious: readonly RecordWithLine[]
}

/** System prompt, tools and parameters of a request, as far as the log records them. */
interface LoggedPrefix extends Pick<SentRequest, 'tools' | 'system'> {
  /** The request parameters; null if the log does not record them. */
  readonly parameters: JsonObject | null
}

const UNKNOWN_PREFIX: LoggedPrefix = { tools: [], system: [], parameters: null }

/** The session and the context that the log of a conversation leads to. */
export interface ReplayedSession {
  readonly session: SessionLog
  readonly view: ContextView
}

/**
 * Yields the rebuilt requests in the order of the log. Requests without usage are skipped, because their cache reads
 * are unknown. `onEnd` gets the session after all records.
 */
export function* replayRequests(
  records: readonly RecordWithLine[],
  calls: readonly LoggedCall[],
  onEnd?: (replayed: ReplayedSession) => void,
): Generator<ReplayedRequest> {
  const waiting = new Map(calls.filter(({ usage }) => usage !== null).map((call) => [call.key, call]))
  const readSettings = createSettingsReader()
  let settings = NO_SETTINGS
  let session = emptySessionLog()
  let view = emptyContextView()
  let flat = flattenContext(view)
  let prefix = UNKNOWN_PREFIX
  let since: RecordWithLine[] = []
  for (const read of records) {
    const key = toResponseKey(read.record)
    const call = key === null ? undefined : waiting.get(key)
    if (call !== undefined && key !== null) {
      waiting.delete(key)
      view = updateContextView(view, session)
      flat = flattenContext(view, flat)
      const lastRewriteId = view.rewrites.at(-1)?.uuid ?? null
      const at = estimateSendTime(since, call)
      yield {
        call,
        ...read,
        at,
        flat,
        prefix,
        settings,
        lastRewriteId,
        recordsSincePrevious: since,
      }
      since = []
    }
    since.push(read)
    settings = readSettings(read)
    prefix = updatePrefix(read.record, prefix)
    session = appendRecordAsIs(session, read.record, read.line)
  }
  onEnd?.({ session, view: updateContextView(view, session) })
}

/**
 * Estimates when the request was sent: at the time of the newest user message or attachment before the response; if
 * there is none, at the time of the response.
 */
function estimateSendTime(since: readonly RecordWithLine[], call: LoggedCall): number {
  const parseTime = (text: unknown): number => (typeof text === 'string' ? Date.parse(text) || 0 : 0)
  const answeredAt = parseTime(call.at)
  const inputs = since.filter(({ record }) => record.type === 'user' || record.type === 'attachment')
  const newest = inputs
    .map(({ record }) => parseTime(record.timestamp))
    .filter((time) => time <= answeredAt)
    .reduce((most, time) => Math.max(most, time), 0)
  return newest === 0 ? answeredAt : newest
}

/**
 * Returns the prefix (system prompt, tools and parameters) after a log record. In Tidemark logs, an `epoch` record
 * contains the whole prefix, and a `delta` record contains changed parameters.
 */
function updatePrefix(record: SessionRecord, before: LoggedPrefix): LoggedPrefix {
  const { epoch, delta } = record as { readonly epoch?: PrefixSnapshot; readonly delta?: PrefixUpdate }
  if (record.type !== 'system') return before
  if (!Array.isArray(epoch?.tools) || !Array.isArray(epoch.sections)) {
    const changes = delta?.parameters
    if (before.parameters === null || !isObject(changes)) return before
    return { ...before, parameters: applyParameterChanges(before.parameters, changes as JsonObject) }
  }
  return {
    parameters: isObject(epoch.parameters) ? epoch.parameters : null,
    tools: epoch.tools.map((tool, index) => ({
      name: String(tool.name ?? index),
      text: JSON.stringify(tool),
    })),
    system: epoch.sections.map(({ name, text }) => ({ name, text })),
  }
}

/**
 * Converts a logged call to a request that the cache monitor can compare with the previous one. It contains all
 * messages, as much of system prompt, tools and parameters as was logged, and one cache marker at the end.
 */
export function toSentRequest(
  {
    call,
    at,
    flat,
    prefix: { parameters, ...front },
    lifetime,
  }: Pick<ReplayedRequest, 'call' | 'at' | 'flat' | 'prefix'> & { readonly lifetime: CacheTtl },
  { spelling }: Pick<ProviderProfile, 'spelling'>,
): SentRequest {
  const logged = { model: call.model, ...spelling.readCacheParameters(parameters ?? {}) }
  // Usage without a speed and usage with the speed `standard` mean the same: a request that asked for no other speed.
  const speed = call.usage?.terms?.speed ?? logged.speed
  // Hosts place a cache marker at the end of the messages, on the last block that is not thinking.
  const { frozen, tail } = flat
  const last = toBlocks((tail.at(-1) ?? frozen.last)?.message.content ?? [])
  const block = Math.max(
    0,
    last.findLastIndex((each) => !isThinkingBlock(each)),
  )
  return {
    source: nameCallSource(call),
    at,
    ...front,
    messages: flat,
    parameters: { ...logged, speed: speed === 'standard' ? undefined : speed },
    markers: [{ zone: 'messages', index: frozen.length + tail.length - 1, block, ...lifetime }],
  }
}

/** Returns the name under which the cache monitor keeps the requests of one conversation apart from those of others. */
export function nameCallSource({ agent }: LoggedCall): string {
  return agent === null ? 'repl_main_thread' : `agent:${agent}`
}

/** The thinking settings of a turn, as Claude Code logs them with each prompt. */
export interface LoggedThinkingSettings {
  /** The logged settings as JSON text; null if none were logged. */
  readonly thinking: string | null
  readonly isSkill: boolean
  /** The line of the log that records the settings; 0 before the first prompt. */
  readonly line: number
}

const NO_SETTINGS: LoggedThinkingSettings = { thinking: null, isSkill: false, line: 0 }
const SKILL_TOOL = 'Skill'

/**
 * Creates a function that takes the records in order and returns the thinking settings in force after each record.
 * Claude Code logs no settings when a skill or command starts a turn, or when a skill is loaded during a turn.
 */
function createSettingsReader(): (read: RecordWithLine) => LoggedThinkingSettings {
  const skillCalls = new Set<string>()
  let settings = NO_SETTINGS
  let isAfterCommand = false
  return ({ record, line }) => {
    if (isKnownRecord(record) && record.type === 'assistant')
      for (const block of toBlocks(record.message.content))
        if (isToolUse(block) && block.name === SKILL_TOOL) skillCalls.add(block.id)
    if (record.type !== 'user') return settings
    // Claude Code adds the text of a skill as a user record after the result of the tool call that loaded it.
    const { sourceToolUseID, thinkingMetadata, message } = record as LoggedUserFields
    const isLoaded = typeof sourceToolUseID === 'string' && skillCalls.has(sourceToolUseID)
    const isSkill = record.isMeta === true && (isLoaded || isAfterCommand)
    if (isSkill) settings = { thinking: null, isSkill, line }
    else if (isTypedPrompt(record)) {
      const thinking = isObject(thinkingMetadata) ? JSON.stringify(thinkingMetadata) : null
      settings = { thinking, isSkill, line }
    }
    const content = isObject(message) ? message.content : undefined
    isAfterCommand = typeof content === 'string' && /^\s*<command-(?:name|message)>/.test(content)
    return settings
  }
}

/** Fields of a user record that other programs log; their values are not validated. */
interface LoggedUserFields {
  readonly sourceToolUseID?: unknown
  readonly thinkingMetadata?: unknown
  readonly message?: unknown
}

/** Checks whether a record is text that the user typed, not a tool result. */
function isTypedPrompt(record: SessionRecord): boolean {
  if (!isKnownRecord(record) || record.type !== 'user') return false
  if (toBlocks(record.message.content).some(isToolResult)) return false
  return readUserInputs(record).some(({ kind }) => kind === 'prompt')
}

/** The lifetime of a cache entry, by name and in seconds. */
export type CacheTtl = Pick<SentMarker, 'ttl' | 'seconds'>

const HOUR: CacheTtl = { ttl: '1h', seconds: 3600 }
const FIVE_MINUTES: CacheTtl = { ttl: '5m', seconds: 300 }
/**
 * Cache entry lifetime for providers that cache automatically. They do not report a TTL and keep cache entries for five
 * to ten minutes.
 */
const AUTOMATIC: CacheTtl = { ttl: 'some 10 minutes', seconds: 600 }

/**
 * Returns the TTL of the cache entries that a call wrote. It is read from the token counts by TTL in the call's usage;
 * otherwise it is the TTL of the previous call, or the model's default. `cache`: cache rules of the model; null if the
 * catalogue does not have the model.
 */
export function readCacheTtl(
  { usage }: LoggedCall,
  cache: ProviderProfile['cache'] | null,
  before: CacheTtl | null,
): CacheTtl {
  const { writes = { short: 0, long: 0 }, assumed = [] } = usage ?? {}
  const { long, short } = findWriteLifetimes(cache)
  if (writes.long > 0) return long
  if (writes.short > 0 && !assumed.includes('lifetime')) return short
  if (before !== null) return before
  if (cache === null) return writes.short > 0 ? FIVE_MINUTES : AUTOMATIC
  // For providers without cache markers, the profile lists TTLs that an account can choose, but none of them is the default.
  return cache.maxMarkers === 0 ? AUTOMATIC : short
}

/** Returns the lifetimes of the two classes of cache writes; for an unknown model, those that Claude Code uses. */
export function findWriteLifetimes(cache: ProviderProfile['cache'] | null): {
  readonly long: CacheTtl
  readonly short: CacheTtl
} {
  const long = cache?.ttls[0]
  const short = cache?.ttls.find(({ name }) => name === cache.defaultTtl)
  return {
    long: long === undefined ? HOUR : { ttl: long.name, seconds: long.seconds },
    short: short === undefined ? FIVE_MINUTES : { ttl: short.name, seconds: short.seconds },
  }
}

/**
 * Minimum milliseconds between two API calls, because no response arrives faster. Calls with less time between them
 * have the time of logging.
 */
export const MIN_RESPONSE_GAP_MS = 1_000

/**
 * True if the logged times of two successive requests are less than a second apart. They are then the times of logging,
 * and the times of the calls are not known.
 */
export function lacksCallTimes(before: ReplayedRequest | null, now: ReplayedRequest): boolean {
  return before !== null && Math.abs(now.at - before.at) < MIN_RESPONSE_GAP_MS
}
