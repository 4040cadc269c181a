/** Opens a logged session for compaction or undo with the same engine functions that live sessions use. */
import { dirname, resolve } from 'node:path'
import { createToolResultRules } from '@tidemark/core/clearing/tool-result-index'
import { type CompactionResult, commitReviewedDraft } from '@tidemark/core/compaction/commit-draft'
import { planWithLogNotes } from '@tidemark/core/compaction/compact'
import type { CompactionDraft } from '@tidemark/core/compaction/draft'
import {
  type CompactionOptions,
  type CompactionPlan,
  planCompaction,
} from '@tidemark/core/compaction/plan-compaction'
import { prepareDraftForReview } from '@tidemark/core/compaction/prepare-draft'
import type { RefusedRewrite, TurnEvent } from '@tidemark/core/engine/events'
import {
  type CompactionServices,
  type OfferedPrefix,
  readPolicyToolNames,
  type SeparateSummaryModel,
  type TurnHost,
} from '@tidemark/core/engine/host'
import { withPlanningState } from '@tidemark/core/engine/measure-context'
import type { Clock, Journal, Model } from '@tidemark/core/engine/ports'
import { readSessionState, type SessionState } from '@tidemark/core/engine/session-state'
import type { TurnContext } from '@tidemark/core/engine/session-writer'
import { TidemarkError } from '@tidemark/core/errors'
import type { JsonObject } from '@tidemark/core/log/json'
import type { SessionRecord, SnapshotSection } from '@tidemark/core/log/record'
import { createBranchNotesKeeper } from '@tidemark/core/notes/render-notes'
import { createPolicy } from '@tidemark/core/policy/create-policy'
import type { Policy } from '@tidemark/core/policy/policy'
import { computeScaledLimits } from '@tidemark/core/policy/scale-policy'
import type { PlacedSection } from '@tidemark/core/request/system-prompt'
import { createEstimator } from '@tidemark/core/tokens/estimator'
import { type UndoResult, type UndoRewriteOptions, undoRewrite } from '@tidemark/core/turn/undo'
import type { LogContents } from '../logs/read-log.ts'
import type { ModelChoice } from '../models/model-choice.ts'
import { withNeutralReplies } from '../platform/checked-ports.ts'
import { createDeadlines, pauseForEvents, systemClock, systemIds } from '../platform/node-ports.ts'
import { drainEvents } from '../session/events.ts'
import { createLogSources } from '../sources/log-sources.ts'
import { toLogLines, toRecordDrafts } from '../storage/check-records.ts'
import { isSessionId } from '../storage/home-paths.ts'
import type { CompactLogOptions } from './compact-report.ts'
import type { LogModel } from './log-model.ts'

export interface LoggedSession {
  /** The current state of the logged session. `commit` and `undo` replace it with a new state. */
  readonly state: SessionState
  readonly host: TurnHost
  readonly services: CompactionServices
  plan(asked: CompactionOptions): CompactionPlan | RefusedRewrite
  /** Plans a compaction with notes from the log. Null if the session has a model for summaries, or notes cannot be used. */
  planWithNotes(asked: CompactionOptions): Promise<CompactionPlan | null>
  prepare(plan: CompactionPlan): Promise<CompactionDraft | RefusedRewrite>
  commit(draft: CompactionDraft): Promise<CompactionResult>
  undo(asked: UndoRewriteOptions): Promise<UndoResult>
}

/**
 * Opens a logged session. `parts.journal` has its records and receives the new ones; `parts.note` gets the events of
 * `prepare`, `commit` and `undo`. A compaction attaches files, the todo list and the plan again, with their last state
 * in the log.
 */
export async function openLoggedSession(
  log: LogContents,
  options: CompactLogOptions,
  parts: { readonly model: LogModel; readonly journal: Journal; readonly note: (event: TurnEvent) => void },
): Promise<LoggedSession> {
  const { ledger, signal, clock = systemClock, ids = systemIds } = options
  const { model, journal, note } = parts
  const path = resolve(log.path)
  const transcript = options.transcript === undefined ? path : resolve(options.transcript)
  const choice = options.summariser?.(model.id) ?? null
  const policy = createPolicy({
    compact: {
      chain: { local: choice === null ? 'only' : 'last' },
      maximumPercentOfReplaced: options.maximumPercent ?? DEFAULT_MAXIMUM_PERCENT,
    },
    ...(ledger === undefined ? {} : { ledger: { namesTokens: ledger } }),
  })
  const state = await readSessionState(journal, findSessionId(log, transcript))
  const estimator = createEstimator(model.weights(policy.estimate))
  const scaled = computeScaledLimits(policy, model)
  const { largeInput } = scaled.budgets.clear
  const isOwn = log.format === 'tidemark'
  const cwd = log.meta.cwd === null ? {} : { cwd: log.meta.cwd }
  const fromDisk = isOwn && options.at === undefined
  const room: CompactionServices = {
    estimator,
    scaled,
    rules: createToolResultRules({ estimator, policy: policy.clear, largeInput }),
    deadlines: createDeadlines(clock),
    retrieval: { historyTool: null, transcript },
    sources: createLogSources(state, { folder: log.meta.cwd, fromDisk, path, isOwn }),
    ...(choice === null ? {} : { summaryModel: connectSummarizer(choice, clock, policy) }),
  }
  const host = createLogHost({ journal, clock, ids, policy, compaction: room }, model, state)
  const run: TurnContext = { state: withPlanningState(state, host), host, signal }
  const onEvent = (event: TurnEvent): void => {
    note(event)
    options.onEvent?.(event)
  }
  return {
    get state() {
      return run.state
    },
    host,
    services: room,
    plan: (asked) => planCompaction(run.state, asked, host),
    planWithNotes: async (asked) =>
      choice === null
        ? planWithLogNotes(
            run,
            asked,
            createBranchNotesKeeper({ ...cwd, tools: readPolicyToolNames(policy) }),
          )
        : null,
    prepare: (plan) => drainEvents({ events: prepareDraftForReview(run, plan), onEvent }),
    commit: (draft) => drainEvents({ events: commitReviewedDraft(run, draft), onEvent }),
    undo: (asked) => drainEvents({ events: undoRewrite(run, asked), onEvent }),
  }
}

/** A result above half of what it replaces is not worth writing, unless the caller allows more. */
const DEFAULT_MAXIMUM_PERCENT = 50

function connectSummarizer(choice: ModelChoice, clock: Clock, policy: Policy): SeparateSummaryModel {
  const { id, profile, window, maxOutput } = choice
  const scaled = computeScaledLimits(policy, { window, maxOutput })
  const outputTokens = scaled.known ? scaled.summaryOutput : policy.compact.direct.outputTokens
  const port = withNeutralReplies(choice.connect({ clock, network: policy.turn.network }))
  return { model: port, summariser: { model: id, profile, window, outputTokens } }
}

function createLogHost(
  parts: Pick<TurnHost, 'journal' | 'clock' | 'ids' | 'policy'> & { readonly compaction: CompactionServices },
  model: LogModel,
  state: SessionState,
): TurnHost {
  const { sections, offered } = readLogPrefix(state)
  const present = offered ?? { tools: [], model: model.id, parameters: {} }
  return {
    ...parts,
    pause: pauseForEvents,
    model: parts.compaction.summaryModel?.model ?? MISSING_MODEL,
    profile: model.profile,
    source: 'sdk',
    isInteractive: false,
    pricesOf: model.pricesOf,
    sections,
    readOfferedPrefix: () => present,
    runTool: ({ name }) => ({ content: `The tool ${name} is not connected.`, is_error: true }),
  }
}

/** Stands in for the model and must never be called: without a summary model, only local summaries are allowed. */
const MISSING_MODEL: Model = {
  stream() {
    throw new TidemarkError('bad-option', 'A model was called although none was given.')
  },
}

/** Returns the session id: the log's file name if it is a valid id, otherwise the id recorded in the log. */
function findSessionId({ meta }: LogContents, path: string): string {
  const name = path.slice(dirname(path).length + 1).replace(/\.jsonl(?:\.(?:gz|zst))?$/i, '')
  return isSessionId(name) ? name : (meta.sessionId ?? 'session')
}

// System prompt, tools and parameters are read from the log, because the program that ran the session is not available.

/**
 * Reads the system prompt, tools and parameters that were last recorded in the log. `offered` is null if the log does
 * not record tools and parameters.
 */
function readLogPrefix({ prefix }: SessionState): {
  readonly sections: readonly PlacedSection[]
  readonly offered: OfferedPrefix | null
} {
  const { current } = prefix
  if (current === null) return { sections: [], offered: null }
  const { epoch, parameters } = current
  const { sections, model } = epoch
  const tools = listCurrentTools(epoch.tools, prefix.tools)
  return { sections: listCurrentSections(sections, prefix.sections), offered: { tools, model, parameters } }
}

type Told = SessionState['prefix']

function listCurrentSections(
  sections: readonly SnapshotSection[],
  changed: Told['sections'],
): readonly PlacedSection[] {
  const known = new Set(sections.map(({ name }) => name))
  const added = [...changed].flatMap(([name, text]): readonly SnapshotSection[] =>
    known.has(name) || text === null ? [] : [{ name, text, part: 'dynamic' }],
  )
  return [...sections, ...added].map(({ name, part, text }) => ({
    name,
    part,
    compute: () => (changed.has(name) ? (changed.get(name) ?? null) : text),
    volatileBecause: part === 'volatile' ? 'as the log has it' : null,
  }))
}

function listCurrentTools(tools: readonly JsonObject[], changed: Told['tools']): readonly JsonObject[] {
  const kept = tools.filter(({ name }) => !changed.has(String(name)))
  const added = [...changed.values()].flatMap(({ definition }) => (definition === null ? [] : [definition]))
  return changed.size === 0 ? tools : [...kept, ...added]
}

// An in-memory journal (log store) that holds the records of a log and collects the records appended to it.

export interface ScratchJournal extends Journal {
  /** The JSONL text of the appended records; each line ends with a newline. */
  readonly added: string
}

/**
 * Creates an in-memory journal that contains one session. It ignores session ids: every id gives the records of that
 * session.
 */
export function createScratchJournal(read: readonly SessionRecord[]): ScratchJournal {
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
      const { text, records: stamped } = toLogLines(toRecordDrafts(given), position)
      records.push(...stamped)
      added += text
      return { ok: true, position: records.length, records: stamped }
    },
    list: async () => [],
    release: async () => {},
  }
}
