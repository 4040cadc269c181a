/** The session of a log, opened so that it can be compacted: the engine's own machinery on whatever journal holds it. */

import { dirname, resolve } from 'node:path'
import {
  type Carrier,
  type Clock,
  type Committed,
  type CompactAsked,
  type CompactionDraft,
  type CompactionPlan,
  commitCompaction,
  createEstimator,
  createPolicy,
  type DeepPartial,
  type EpochSection,
  type Ids,
  type Journal,
  type JsonObject,
  type Model,
  type Offered,
  type OtherSummariser,
  openSession,
  type PlacedSection,
  type Policy,
  planCompaction,
  prepareCompaction,
  type RewriteRefused,
  type Room,
  registerRules,
  type SessionRecord,
  type SessionState,
  scalePolicy,
  TidemarkError,
  type TurnEvent,
  type TurnHost,
  type TurnRun,
  type UndoAsked,
  type Undone,
  undoAct,
} from '@tidemark/core'
import type { ReadLog } from '../logs/read-session.ts'
import type { ModelChoice } from '../models/model-choice.ts'
import { createDeadlines, systemClock, systemIds } from '../platform/node-ports.ts'
import { drain } from '../session/events.ts'
import { draftsOf, stamp } from '../storage/new-records.ts'
import { isSessionId } from '../storage/paths.ts'
import type { CompactLogOptions } from './compact-report.ts'
import type { LogModel } from './log-model.ts'
import { logCarriers } from './log-sources.ts'

export interface LogSessionOptions {
  readonly journal: Journal
  readonly id: string
  readonly model: LogModel
  /** Who writes the summary; null: it is made without a model. */
  readonly summariser: ModelChoice | null
  /** Tokens of the ledger of names. */
  readonly ledger?: number
  readonly carriers: (state: SessionState) => readonly Carrier[]
  /** Where the whole conversation can be read; null where the model cannot. */
  readonly transcript: string | null
  readonly clock: Clock
  readonly ids: Ids
  readonly signal?: AbortSignal
  readonly onEvent: (event: TurnEvent) => void
}

export interface LogSession {
  /** As it is now. */
  readonly state: SessionState
  readonly host: TurnHost
  readonly room: Room
  plan(asked: CompactAsked): CompactionPlan | RewriteRefused
  prepare(plan: CompactionPlan): Promise<CompactionDraft | RewriteRefused>
  commit(draft: CompactionDraft): Promise<Committed>
  undo(asked: UndoAsked): Promise<Undone>
}

export async function openLogSession(options: LogSessionOptions): Promise<LogSession> {
  const { journal, id, signal, onEvent } = options
  const state = await openSession(journal, id)
  const policy = createPolicy(policyOf(options))
  const room = roomOf(options, policy, state)
  const host = hostOf(options, policy, { state, room })
  const run: TurnRun = { state, host, signal }
  return {
    get state() {
      return run.state
    },
    host,
    room,
    plan: (asked) => planCompaction(run.state, asked, { host, room }),
    prepare: (plan) => drain({ events: prepareCompaction(run, room, plan), onEvent }),
    commit: (draft) => drain({ events: commitCompaction(run, room, draft), onEvent }),
    undo: (asked) => drain({ events: undoAct(run, room, asked), onEvent }),
  }
}

function policyOf({ summariser, ledger }: LogSessionOptions): DeepPartial<Policy> {
  return {
    compact: { chain: { local: summariser === null ? 'only' : 'last' } },
    ...(ledger === undefined ? {} : { ledger: { namesTokens: ledger } }),
  }
}

function roomOf(options: LogSessionOptions, policy: Policy, state: SessionState): Room {
  const { model, clock, transcript, carriers } = options
  const estimator = createEstimator(model.weights(policy.estimate))
  const scaled = scalePolicy(policy, model)
  const { largeInput } = scaled.budgets.clear
  const summariser = summariserOf(options, policy)
  return {
    estimator,
    scaled,
    rules: registerRules({ estimator, policy: policy.clear, largeInput }),
    deadlines: createDeadlines(clock),
    retrieval: { historyTool: null, transcript },
    carriers: carriers(state),
    ...(summariser === null ? {} : { summariser }),
  }
}

function summariserOf(
  { summariser: choice, clock }: LogSessionOptions,
  policy: Policy,
): OtherSummariser | null {
  if (choice === null) return null
  const { id: model, profile, window, maxOutput } = choice
  const scaled = scalePolicy(policy, { window, maxOutput })
  const outputTokens = scaled.known ? scaled.summaryOutput : policy.compact.direct.outputTokens
  const port = choice.connect({ clock, network: policy.turn.network })
  return { port, summariser: { model, profile, window, outputTokens } }
}

interface Fitted {
  readonly state: SessionState
  readonly room: Room
}

function hostOf(options: LogSessionOptions, policy: Policy, { state, room }: Fitted): TurnHost {
  const { journal, model, clock, ids } = options
  const { sections, offered } = prefixOfLog(state)
  const present = offered ?? { tools: [], model: model.id, parameters: {} }
  return {
    journal,
    model: room.summariser?.port ?? NO_MODEL,
    clock,
    ids,
    policy,
    profile: model.profile,
    source: 'sdk',
    isInteractive: false,
    pricesOf: model.pricesOf,
    sections,
    offered: () => present,
    runTool: ({ name }) => ({ content: `The tool ${name} is not connected.`, is_error: true }),
    room,
  }
}

/** Nobody asks it: where the summary is made without a model that is the only way. */
const NO_MODEL: Model = {
  stream() {
    throw new TidemarkError('bad-option', 'A model was asked although none was given.')
  },
}

// Opens the session of a log on a journal, with what comes back when it is compacted.

interface SessionParts {
  readonly model: LogModel
  readonly journal: Journal
  readonly note: (event: TurnEvent) => void
}

export function sessionOn(
  log: ReadLog,
  options: CompactLogOptions,
  { model, journal, note }: SessionParts,
): Promise<LogSession> {
  const { ledger, signal, onEvent, clock = systemClock, ids = systemIds } = options
  const summariser = options.summariser?.(model.id) ?? null
  const path = resolve(log.path)
  const fromDisk = log.format === 'tidemark' && options.at === undefined
  const transcript = options.transcript === undefined ? path : resolve(options.transcript)
  return openLogSession({
    ...{ journal, id: sessionIdOf(log, transcript), model, summariser, clock, ids, transcript },
    ...(ledger === undefined ? {} : { ledger }),
    ...(signal === undefined ? {} : { signal }),
    carriers: (state) => logCarriers(state, { folder: log.meta.cwd, fromDisk, path }),
    onEvent: (event) => {
      note(event)
      onEvent?.(event)
    },
  })
}

/** A log bears the name of its session; one that cannot keeps the id it has. */
function sessionIdOf({ meta }: ReadLog, path: string): string {
  const name = path.slice(dirname(path).length + 1).replace(/\.jsonl(\.gz)?$/, '')
  return isSessionId(name) ? name : (meta.sessionId ?? 'session')
}

// System prompt, tools and parameters as a log says they stand: what a session is compacted with unless its host is there.

export interface LogPrefix {
  readonly sections: readonly PlacedSection[]
  /** Null where the log has none. */
  readonly offered: Offered | null
}

export function prefixOfLog({ told }: SessionState): LogPrefix {
  const { standing } = told
  if (standing === null) return { sections: [], offered: null }
  const { epoch, parameters } = standing
  const { sections, model } = epoch
  const tools = toolsNow(epoch.tools, told.tools)
  return { sections: sectionsNow(sections, told.sections), offered: { tools, model, parameters } }
}

type Told = SessionState['told']

function sectionsNow(sections: readonly EpochSection[], changed: Told['sections']): readonly PlacedSection[] {
  const known = new Set(sections.map(({ name }) => name))
  const added = [...changed].flatMap(([name, text]): readonly EpochSection[] =>
    known.has(name) || text === null ? [] : [{ name, text, part: 'dynamic' }],
  )
  return [...sections, ...added].map(({ name, part, text }) => ({
    name,
    part,
    compute: () => (changed.has(name) ? (changed.get(name) ?? null) : text),
    volatileBecause: part === 'volatile' ? 'as the log has it' : null,
  }))
}

function toolsNow(tools: readonly JsonObject[], changed: Told['tools']): readonly JsonObject[] {
  const kept = tools.filter(({ name }) => !changed.has(String(name)))
  const added = [...changed.values()].flatMap(({ definition }) => (definition === null ? [] : [definition]))
  return changed.size === 0 ? tools : [...kept, ...added]
}

// A log that was read, as a journal of its own: what is appended stands behind it in memory, ready to be written out.

export interface LogJournal extends Journal {
  /** The lines that were appended, each with its newline. */
  readonly added: string
}

/** Of one session, whatever it is called. */
export function createLogJournal(read: readonly SessionRecord[]): LogJournal {
  const records = [...read]
  let added = ''
  return {
    get added() {
      return added
    },
    async read(_session, visit, from = 0) {
      if (records.length > from) visit(records.slice(from))
      return { exists: true, position: records.length, damage: [] }
    },
    async append(_session, after, given) {
      const position = records.length
      if (after !== position) return { ok: false, reason: 'conflict', position }
      const { text, records: stamped } = stamp(draftsOf(given), position)
      records.push(...stamped)
      added += text
      return { ok: true, position: records.length, records: stamped }
    },
    list: async () => [],
    release: async () => {},
  }
}
