/** Generated sessions that are worth compacting, and what is compared before and after. */

import { Choices, generateSession, type SessionBuilder } from '@tidemark/core/testing'
import fc from 'fast-check'
import { isShown } from '../../src/context/message-parts.ts'
import { nextRequest } from '../../src/engine/next-request.ts'
import {
  type CompactAsked,
  callOf,
  type Entry,
  flatMessagesOf,
  type SessionState,
  type TurnHost,
} from '../../src/index.ts'
import { largeRound } from '../engine/roomy.ts'

export interface Story {
  /** The choices that tell what was said before. */
  readonly numbers: readonly number[]
  /** What to ask for, round by round. */
  readonly acts: readonly Asked[]
  readonly carriersFirst: boolean
}

export interface Asked {
  readonly form: 'full' | 'from' | 'up_to'
  /** Which record of the view, in thousandths of it. */
  readonly pivot: number
  /** The person says so many things before it. */
  readonly prompts: number
  /** Rounds of work before that. */
  readonly rounds: number
  readonly pin: number | null
}

const asked: fc.Arbitrary<Asked> = fc.record({
  form: fc.constantFrom('full', 'full', 'from', 'up_to'),
  pivot: fc.nat({ max: 999 }),
  prompts: fc.nat({ max: 2 }),
  rounds: fc.integer({ min: 1, max: 4 }),
  pin: fc.option(fc.nat({ max: 999 }), { freq: 3 }),
})

export function stories(rounds = 3): fc.Arbitrary<Story> {
  return fc.record({
    numbers: fc.array(fc.nat({ max: 0xffff }), { minLength: 0, maxLength: 120, size: 'max' }),
    acts: fc.array(asked, { minLength: 1, maxLength: rounds }),
    carriersFirst: fc.boolean(),
  })
}

export function tellerOf({ numbers }: Story): SessionBuilder {
  const { builder } = generateSession(new Choices(numbers), { settled: true })
  builder.user('go on with the work')
  for (let round = 0; round < 3; round += 1) largeRound(builder, 1_500, round % 2 === 0)
  return builder
}

/** The record of the view at so many thousandths. */
export function entryAt({ view }: SessionState, thousandths: number): Entry | undefined {
  const shown = view.entries.toArray().filter(isShown)
  return shown[Math.floor((thousandths * shown.length) / 1000)]
}

export function askedOn(state: SessionState, { form, pivot }: Asked): Partial<CompactAsked> {
  const picked = entryAt(state, pivot)?.record.uuid
  return form === 'full' || picked === undefined ? { form: 'full' } : { form, pivot: picked }
}

export function uuidsOf(entries: Iterable<Entry>): readonly string[] {
  return [...entries].map(({ record }) => record.uuid)
}

export function shownUuids({ view }: SessionState): readonly string[] {
  return uuidsOf(view.entries.toArray().filter(isShown))
}

/** Every byte of the request that would go out now, markers included. */
export function bytesOf(state: SessionState, host: TurnHost): string {
  const { standing } = state.told
  if (standing === null) return JSON.stringify(flatMessagesOf(state.flat).map(({ message }) => message))
  const { payload, raw } = callOf(nextRequest(state, standing, host).request)
  return JSON.stringify([payload, raw?.map((texts) => (texts === undefined ? null : [...texts]))])
}

/** The messages alone: where markers stand depends on what was sent before. */
export function messageBytes(state: SessionState): string {
  return JSON.stringify(
    flatMessagesOf(state.flat).map(({ message, raw }) => [message, raw === undefined ? null : [...raw]]),
  )
}
