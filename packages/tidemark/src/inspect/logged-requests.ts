/** A conversation told again from its log, call by call: what each request sent, and what was written since the last. */
import {
  advance,
  type Block,
  blocksOf,
  type Delta,
  type Epoch,
  emptySession,
  emptyView,
  type Flat,
  flatten,
  isKnown,
  isObject,
  isThinking,
  isToolResult,
  isToolUse,
  type JsonObject,
  mergeParameters,
  type Profile,
  reduce,
  type SentMarker,
  type SentRequest,
  type SessionRecord,
  sentParameters,
  typedText,
} from '@tidemark/core'
import type { ReadRecord } from '@tidemark/wire'
import { type Call, keyOf } from './calls.ts'

export interface Moment {
  readonly call: Call
  /** Of the first record of the response. */
  readonly line: number
  readonly record: SessionRecord
  /** When the request was sent, in milliseconds, as near as the log tells; 0 where it does not. */
  readonly at: number
  readonly flat: Flat
  readonly prefix: Prefix
  readonly settings: TurnSettings
  /** The act that the view last went through; null for none. */
  readonly act: string | null
  /** From the first record of the response before up to this one. */
  readonly since: readonly ReadRecord[]
}

/** Calls of which the log has no usage are passed over: nothing is known of what they read. */
export function* momentsOf(records: readonly ReadRecord[], calls: readonly Call[]): Generator<Moment> {
  const waiting = new Map(calls.filter(({ usage }) => usage !== null).map((call) => [call.key, call]))
  const settings = createSettingsReader()
  let session = emptySession()
  let view = emptyView()
  let flat = flatten(view)
  let prefix = UNTOLD_PREFIX
  let since: ReadRecord[] = []
  for (const read of records) {
    const key = keyOf(read.record)
    const call = key === null ? undefined : waiting.get(key)
    if (call !== undefined && key !== null) {
      waiting.delete(key)
      view = advance(view, session)
      flat = flatten(view, flat)
      const act = view.acts.at(-1)?.uuid ?? null
      const shared = { call, ...read, flat, prefix, settings: settings.standing, act, since }
      yield { ...shared, at: sentAt(since, call) }
      since = []
    }
    since.push(read)
    settings.take(read)
    prefix = prefixBy(read.record, prefix)
    session = reduce(session, read.record)
  }
}

const SAID = new Set(['user', 'attachment'])

/** The newest thing said before the response began, and no later than that. */
function sentAt(since: readonly ReadRecord[], call: Call): number {
  const answered = timeOf(call.at) ?? 0
  const said = since.flatMap(({ record }) => (SAID.has(record.type) ? (momentOf(record) ?? []) : []))
  const newest = said.filter((time) => time <= answered).reduce((most, time) => Math.max(most, time), 0)
  return newest === 0 ? answered : newest
}

function momentOf({ timestamp }: SessionRecord): number | null {
  return typeof timestamp === 'string' ? timeOf(timestamp) : null
}

function timeOf(text: string): number | null {
  const time = Date.parse(text)
  return Number.isNaN(time) ? null : time
}

// A request as far as a log shows it: the messages in full, of what stands in front of them what is written down.

export interface Prefix extends Pick<SentRequest, 'tools' | 'system'> {
  /** Null where the log does not tell. */
  readonly parameters: JsonObject | null
}

export const UNTOLD_PREFIX: Prefix = { tools: [], system: [], parameters: null }

/** Our own logs say with each epoch what the prefix is made of, and with a delta which parameters are others since. */
export function prefixBy(record: SessionRecord, before: Prefix): Prefix {
  const { epoch, delta } = record as { readonly epoch?: Epoch; readonly delta?: Delta }
  if (record.type !== 'system') return before
  if (!Array.isArray(epoch?.tools) || !Array.isArray(epoch.sections)) return changedBy(delta, before)
  return {
    parameters: isObject(epoch.parameters) ? epoch.parameters : null,
    tools: epoch.tools.map((tool, index) => ({
      name: String(tool.name ?? index),
      text: JSON.stringify(tool),
    })),
    system: epoch.sections.map(({ name, text }) => ({ name, text })),
  }
}

function changedBy(delta: Delta | undefined, before: Prefix): Prefix {
  const { parameters } = before
  const changes = delta?.parameters
  if (parameters === null || !isObject(changes)) return before
  return { ...before, parameters: mergeParameters(parameters, changes as JsonObject) }
}

export interface LoggedRequest {
  readonly call: Call
  readonly at: number
  readonly flat: Flat
  readonly prefix: Prefix
  readonly lifetime: Lifetime
}

export function sentFromLog({ call, at, flat, prefix, lifetime }: LoggedRequest): SentRequest {
  const { parameters, ...front } = prefix
  const told = sentParameters(call.model, parameters ?? {})
  const speed = call.usage?.speed
  return {
    source: sourceOf(call),
    at,
    ...front,
    messages: flat,
    parameters: typeof speed === 'string' ? { ...told, speed } : told,
    markers: [{ zone: 'messages', ...tailOf(flat), ...lifetime }],
  }
}

export function sourceOf({ agent }: Call): string {
  return agent === null ? 'repl_main_thread' : `agent:${agent}`
}

/** Where every host puts a marker: at the end. */
function tailOf({ frozen, tail }: Flat): Pick<SentMarker, 'index' | 'block'> {
  const index = frozen.length + tail.length - 1
  const last = tail.at(-1) ?? frozen.last
  const blocks: readonly Block[] = blocksOf(last?.message.content ?? [])
  return {
    index,
    block: Math.max(
      0,
      blocks.findLastIndex((block) => !isThinking(block)),
    ),
  }
}

// The thinking settings a turn ran with, as far as a log of Claude Code shows them: it writes them beside each
// prompt, and none where a skill or a command starts the turn or is loaded in the middle of it.

export interface TurnSettings {
  /** As logged; null where none are. */
  readonly thinking: string | null
  readonly isSkill: boolean
  /** The line that says so; 0 before the first. */
  readonly line: number
}

export interface SettingsReader {
  take(read: ReadRecord): void
  readonly standing: TurnSettings
}

const SKILL_TOOL = 'Skill'

export function createSettingsReader(): SettingsReader {
  const skillCalls = new Set<string>()
  let standing: TurnSettings = { thinking: null, isSkill: false, line: 0 }
  let isAfterCommand = false
  return {
    take({ record, line }) {
      for (const id of skillCallsIn(record)) skillCalls.add(id)
      if (record.type !== 'user') return
      const isSkill = isSkillText(record, skillCalls) || (isAfterCommand && record.isMeta === true)
      if (isSkill) standing = { thinking: null, isSkill: true, line }
      else if (isPrompt(record)) standing = { thinking: thinkingOf(record), isSkill: false, line }
      isAfterCommand = isCommand(record)
    },
    get standing() {
      return standing
    },
  }
}

function skillCallsIn(record: SessionRecord): readonly string[] {
  if (!isKnown(record) || record.type !== 'assistant') return []
  return blocksOf(record.message.content)
    .filter(isToolUse)
    .filter(({ name }) => name === SKILL_TOOL)
    .map(({ id }) => id)
}

/** The text of a skill, which the host puts behind the result of the call that asked for it. */
function isSkillText(record: SessionRecord, skillCalls: ReadonlySet<string>): boolean {
  const { sourceToolUseID } = record as { readonly sourceToolUseID?: unknown }
  return record.isMeta === true && typeof sourceToolUseID === 'string' && skillCalls.has(sourceToolUseID)
}

/** Words of the person that answer no call. */
function isPrompt(record: SessionRecord): boolean {
  return (
    typedText(record) !== null &&
    isKnown(record) &&
    record.type === 'user' &&
    !answers(record.message.content)
  )
}

function answers(content: Parameters<typeof blocksOf>[0]): boolean {
  return blocksOf(content).some(isToolResult)
}

function isCommand(record: SessionRecord): boolean {
  const { message } = record as { readonly message?: unknown }
  const content = isObject(message) ? message.content : undefined
  return typeof content === 'string' && /^\s*<command-(?:name|message)>/.test(content)
}

function thinkingOf(record: SessionRecord): string | null {
  const { thinkingMetadata } = record as { readonly thinkingMetadata?: unknown }
  return isObject(thinkingMetadata) ? JSON.stringify(thinkingMetadata) : null
}

// How long entries of a cache live, by what the log says was written, else by what is known of the model.

export type Lifetime = Pick<SentMarker, 'ttl' | 'seconds'>

const HOUR: Lifetime = { ttl: '1h', seconds: 3600 }
const FIVE_MINUTES: Lifetime = { ttl: '5m', seconds: 300 }
/** Providers that cache by themselves say nothing of it, and keep an entry for five to ten minutes. */
const UNTOLD: Lifetime = { ttl: 'some 10 minutes', seconds: 600 }

/**
 * The split of what was written says it; a call that wrote nothing, or does not say, leaves it at what it was. At
 * first it is what a marker asks for by default. `cache`: of the model; null for one that nobody has described.
 */
export function lifetimeOf(
  { usage }: Call,
  cache: Profile['cache'] | null,
  before: Lifetime | null,
): Lifetime {
  const written = isObject(usage?.cache_creation) ? usage.cache_creation : {}
  if (isSome(written.ephemeral_1h_input_tokens)) return HOUR
  if (isSome(written.ephemeral_5m_input_tokens)) return FIVE_MINUTES
  if (before !== null) return before
  if (cache !== null) return defaultOf(cache)
  return usage?.cache_creation_input_tokens === undefined ? UNTOLD : FIVE_MINUTES
}

/** Where no marker can be set, what the profile lists is what the account may have bought, and not the rule. */
function defaultOf({ maxMarkers, ttls, defaultTtl }: Profile['cache']): Lifetime {
  const asked = maxMarkers === 0 ? undefined : ttls.find(({ name }) => name === defaultTtl)
  return asked === undefined ? UNTOLD : { ttl: asked.name, seconds: asked.seconds }
}

function isSome(count: unknown): boolean {
  return typeof count === 'number' && count > 0
}
