/** One summariser that answers wrong, one way a compaction comes about, one window: what came of it. */
import { DEFAULT_POLICY, mostCalls, type RewriteRefused } from '@tidemark/core'
import { type Script, withSummaries } from '@tidemark/simulator'
import { ADVERSARY_NAMES, type AdversaryName, adversaries, INJECTED } from '@tidemark/simulator/internal'
import { expect } from 'vitest'
import {
  expectUntouched,
  fillTo,
  isSummaryBody,
  type Picture,
  pictureOf,
  type Stage,
  setStage,
  whileTimePasses,
} from './summary-stage.ts'

export const TRIGGERS = ['auto', 'manual', 'reactive'] as const
export type Trigger = (typeof TRIGGERS)[number]
export const WINDOWS = [8_000, 16_000, 32_000, 200_000, 1_000_000] as const

export interface Trial {
  readonly adversary: AdversaryName
  readonly trigger: Trigger
  readonly window: number
  /** Without the summary that needs no model, a failure is a failure. */
  readonly local: 'last' | 'never'
}

export function trials(
  windowsOf: (adversary: number, trigger: number) => readonly number[],
  local: Trial['local'],
): readonly Trial[] {
  return ADVERSARY_NAMES.flatMap((adversary, place) =>
    TRIGGERS.flatMap((trigger, way) =>
      windowsOf(place, way).map((window) => ({ adversary, trigger, window, local })),
    ),
  )
}

export interface Tried {
  readonly committed: boolean
  readonly summarizer: string
  readonly calls: number
  /** Tokens after it, as a share of the target. */
  readonly filled: number
}

const answers: Script = () => ({ blocks: [{ type: 'text', text: 'Understood.' }] })

/**
 * The laws, whatever the model answers: a valid view under the target, or a typed refusal that changed nothing; no
 * more calls than allowed, and none twice.
 */
export async function tryOut(trial: Trial): Promise<Tried> {
  const stage = await started(trial)
  const { session, bodies, events } = stage
  const before = pictureOf(stage)
  const sent = bodies.length
  await setOff(trial, stage)
  const asked = bodies.slice(sent).filter(isSummaryBody)
  expect(new Set(asked).size).toBe(asked.length)
  expect(asked.length).toBeLessThanOrEqual(mostCalls(DEFAULT_POLICY.compact))
  expect(asked.length).toBeGreaterThan(0)
  expect(events.some(({ type }) => type === 'reactive-compact')).toBe(trial.trigger === 'reactive')
  const failed = events.flatMap((event) => (event.type === 'compact-failed' ? [event.refused] : []))
  const made = events.flatMap((event) => (event.type === 'compact' ? [event.compaction] : []))
  expect(failed.length + made.length).toBe(1)
  const [compaction] = made
  const target = session.contextRemaining().lines?.target ?? 0
  if (compaction === undefined) refusedWell(failed[0], { stage, before })
  else {
    expect(compaction).toMatchObject({ trigger: trial.trigger === 'manual' ? 'manual' : 'auto' })
    expect(compaction.tokensAfter).toBeLessThanOrEqual(target)
    expect(posing(session.messages())).toEqual([])
    await goesOn(stage)
  }
  return {
    committed: compaction !== undefined,
    summarizer: compaction?.summarizer ?? failed[0]?.reason ?? '',
    calls: asked.length,
    filled: compaction === undefined ? 0 : compaction.tokensAfter / target,
  }
}

/** A conversation that was answered once, close to where this trigger goes off. */
export async function started({ adversary, trigger, window, local }: Trial): Promise<Stage> {
  const stage = await setStage({
    script: withSummaries(answers, adversaries[adversary]),
    window,
    ...(trigger === 'reactive' ? { realWindow: Math.floor(window * 0.45) } : {}),
    more: { policy: { compact: { chain: { local } } } },
  })
  const { session } = stage
  const line = session.contextRemaining().lines?.autoCompact ?? 0
  await fillTo(stage, line * (trigger === 'reactive' ? 0.3 : 0.5), 'early')
  expect(await session.run('Go on.').outcome).toMatchObject({ ok: true })
  if (trigger === 'auto') await fillTo(stage, line, 'late')
  if (trigger === 'reactive') await fillTo(stage, window * 0.7, 'late')
  return stage
}

function setOff({ trigger, adversary }: Trial, stage: Stage): Promise<unknown> {
  const work: Promise<unknown> =
    trigger === 'manual' ? stage.session.compact() : stage.session.run('And then?').outcome
  return adversary === 'hang' ? whileTimePasses(stage, work) : work
}

interface Before {
  readonly stage: Stage
  readonly before: Picture
}

/** A reason and a sentence. What was there is there, byte for byte, in the view and in the log. */
function refusedWell(refused: RewriteRefused | undefined, { stage, before }: Before): void {
  expect(refused).toMatchObject({ ok: false, reason: 'no-summary' })
  expect(refused?.message.length).toBeGreaterThan(20)
  expectUntouched(stage, before)
}

/** Lines of the injected orders that are shown as if they were an order. */
function posing(messages: unknown): readonly string[] {
  const shown = JSON.stringify(messages).split('\\n')
  return INJECTED.split('\n').filter((line) => shown.includes(line))
}

async function goesOn({ session, simulator }: Stage): Promise<void> {
  expect(await session.run('And now?').outcome).toMatchObject({ ok: true })
  expect(simulator.requests.at(-1)).toMatchObject({ status: 200 })
}
