/** Acts of the person on the conversation: compact, in one or in three steps, undo, pin. */
import {
  type Committed,
  type CompactAsked,
  type CompactForm,
  type CompactionDraft,
  type CompactionPlan,
  commitCompaction,
  compact,
  pinRecord,
  planCompaction,
  prepareCompaction,
  type RewriteRefused,
  type TurnEvent,
  type TurnRun,
  type UndoAsked,
  type Undone,
  undoAct,
} from '@tidemark/core'
import { checkOpen, claim, type Desk, deskRun, hostOf, takeIn, told } from './desk.ts'
import { drain } from './event-stream.ts'

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
}

/** Something else has the session. */
export interface Busy {
  readonly ok: false
  readonly reason: 'busy'
  readonly message: string
}

export async function compactSession(desk: Desk, options: CompactOptions): Promise<Committed | Busy> {
  return rewriting(desk, { act: 'compact', signal: options.signal }, (run) =>
    compact(run, hostOf(desk).room, asked(options)),
  )
}

export async function planSession(
  desk: Desk,
  options: CompactOptions,
): Promise<CompactionPlan | RewriteRefused> {
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
  checkOpen(desk)
  const events = prepareCompaction(deskRun(desk, signal), hostOf(desk).room, plan)
  return drain({ events, onEvent: (event) => told(desk, event) })
}

export function commitSession(
  desk: Desk,
  draft: CompactionDraft,
  signal: AbortSignal | undefined,
): Promise<Committed | Busy> {
  return rewriting(desk, { act: 'commit', signal }, (run) => commitCompaction(run, hostOf(desk).room, draft))
}

export function undoSession(desk: Desk, options: UndoAsked): Promise<Undone | Busy> {
  return rewriting(desk, { act: 'undo', signal: undefined }, (run) =>
    undoAct(run, hostOf(desk).room, options),
  )
}

export type PinOutcome = { readonly ok: true } | RewriteRefused

export async function pinSession(desk: Desk, uuid: string, pinned: boolean): Promise<PinOutcome> {
  checkOpen(desk)
  const run = deskRun(desk)
  await takeIn(desk, run)
  return drain({ events: pinRecord(run, uuid, pinned), onEvent: (event) => told(desk, event) })
}

interface Rewriting {
  readonly act: string
  readonly signal: AbortSignal | undefined
}

async function rewriting<End>(
  desk: Desk,
  { act, signal }: Rewriting,
  work: (run: TurnRun) => AsyncGenerator<TurnEvent, End>,
): Promise<End | Busy> {
  checkOpen(desk)
  if (desk.busyWith !== null) return busy(desk, act)
  const release = claim(desk, act)
  try {
    const run = deskRun(desk, signal)
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
