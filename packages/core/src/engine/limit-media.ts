/**
 * Before each request: where bytes or images have become more than may be sent, the oldest images make way. It is
 * a clearing like any other: one record names them, so that what is sent stays the same from then on, and undoing
 * it brings them back.
 */

import type { Entry } from '../context/entry.ts'
import { blocksOf, isThinking } from '../log/block.ts'
import type { ClearedMedia, MicrocompactMetadata } from '../log/record.ts'
import { type Front, frontOf } from '../request/prefix.ts'
import {
  advanceMedia,
  type BudgetRules,
  bytesAround,
  isOverBudget,
  type MediaItem,
  NO_MEDIA,
  proposeAll,
  proposeSize,
  type SizedRequest,
  type SizeProposal,
  withDropped,
} from '../request/request-size.ts'
import type { Halt, TurnEvent } from './events.ts'
import { measureNow } from './measure-context.ts'
import type { Failure } from './reply.ts'
import { type KnownSize, type SessionState, thinkersIn } from './session-state.ts'
import { append, linked, type TurnRun, trial, type Unlinked } from './session-writer.ts'

export async function* keepSize(run: TurnRun): AsyncGenerator<TurnEvent, Halt | null> {
  const known = advanceSize(run.state)
  run.state = { ...run.state, size: known }
  const { host, state } = run
  const rules = { profile: host.profile, policy: host.policy.request, pins: state.pins }
  const sized: SizedRequest = { messages: state.flat, around: known.around }
  if (!isOverBudget(sized, known.tally, rules)) return null
  const proposal = proposeSize(sized, known.tally, rules)
  const metadata = proposal.drop.length === 0 ? null : metadataOf(run, proposal, rules)
  return metadata === null ? null : yield* leaveOut(run, proposal, metadata)
}

/**
 * Images that a provider refused: those of the message it named, else all that it was sent; where only the bytes are
 * too many, those that have been answered. True: there were some, and they are left out.
 */
export async function* dropMedia(
  run: TurnRun,
  { kind, path }: Failure,
): AsyncGenerator<TurnEvent, boolean | Halt> {
  const known = advanceSize(run.state)
  run.state = { ...run.state, size: known }
  const { host, state } = run
  const rules = { profile: host.profile, policy: host.policy.request, pins: state.pins }
  const sized: SizedRequest = { messages: state.flat, around: known.around }
  const every = proposeAll(sized, known.tally, { ...rules, unanswered: kind === 'media' })
  const named = kind === 'media' ? every.drop.filter(({ index }) => index === messageIn(path)) : []
  const proposal = named.length === 0 ? every : withDropped(every, named)
  const metadata = proposal.drop.length === 0 ? null : metadataOf(run, proposal, rules)
  if (metadata === null) return false
  return (yield* leaveOut(run, proposal, metadata)) ?? true
}

/** `messages.3.content.0` names the fourth message. */
function messageIn(path: string | undefined): number {
  const index = /^messages\.(\d+)(?:\.|$)/.exec(path ?? '')?.[1]
  return index === undefined ? -1 : Number(index)
}

function advanceSize({ size, flat, told, sent }: SessionState): KnownSize {
  const tally = advanceMedia(size?.tally ?? NO_MEDIA, flat)
  const front = told.standing === null ? null : frontOf(told.standing, { previous: sent?.front })
  if (size !== null && sameFront(size.front, front)) return { ...size, tally }
  return { tally, front, around: front === null ? 0 : bytesAround(front) }
}

function sameFront(one: Front | null, other: Front | null): boolean {
  return one?.standing.epoch === other?.standing.epoch && one?.parameters === other?.parameters
}

async function* leaveOut(
  run: TurnRun,
  { drop, before, after, limits }: SizeProposal,
  metadata: MicrocompactMetadata,
): AsyncGenerator<TurnEvent, Halt | null> {
  const halt = yield* append(run, [boundaryOf(metadata)])
  if (halt !== null) return halt
  const id = run.state.view.acts.at(-1)?.uuid ?? ''
  yield { type: 'media-dropped', id, items: drop.length, before, after, limits }
  return null
}

function boundaryOf(metadata: MicrocompactMetadata): Unlinked {
  return {
    type: 'system',
    subtype: 'microcompact_boundary',
    content: 'Old images left out to keep the request within its size',
    level: 'info',
    isMeta: false,
    microcompactMetadata: metadata,
  }
}

/** Null where the turn under way would lose thinking that it must begin with: the next prompt is early enough. */
function metadataOf(
  run: TurnRun,
  { drop }: SizeProposal,
  { profile }: BudgetRules,
): MicrocompactMetadata | null {
  const behind = entriesBehind(run.state, drop)
  const thinking = profile.thinking.binding === 'prefix' ? thinkersIn(behind) : []
  if (thinking.length > 0 && profile.thinking.firstInModes.length > 0 && isMidTurn(run.state)) return null
  const metadata: MicrocompactMetadata = {
    trigger: 'auto',
    way: 'size',
    preTokens: 0,
    tokensSaved: 0,
    compactedToolIds: [],
    clearedAttachmentUUIDs: [],
    clearedMedia: drop.map(clearedOf),
    ...(thinking.length === 0 ? {} : { clearedThinking: thinking }),
  }
  return { ...metadata, ...tokensOf(run, metadata) }
}

function clearedOf({ origin, toolUseId, nth }: MediaItem): ClearedMedia {
  return toolUseId === null ? { uuid: origin, nth } : { uuid: origin, toolUseId, nth }
}

/** From the first record that changes on. */
function entriesBehind({ view }: SessionState, drop: readonly MediaItem[]): readonly Entry[] {
  const origins = new Set(drop.map(({ origin }) => origin))
  const entries = view.entries.toArray()
  return entries.slice(entries.findIndex(({ record }) => origins.has(record.uuid)))
}

/** The model thinks and calls, and has not been spoken to since. */
function isMidTurn({ flat }: SessionState): boolean {
  const { message } = flat.tail.at(-1) ?? {}
  const isAnswer = blocksOf(message?.content ?? '').every(({ type }) => type === 'tool_result')
  const asked = flat.tail.at(-2)?.message
  return isAnswer && asked !== undefined && blocksOf(asked.content).some(isThinking)
}

/** Counted where there is something to count with. */
function tokensOf(
  run: TurnRun,
  metadata: MicrocompactMetadata,
): Pick<MicrocompactMetadata, 'preTokens' | 'tokensSaved'> {
  const { state, host } = run
  if (host.room === undefined) return { preTokens: 0, tokensSaved: 0 }
  const preTokens = measureNow(state, host, host.room).expected
  const after = measureNow(trial(state, linked(run, [boundaryOf(metadata)])), host, host.room).expected
  return { preTokens, tokensSaved: Math.max(0, preTokens - after) }
}
