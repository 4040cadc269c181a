/**
 * Appends the context sources of a session: the reminder in front of an empty conversation, and later what changed
 * (todos, modes, memory files). Changes are appended as messages, so that the cached prefix stays the same.
 */
import { isVisibleToModel } from '../context/context-entry.ts'
import { countMessages, messageAt } from '../request/block-index.ts'
import { mustDelayUpdate } from '../request/prefix-updates.ts'
import { type ContextSource, type SourceItem, updateShownAttachments } from '../sources/context-source.ts'
import { collectSourceUpdates } from '../sources/source-updates.ts'
import { replaceLoneSurrogates } from '../text/well-formed-text.ts'
import type { TurnEvent, TurnFailure } from './events.ts'
import type { CompactionServices } from './host.ts'
import {
  appendUnlinkedRecords,
  isTurnAborted,
  type TurnContext,
  type UnlinkedRecord,
} from './session-writer.ts'

const ABORTED: TurnFailure = { ok: false, reason: 'aborted' }

/**
 * Returns the records that stand in front of the first prompt: the reminder with the instructions of user and project.
 * None if the conversation has begun, or if there is nothing to say.
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
  if (messageAt(flat, countMessages(flat) - 1)?.message.role === 'assistant') return null
  const isDelayed = mustDelayUpdate(flat, turn.host.profile)
  const records = yield* collectUpdates(turn, ({ isUrgent = false }) => isUrgent || !isDelayed)
  if (isTurnAborted(turn)) return ABORTED
  return yield* appendUnlinkedRecords(turn, records)
}

/** Returns the records with what changed in some of the context sources, and emits which sources failed. */
async function* collectUpdates(
  turn: TurnContext,
  isWanted: (source: ContextSource) => boolean,
): AsyncGenerator<TurnEvent, readonly UnlinkedRecord[]> {
  const { host, state } = turn
  const compaction = host.compaction
  const sources = compaction?.sources?.filter((source) => source.tellsChanges && isWanted(source)) ?? []
  if (compaction === undefined || sources.length === 0) return []
  const shown = updateShownAttachments(state.shownAttachments, state.view.entries)
  const { carried, failed } = await collectSourceUpdates(limitSourceTime(turn, { ...compaction, sources }), {
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
 * Returns the context sources with a time limit for each. A source that exceeds it, or hangs when the turn is aborted,
 * fails; what it gave before and the other sources are still used.
 */
export function limitSourceTime(
  { host, signal }: Pick<TurnContext, 'host' | 'signal'>,
  { sources = [], deadlines }: CompactionServices,
): readonly ContextSource[] {
  const { timeoutSeconds } = host.policy.rehydrate
  const tooLong = `took longer than ${timeoutSeconds} seconds`
  return sources.map((carrier) => ({
    name: carrier.name,
    kind: carrier.kind,
    tellsChanges: carrier.tellsChanges,
    isWhole: carrier.isWhole,
    isUrgent: carrier.isUrgent ?? false,
    limit: (context) => carrier.limit(context),
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
