/** Before a request: opens the epoch where none stands, and tells of all that changed about the prefix since. */
import type { KnownRecord } from '../conversation/record.ts'
import { TidemarkError } from '../errors.ts'
import { NO_SWITCHES } from '../policy/switches.ts'
import { type ChangeCause, type ChangeRules, changesOf, type PrefixChange } from '../prompt/changes.ts'
import { hasBoundThinking, openEpoch, type Present } from '../prompt/epoch.ts'
import { mustHold } from '../prompt/hold.ts'
import { recallGaps } from '../prompt/recall-gaps.ts'
import { presentSections, sectionsDue } from '../prompt/section.ts'
import { epochRecord } from '../prompt/tell.ts'
import { chooseTtl } from '../prompt/ttl.ts'
import type { View } from '../view/view.ts'
import { computedNow, offeredNow, type PrefixHalt } from './offered-now.ts'
import { announceEpoch } from './own-acts.ts'
import { withOwnBetas } from './own-betas.ts'
import type { SessionState } from './session-state.ts'
import type { Halt, TurnEvent } from './turn-event.ts'
import { append, type TurnRun } from './turn-run.ts'

/** A new epoch, what it could not take in, and once more. */
const MOST_ROUNDS = 8

export async function* tellChanges(run: TurnRun): AsyncGenerator<TurnEvent, Halt | null> {
  let present = await presentNow(run)
  if ('ok' in present) return present
  const opened = yield* ensureEpoch(run, present)
  if (opened !== null) return opened
  for (let round = 0; round < MOST_ROUNDS; round += 1) {
    const change = changeNow(run, present)
    if (change.kind === 'none') return null
    // Sections may say which model they speak to, and behind a new one the old words are worth nothing.
    if (round === 0 && isOtherModel(change)) {
      present = await presentNow(forgetful(run))
      if ('ok' in present) return present
      continue
    }
    yield { type: 'prefix-changed', change }
    const halt = yield* append(run, change.records)
    if (halt !== null) return halt
    if (change.kind === 'epoch' && change.breaksCache) announce(run, change.causes)
  }
  throw unsettled()
}

function isOtherModel(change: PrefixChange): boolean {
  return change.kind === 'epoch' && change.causes.some(({ kind }) => kind === 'model')
}

function forgetful(run: TurnRun): TurnRun {
  run.state = { ...run.state, texts: new Map() }
  return run
}

function announce(run: TurnRun, causes: readonly ChangeCause[]): void {
  run.state = { ...run.state, watch: announceEpoch(run.state.watch, run.host.source, causes) }
}

async function* ensureEpoch(run: TurnRun, present: Present): AsyncGenerator<TurnEvent, Halt | null> {
  if (run.state.told.standing !== null) return null
  const epoch = openEpoch(withTtl(run, present), run.host.profile)
  yield { type: 'epoch-opened', epoch }
  return yield* append(run, [epochRecord(epoch)])
}

function changeNow(run: TurnRun, present: Present): PrefixChange {
  const { told } = run.state
  const { standing } = told
  if (standing === null) throw unsettled()
  const change = changesOf({ ...told, standing }, present, rulesOf(run))
  // Only an epoch asks how long the cache should live, and the answer takes reading the log.
  return change.kind === 'epoch'
    ? changesOf({ ...told, standing }, withTtl(run, present), rulesOf(run))
    : change
}

function rulesOf({ state, host }: TurnRun): ChangeRules {
  const { volatile } = host.policy.cache
  const lateTools = host.lateTools ?? 'announce'
  const mayRewrite = volatile === 'inline' || lateTools === 'define'
  return {
    profile: host.profile,
    volatile,
    lateTools,
    isBound: mayRewrite && hasBoundThinking(recordsIn(state.view), host.profile),
    holds: mustHold(state.flat, host.profile),
  }
}

function* recordsIn({ entries }: View): Generator<KnownRecord> {
  for (const { record, cleared } of entries) if (cleared?.thinking !== true) yield record
}

export async function presentNow(run: TurnRun): Promise<Present | PrefixHalt> {
  const { host } = run
  const { texts: known, textsSince } = standingTexts(run)
  const due = sectionsDue(host.sections, known)
  const computed = await computedNow(due)
  if ('ok' in computed) return computed
  const texts = new Map([...known, ...computed])
  run.state = { ...run.state, texts, textsSince }
  const offered = offeredNow(host)
  if ('ok' in offered) return offered
  const parameters = withOwnBetas(offered.parameters, host)
  return { ...offered, parameters, sections: presentSections(host.sections, texts) }
}

/** A compaction makes texts stale, unless it kept thinking that holds the prefix as it is. */
function standingTexts({ state, host }: TurnRun): Pick<SessionState, 'texts' | 'textsSince'> {
  const since = state.view.acts.findLast(({ kind }) => kind === 'compact')?.uuid ?? null
  if (since === state.textsSince || state.texts.size === 0) return { texts: state.texts, textsSince: since }
  return hasBoundThinking(recordsIn(state.view), host.profile)
    ? state
    : { texts: new Map(), textsSince: since }
}

function withTtl({ state, host }: TurnRun, present: Present): Present {
  const { policy, profile, switches = NO_SWITCHES, source, isInteractive } = host
  const ttl = chooseTtl({
    policy: policy.cache,
    cache: profile.cache,
    switches,
    source,
    rates: host.pricesOf(present.model, new Date(host.clock.now()).toISOString()),
    isInteractive,
    latched: state.told.standing?.epoch.ttl,
    gaps: () => recallGaps(state.session, profile.cache),
    ...(host.isBedrock === undefined ? {} : { isBedrock: host.isBedrock }),
    ...(host.entitlement === undefined ? {} : { entitlement: host.entitlement }),
  })
  return { ...present, ttl }
}

function unsettled(): TidemarkError {
  const expected = 'Expected tools, model and parameters that stay the same when they are written and read'
  return new TidemarkError('bad-option', `${expected}: give only what JSON can say.`)
}
