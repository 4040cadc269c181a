/** Acts of the person on the conversation: compact, in one or in three steps, undo, pin. */
import {
  type Committed,
  type CompactAsked,
  type CompactForm,
  type CompactionDraft,
  type CompactionPlan,
  commitCompaction,
  compact,
  isObject,
  pinRecord,
  planCompaction,
  prepareCompaction,
  type RewriteRefused,
  show,
  type TurnEvent,
  type TurnRun,
  type UndoAsked,
  type Undone,
  undoAct,
} from '@tidemark/core'
import { badOption, checkNames } from '../platform/argument-errors.ts'
import { drain } from './events.ts'
import {
  actRun,
  checkOpen,
  claim,
  type Desk,
  deskRun,
  hostOf,
  takeIn,
  told,
  working,
} from './open-session.ts'

export interface CompactOptions {
  /** `full`, or from or up to the record `pivot`. */
  readonly form?: CompactForm
  /** uuid of a record, as `append` gave it. */
  readonly pivot?: string
  /** What the summary should pay attention to. */
  readonly instructions?: string
  /** Tokens that the conversation may have afterwards. */
  readonly target?: number
  /** `local`: without a model, whatever the policy says. */
  readonly summarizer?: 'local' | 'model'
  readonly signal?: AbortSignal
  /** As for `commit` and `undo`. */
  readonly abandon?: boolean
}

export interface ActOptions {
  readonly signal?: AbortSignal
  /** The request that `next` gave will not be answered. Without this word, its response has to come first. */
  readonly abandon?: boolean
}

const ACT_NAMES: readonly (keyof ActOptions)[] = ['signal', 'abandon']
const COMPACT_NAMES: readonly (keyof CompactOptions)[] = [
  'form',
  'pivot',
  'instructions',
  'target',
  'summarizer',
  ...ACT_NAMES,
]

/** What a step is given is what the step before it gave, and not its refusal. */
function checkStep(who: 'prepare' | 'commit', given: unknown, fields: readonly string[]): void {
  if (isObject(given) && given.ok === true && fields.every((field) => isObject(given[field]))) return
  const expected = who === 'prepare' ? 'a plan, as planCompaction' : 'a draft, as prepare'
  const isRefusal = isObject(given) && typeof given.message === 'string'
  const found = isRefusal ? `a refusal: ${given.message}` : `${show(given)}.`
  throw badOption(who, `${who}: expected ${expected} gives it where it is ok, found ${found}`)
}

/** Something else has the session. */
export interface Busy {
  readonly ok: false
  readonly reason: 'busy'
  readonly message: string
}

export async function compactSession(desk: Desk, options: CompactOptions): Promise<Committed | Busy> {
  checkNames('compact', options, COMPACT_NAMES)
  return rewriting(desk, { act: 'compact', options }, (run) =>
    compact(run, hostOf(desk).room, asked(options)),
  )
}

export async function planSession(
  desk: Desk,
  options: CompactOptions,
): Promise<CompactionPlan | RewriteRefused> {
  checkNames('planCompaction', options, COMPACT_NAMES)
  checkOpen(desk)
  const run = deskRun(desk)
  await takeIn(desk, run)
  const host = hostOf(desk)
  return planCompaction(run.state, asked(options), { host, room: host.room })
}

/** Takes nothing for itself: a turn may go on, and messages may come, while the summary is made. */
export async function prepareSession(
  desk: Desk,
  plan: CompactionPlan,
  signal: AbortSignal | undefined,
): Promise<CompactionDraft | RewriteRefused> {
  checkStep('prepare', plan, ['asked', 'span', 'entries'])
  return working(desk, () => {
    const events = prepareCompaction(actRun(desk, signal), hostOf(desk).room, plan)
    return drain({ events, onEvent: (event) => told(desk, event) })
  })
}

export async function commitSession(
  desk: Desk,
  draft: CompactionDraft,
  options: ActOptions = {},
): Promise<Committed | Busy> {
  checkStep('commit', draft, ['plan', 'summary', 'receipt'])
  checkNames('commit', options, ACT_NAMES)
  return rewriting(desk, { act: 'commit', options }, (run) => commitCompaction(run, hostOf(desk).room, draft))
}

export type UndoOptions = Omit<UndoAsked, 'id'> & ActOptions

export async function undoSession(
  desk: Desk,
  id: string | undefined,
  options: UndoOptions,
): Promise<Undone | Busy> {
  checkNames('undo', options, ['force', ...ACT_NAMES])
  if (id !== undefined && typeof id !== 'string')
    throw badOption('id', `undo: the id is ${show(id)}; expected that of an act, or nothing for the newest.`)
  const { force = false } = options
  const act = { force, ...(id === undefined ? {} : { id }) }
  return rewriting(desk, { act: 'undo', options }, (run) => undoAct(run, hostOf(desk).room, act))
}

/** `note`: what a person should know of a pin that can do nothing now. */
export type PinOutcome = { readonly ok: true; readonly note?: string } | RewriteRefused

export async function pinSession(desk: Desk, uuid: string, pinned: boolean): Promise<PinOutcome> {
  return working(desk, async () => {
    const run = deskRun(desk)
    await takeIn(desk, run)
    return drain({ events: pinRecord(run, uuid, pinned), onEvent: (event) => told(desk, event) })
  })
}

interface Rewriting {
  readonly act: string
  readonly options: ActOptions
}

async function rewriting<End>(
  desk: Desk,
  { act, options }: Rewriting,
  work: (run: TurnRun) => AsyncGenerator<TurnEvent, End>,
): Promise<End | Busy> {
  checkOpen(desk)
  if (desk.busyWith !== null) return busy(desk, act)
  if (desk.pending !== null && options.abandon !== true) return unanswered(desk, act)
  const release = claim(desk, act)
  try {
    desk.pending = null
    const run = actRun(desk, options.signal)
    await takeIn(desk, run)
    return await drain({ events: work(run), onEvent: (event) => told(desk, event) })
  } finally {
    release()
  }
}

function busy({ id, busyWith }: Desk, act: string): Busy {
  const message = `${act}: the session ${id} is busy with ${busyWith}; nothing was changed. Try again when that has ended.`
  return { ok: false, reason: 'busy', message }
}

/** Rewritten now, the conversation would be measured by an answer to what it was before. */
function unanswered({ id }: Desk, act: string): Busy {
  const message = `${act}: next gave a request of the session ${id} whose response has not come; nothing was changed. Append the response first, or give { abandon: true } where none will come.`
  return { ok: false, reason: 'busy', message }
}

function asked({ form, pivot, instructions, target, summarizer }: CompactOptions): CompactAsked {
  return {
    trigger: 'manual',
    cause: 'person',
    ...(form === undefined ? {} : { form }),
    ...(pivot === undefined ? {} : { pivot }),
    ...(instructions === undefined ? {} : { instructions }),
    ...(target === undefined ? {} : { target }),
    ...(summarizer === undefined ? {} : { summarizer }),
  }
}
