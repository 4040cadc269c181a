/** Tidemark: a session that lives, and three acts on a whole conversation at once. */
import { decideClearing } from '@tidemark/core/clearing/propose-clearing'
import { compact } from '@tidemark/core/compaction/compact'
import { gatherContextPlanInput, measureContext } from '@tidemark/core/engine/measure-context'
import { readSessionState } from '@tidemark/core/engine/session-state'
import type { TurnContext } from '@tidemark/core/engine/session-writer'
import type { SessionRecord } from '@tidemark/core/log/record'
import { toPayload } from '@tidemark/core/request/build-request'
import { computeCalibrationScale } from '@tidemark/core/tokens/usage'
import { appendClearing } from '../../packages/core/src/turn/reduce-context.ts'
import type { Contender, Conversation } from './contender.ts'
import type { Story } from './story.ts'
import { hostFor, journalOver, NARROW, type RoomyHost, UNHURRIED, WIDE } from './tidemark-host.ts'
import {
  answeredBy,
  drain,
  freshStanding,
  type Lived,
  openConversation,
  type Prepare,
  type Sent,
  startSession,
  takeTurn,
} from './tidemark-turn.ts'

export const tidemarkSession: Contender = {
  name: 'Tidemark session',
  kind: 'both',
  call: 'answer and result appended, plan, request made and checked; clears from 100,000 tokens on, then a local summary',
  carries: true,
  open: async (story) => {
    const host = hostFor(NARROW, journalOver([]))
    return openConversation(host, await live(host, story))
  },
}

export const tidemarkOpening: Contender = {
  name: 'Tidemark, log opened',
  kind: 'both',
  call: 'the whole log folded from its start, then one request with nothing due: what a restart costs',
  carries: false,
  open: async (story) => {
    const records: SessionRecord[] = []
    const wide = hostFor(WIDE, journalOver([], records))
    await live(wide, story, records)
    const host = hostFor(WIDE, journalOver(records), UNHURRIED)
    return once(async () => async () => {
      const state = await readSessionState(host.journal, 'bench')
      return takeTurn(host, { state, answer: null })
    })
  },
}

export const tidemarkClearing: Contender = {
  name: 'Tidemark clearing',
  kind: 'clear',
  call: 'asked for by a person, the 3 newest results kept; proposal, boundary record, request',
  carries: false,
  open: (story) => actOn(story, hostFor(WIDE, journalOver([])), clearAll),
}

export const tidemarkSummary: Contender = {
  name: 'Tidemark local summary',
  kind: 'summary',
  call: 'compact: facts, local summary, gate, ledger, receipt, checked and committed as one batch, request',
  carries: false,
  open: (story) => actOn(story, hostFor(NARROW, journalOver([])), summarise),
}

/** Through the whole story, request by request. */
async function live(host: RoomyHost, { prompt, steps }: Story, kept?: SessionRecord[]): Promise<Lived> {
  let lived: Lived = { standing: await startSession(host, prompt), before: null }
  for (const step of steps) {
    const sent = await takeTurn(host, lived.standing)
    lived = { standing: answeredBy(host, sent, step), before: lived.standing }
  }
  if (kept !== undefined) await takeTurn(host, lived.standing)
  return lived
}

/** The conversation lives in a window where nothing is due; then it is acted on. */
async function actOn(story: Story, host: RoomyHost, act: Prepare): Promise<Conversation> {
  const wide = hostFor(WIDE, journalOver([]))
  const lived = await live(wide, story)
  return once(async () => {
    const from = await freshStanding(wide, lived)
    return () => takeTurn(host, from, act)
  })
}

function once(ready: () => Promise<() => Promise<Sent>>): Conversation {
  return {
    ready: async () => {
      const send = await ready()
      return async () => {
        const { opened } = await send()
        return {
          messages: () => toPayload(opened.request).messages,
          after: () => Promise.reject(new Error('nothing follows on this act')),
        }
      }
    },
  }
}

const clearAll: Prepare = async (run) => {
  const { context, state } = gatherContextPlanInput(run.state, run.host, 'call')
  run.state = state
  const { rates, write, calibration, ...rest } = context
  const { proposal } = decideClearing({
    ...rest,
    policy: keepingThree(run),
    prices: { rates, write },
    scale: computeCalibrationScale(calibration),
    context: measureContext(state, run.host),
    target: 0,
  })
  // Too little to be worth a rewrite: it stays as it is, as the results that are left will show.
  if (proposal === null) return
  const halt = await drain(appendClearing(run, proposal))
  if (halt !== null) throw new Error(`not cleared: ${halt.reason}`)
}

function keepingThree({ host }: TurnContext): RoomyHost['policy'] {
  const { clear } = host.policy
  return { ...host.policy, clear: { ...clear, budget: { ...clear.budget, keep: 3 } } }
}

const summarise: Prepare = async (run) => {
  const end = await drain(compact(run, { trigger: 'auto', cause: 'threshold' }))
  if (!end.ok) throw new Error(`not compacted: ${end.message}`)
}
