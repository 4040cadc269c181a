/** Sessions of the engine for tests: a scripted model, a log to start from, and every event that was emitted. */

import {
  createFakeClock,
  createFakeJournal,
  createFakeModel,
  createTestCompaction,
  createTestHost,
  type FakeReply,
  runSingleTurn,
  runToEnd,
  SessionBuilder,
  type SingleTurnOptions,
} from '@tidemark/core/testing'
import { defineMessagesProfile } from '@tidemark/wire/profiles/provider-profile'
import { createToolResultRules } from '../../src/clearing/tool-result-index.ts'
import type { CompactionResult } from '../../src/compaction/commit-draft.ts'
import { compact } from '../../src/compaction/compact.ts'
import type { CompactionOptions } from '../../src/compaction/plan-compaction.ts'
import { toApiMessages } from '../../src/context/flatten-context.ts'
import type { TurnEvent, TurnOutcome } from '../../src/engine/events.ts'
import type { CompactionServices, TurnHost } from '../../src/engine/host.ts'
import type { Deadlines, Journal, ModelStreamInput, Signal } from '../../src/engine/ports.ts'
import { readSessionState, type SessionState } from '../../src/engine/session-state.ts'
import type { TurnContext } from '../../src/engine/session-writer.ts'
import { type Block, toBlocks } from '../../src/log/block.ts'
import { isKnownRecord, type SessionRecord } from '../../src/log/record.ts'
import { createPolicy } from '../../src/policy/create-policy.ts'
import type { Policy } from '../../src/policy/policy.ts'
import type { DeepPartial } from '../../src/policy/policy-fields.ts'
import type { ProviderProfile } from '../../src/policy/provider-profile.ts'
import type { ContextSource } from '../../src/sources/context-source.ts'
import { type UndoResult, undoRewrite } from '../../src/turn/undo.ts'
import { ESTIMATOR } from '../clear/situation.ts'

export function reply(...blocks: readonly Block[]): FakeReply {
  return { blocks }
}

export function text(words: string): Block {
  return { type: 'text', text: words }
}

export function toolCall(id: string, name = 'Read'): Block {
  return { type: 'tool_use', id, name, input: {} }
}

export interface ScriptedHost {
  readonly host: TurnHost
  /** Every call to the model so far. */
  readonly asked: readonly ModelStreamInput[]
}

/** A host whose model gives these replies, then `Done.` for ever. */
export function createScriptedHost(
  replies: readonly FakeReply[],
  changes: Partial<TurnHost> = {},
  journal: Journal = createFakeJournal(),
): ScriptedHost {
  const model = createFakeModel(replies)
  return { host: createTestHost({ journal, model, ...changes }), asked: model.calls }
}

/** One turn: its events and its outcome. */
export async function playTurn(
  state: SessionState,
  asked: SingleTurnOptions,
  host: TurnHost,
): Promise<{ readonly events: readonly TurnEvent[]; readonly outcome: TurnOutcome }> {
  const events: TurnEvent[] = []
  const outcome = await runToEnd(runSingleTurn(state, asked, host), (event) => void events.push(event))
  return { events, outcome }
}

/** Work that does not end by itself times out as soon as everything else has been done. */
export const deadlines: Deadlines = {
  within: async (_, work, signal) => {
    if (signal?.aborted === true) return { ok: false, why: 'aborted' }
    const inner = { aborted: false }
    const late = new Promise<'late'>((resolve) => setTimeout(() => resolve('late')))
    const done = work(inner).then((value) => ({ value }))
    done.catch(() => {})
    const end = await Promise.race([done, late])
    inner.aborted = true
    if (end !== 'late') return { ok: true, value: end.value }
    return { ok: false, why: isAborted(signal) ? 'aborted' : 'timeout' }
  },
}

function isAborted(signal: Signal | undefined): boolean {
  return signal?.aborted === true
}

/** What a present-day provider takes. */
export const LENIENT: ProviderProfile = defineMessagesProfile({
  roles: { consecutive: 'merged', prefill: 'allowed', system: 'placed' },
  thinking: { closing: 'not-at-end', firstInModes: [], binding: 'none' },
})

/** The same where thinking is bound to everything before it. */
export const BOUND: ProviderProfile = defineMessagesProfile({
  roles: { consecutive: 'merged', prefill: 'allowed', system: 'placed' },
  thinking: { closing: 'not-at-end', firstInModes: [], binding: 'prefix' },
})

const OPEN_ROLES = { first: 'any', consecutive: 'merged', prefill: 'allowed' } as const
const OPAQUE_THINKING = { signed: false, closing: 'allowed', firstInModes: [], unforcedInModes: [] } as const
const OWN_CACHE = { kind: 'prefix', maxMarkers: 0, softSeconds: 300, stepTokens: 128 } as const

/** The rules of each provider that has a codec, in the words of one: laws of the engine are drawn with any of them. */
export const PROVIDER_RULES: Readonly<Record<string, ProviderProfile>> = {
  messages: LENIENT,
  responses: defineMessagesProfile({
    maxOutputRequired: false,
    roles: { ...OPEN_ROLES, system: 'placed' },
    tools: { declaredWhenUsed: false },
    thinking: { ...OPAQUE_THINKING, binding: 'model' },
    cache: { kind: 'breakpoints', automatic: true },
  }),
  chat: defineMessagesProfile({
    maxOutputRequired: false,
    roles: { ...OPEN_ROLES, system: 'refused' },
    tools: { declaredWhenUsed: false },
    thinking: { ...OPAQUE_THINKING, binding: 'none' },
    cache: OWN_CACHE,
  }),
  madeUp: defineMessagesProfile({
    roles: { first: 'user', consecutive: 'refused', prefill: 'allowed', system: 'refused' },
    thinking: { ...OPAQUE_THINKING, closing: 'not-at-end', binding: 'none' },
    cache: { ...OWN_CACHE, softSeconds: null, stepTokens: 64, minimumTokens: 256 },
  }),
}

export interface TestSessionOptions {
  readonly policy?: DeepPartial<Policy>
  readonly profile?: ProviderProfile
  readonly window?: number
  readonly room?: Partial<CompactionServices>
  readonly host?: Partial<TurnHost>
  readonly replies?: readonly FakeReply[]
  /** Summaries are written by the model instead of being `SUMMARY`. */
  readonly byChain?: boolean
}

export interface TestSession extends ScriptedHost {
  readonly room: CompactionServices
  readonly run: TurnContext
  readonly events: TurnEvent[]
}

export const SESSION = 'told'
export const SUMMARY = 'Summary:\nThe login was looked at and mended.'

const OWN = ['Read', 'Bash', 'Edit', 'Write', 'TodoWrite'].map((name) => ({
  name,
  input_schema: { type: 'object' },
}))

/** Every tool that generated sessions call. */
export const TOOLS = [...OWN, { type: 'search_1', name: 'web_search' }]

/** A session that starts with these records in its log. */
export async function openTestSession(
  records: readonly SessionRecord[],
  options: TestSessionOptions = {},
): Promise<TestSession> {
  const policy = createPolicy(options.policy ?? {})
  const { clear } = policy
  const room = createTestCompaction(
    { policy, estimator: ESTIMATOR, ...(options.window === undefined ? {} : { window: options.window }) },
    {
      rules: createToolResultRules({
        estimator: ESTIMATOR,
        policy: clear,
        largeInput: clear.largeInputTokens,
      }),
      deadlines,
      ...(options.byChain === true ? {} : { writeSummary: async () => SUMMARY }),
      ...options.room,
    },
  )
  const { host, asked } = createScriptedHost(
    options.replies ?? [],
    {
      policy,
      profile: options.profile ?? LENIENT,
      clock: createFakeClock(Date.UTC(2026, 5, 1)),
      compaction: room,
      readOfferedPrefix: () => ({ tools: TOOLS, model: 'model-a', parameters: { max_tokens: 100 } }),
      ...options.host,
    },
    createJournalWith(records),
  )
  const state = await readSessionState(host.journal, SESSION)
  return { host, asked, room, run: { state, host, signal: undefined }, events: [] }
}

export function createJournalWith(records: readonly SessionRecord[]): Journal {
  const lines = records.map((record) => JSON.stringify(record))
  return createFakeJournal(new Map([[SESSION, { lines, holder: null }]]))
}

/** Runs an act of the engine to its end; its events are added to those of the session. */
export function perform<End>(session: TestSession, act: AsyncGenerator<TurnEvent, End>): Promise<End> {
  return runToEnd(act, (event) => void session.events.push(event))
}

/** Changes services of a session that is open. Returns the session. */
export function changeRoom(session: TestSession, changes: Partial<CompactionServices>): TestSession {
  const room = { ...session.room, ...changes }
  const { run } = session
  run.host = { ...run.host, compaction: room }
  return { ...session, room, host: run.host }
}

export function compactNow(
  session: TestSession,
  asked: Partial<CompactionOptions> = {},
): Promise<CompactionResult> {
  return perform(session, compact(session.run, { trigger: 'manual', cause: 'person', ...asked }))
}

export function undoNow(session: TestSession, id?: string): Promise<UndoResult> {
  return perform(session, undoRewrite(session.run, id === undefined ? {} : { id }))
}

/** The state of the session as it is read from its log. */
export function reopen({ host }: TestSession): Promise<SessionState> {
  return readSessionState(host.journal, SESSION)
}

/** A carrier of one text: the one that `source` has at the time. */
export function textCarrier(
  name: string,
  source: { text: string },
  more: Partial<ContextSource> = {},
): ContextSource {
  return {
    name,
    kind: 'host',
    tellsChanges: false,
    isWhole: true,
    limit: () => null,
    render: async function* () {
      yield { id: '', attachment: { type: name, content: source.text }, source: 'memory' }
    },
    ...more,
  }
}

/** A call, a result of about so many tokens, and an answer. */
export function addLargeRound(builder: SessionBuilder, tokens: number, thinks = false): void {
  const id = builder.id('call')
  const path = `/src/${id}.ts`
  const thinking = (): readonly Block[] =>
    thinks ? [{ type: 'thinking', thinking: 'hm', signature: builder.id('sig') }] : []
  builder.assistant(builder.id('msg'), [
    ...thinking(),
    { type: 'tool_use', id, name: 'Read', input: { file_path: path } },
  ])
  builder.result(id, 'abc '.repeat(tokens))
  builder.assistant(builder.id('msg'), [...thinking(), { type: 'text', text: `read ${path}` }])
}

/** A prompt and so many large rounds. */
export function buildRounds(rounds = 3, tokens = 2_000, thinks = false): SessionBuilder {
  const builder = new SessionBuilder(SESSION)
  builder.user('look at the login')
  for (let round = 0; round < rounds; round += 1) addLargeRound(builder, tokens, thinks)
  return builder
}

export const openRounds = (
  options: TestSessionOptions = {},
  builder: SessionBuilder = buildRounds(),
): Promise<TestSession> => openTestSession(builder.records, options)

/** Everything that would be sent, as text. */
export const sentText = ({ run }: TestSession): string => JSON.stringify(toApiMessages(run.state.flat))

export const eventsOfType = <T extends TurnEvent['type']>(
  { events }: TestSession,
  type: T,
): readonly Extract<TurnEvent, { type: T }>[] =>
  events.filter((event): event is Extract<TurnEvent, { type: T }> => event.type === type)

/** The log, a line for each record: `user: Go.`, `system epoch`. */
export function logLines({ session }: SessionState): readonly string[] {
  return [...session.records].map(logLine)
}

export function logLine(record: SessionRecord): string {
  if (!isKnownRecord(record)) return record.type
  if (record.type === 'system') return `system ${record.subtype}`
  if (record.type !== 'user' && record.type !== 'assistant') return record.type
  const said = toBlocks(record.message.content).map((block) => block.text ?? block.content ?? block.id)
  return `${record.type}: ${said.join(' | ')}`
}
