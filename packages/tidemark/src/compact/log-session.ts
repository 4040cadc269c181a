/** Opens the session of a log for compaction: the engine's own functions on any journal. */

import { dirname, resolve } from 'node:path'
import {
  type Clock,
  type Committed,
  type CompactAsked,
  type CompactionDraft,
  type CompactionPlan,
  commitCompaction,
  createEstimator,
  createPolicy,
  type EpochSection,
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

export interface LogSession {
  /** The current state. */
  readonly state: SessionState
  readonly host: TurnHost
  readonly room: Room
  plan(asked: CompactAsked): CompactionPlan | RewriteRefused
  prepare(plan: CompactionPlan): Promise<CompactionDraft | RewriteRefused>
  commit(draft: CompactionDraft): Promise<Committed>
  undo(asked: UndoAsked): Promise<Undone>
}

/** Opens the session of a log on a journal, with the sources that are re-attached after a compaction. */
export async function sessionOn(
  log: ReadLog,
  options: CompactLogOptions,
  parts: { readonly model: LogModel; readonly journal: Journal; readonly note: (event: TurnEvent) => void },
): Promise<LogSession> {
  const { ledger, signal, clock = systemClock, ids = systemIds } = options
  const { model, journal, note } = parts
  const path = resolve(log.path)
  const transcript = options.transcript === undefined ? path : resolve(options.transcript)
  const choice = options.summariser?.(model.id) ?? null
  const policy = createPolicy({
    compact: { chain: { local: choice === null ? 'only' : 'last' } },
    ...(ledger === undefined ? {} : { ledger: { namesTokens: ledger } }),
  })
  const state = await openSession(journal, sessionIdOf(log, transcript))
  const estimator = createEstimator(model.weights(policy.estimate))
  const scaled = scalePolicy(policy, model)
  const { largeInput } = scaled.budgets.clear
  const fromDisk = log.format === 'tidemark' && options.at === undefined
  const room: Room = {
    estimator,
    scaled,
    rules: registerRules({ estimator, policy: policy.clear, largeInput }),
    deadlines: createDeadlines(clock),
    retrieval: { historyTool: null, transcript },
    carriers: logCarriers(state, { folder: log.meta.cwd, fromDisk, path }),
    ...(choice === null ? {} : { summariser: connectSummarizer(choice, clock, policy) }),
  }
  const host = hostOf({ journal, clock, ids, policy, room }, model, state)
  const run: TurnRun = { state, host, signal }
  const onEvent = (event: TurnEvent): void => {
    note(event)
    options.onEvent?.(event)
  }
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

function connectSummarizer(choice: ModelChoice, clock: Clock, policy: Policy): OtherSummariser {
  const { id: model, profile, window, maxOutput } = choice
  const scaled = scalePolicy(policy, { window, maxOutput })
  const outputTokens = scaled.known ? scaled.summaryOutput : policy.compact.direct.outputTokens
  const port = choice.connect({ clock, network: policy.turn.network })
  return { port, summariser: { model, profile, window, outputTokens } }
}

function hostOf(
  parts: Pick<TurnHost, 'journal' | 'clock' | 'ids' | 'policy'> & { readonly room: Room },
  model: LogModel,
  state: SessionState,
): TurnHost {
  const { sections, offered } = prefixOfLog(state)
  const present = offered ?? { tools: [], model: model.id, parameters: {} }
  return {
    ...parts,
    model: parts.room.summariser?.port ?? NO_MODEL,
    profile: model.profile,
    source: 'sdk',
    isInteractive: false,
    pricesOf: model.pricesOf,
    sections,
    offered: () => present,
    runTool: ({ name }) => ({ content: `The tool ${name} is not connected.`, is_error: true }),
  }
}

/** Never called: without a model the summary is only made locally. */
const NO_MODEL: Model = {
  stream() {
    throw new TidemarkError('bad-option', 'A model was called although none was given.')
  },
}

/** The name of the log is the id of its session, unless it is no valid id. */
function sessionIdOf({ meta }: ReadLog, path: string): string {
  const name = path.slice(dirname(path).length + 1).replace(/\.jsonl(\.gz)?$/, '')
  return isSessionId(name) ? name : (meta.sessionId ?? 'session')
}

// System prompt, tools and parameters from the log, since the session's host is not there.

/** `offered` is null if the log has none. */
function prefixOfLog({ told }: SessionState): {
  readonly sections: readonly PlacedSection[]
  readonly offered: Offered | null
} {
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

// A log that was read, as a journal in memory: appended records can be written out afterwards.

export interface LogJournal extends Journal {
  /** The appended lines, each with its newline. */
  readonly added: string
}

/** A journal with one session, whatever id is asked for. */
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
