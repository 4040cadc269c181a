/** The session of a log, opened so that it can be compacted: the engine's own machinery on whatever journal holds it. */
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
  type Ids,
  type Journal,
  type Model,
  type OtherSummariser,
  openSession,
  type Policy,
  planCompaction,
  prepareCompaction,
  type RewriteRefused,
  type Room,
  registerRules,
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
import { drain } from '../session/event-stream.ts'
import type { ModelChoice } from '../session/model-choice.ts'
import { createDeadlines } from '../system/deadlines.ts'
import type { LogModel } from './log-model.ts'
import { prefixOfLog } from './log-prefix.ts'

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
