/** What planning costs must not grow with the conversation: register, meter and plan of one more record. */

import {
  appendRecord,
  type ContextView,
  createEstimator,
  createFixedWeights,
  createPolicy,
  defineProviderProfile,
  emptyContextView,
  emptySessionLog,
  type SessionRecord,
  scalePolicy,
  startCalibration,
  updateContextView,
} from '@tidemark/core'
import { EMPTY_PLAN_TRACKING } from '@tidemark/core/testing'
import { NO_RETRIEVAL } from '../../packages/core/src/clearing/clear-candidates.ts'
import {
  createIndexRules,
  createToolResultIndex,
  type ToolResultIndex,
} from '../../packages/core/src/clearing/tool-result-index.ts'
import { updateToolResultIndex } from '../../packages/core/src/clearing/update-tool-result-index.ts'
import { type ContextPlan, makeContextPlan } from '../../packages/core/src/planner/context-plan.ts'
import { type ContextMeter, createMeter, updateMeter } from '../../packages/core/src/tokens/context-meter.ts'
import type { BenchCase } from '../harness/bench-case.ts'

/** Enough that copying the books once, which going back to their start costs, does not count. */
const TURNS = 1_000
const ROUNDS = 15
const POLICY = createPolicy({})
const ESTIMATOR = createEstimator(createFixedWeights(POLICY.estimate))
const SCALED = scalePolicy(POLICY, { window: 1_000_000, maxOutput: 64_000 })
const RULES = createIndexRules({
  estimator: ESTIMATOR,
  policy: POLICY.clear,
  largeInput: SCALED.budgets.clear.largeInput,
})
const PROFILE = defineProviderProfile({ thinking: { binding: 'none' } })
const CALIBRATION = startCalibration({ scale: 1, offset: 0, weight: 2_000 })
const CACHE = { isWarm: true, expiresAt: 1, ttlMs: 300_000, expectedCalls: 27, tokensBehind: () => 1_000_000 }
const RATES = { input: 10, cacheRead: 1, write5m: 12.5, write1h: 20, output: 50 }

/** A tool loop: a response with a call, then its answer, for ever; the provider counts what it has read. */
function recordAt(index: number): SessionRecord {
  const links = {
    uuid: `r${index}`,
    parentUuid: index === 0 ? null : `r${index - 1}`,
    timestamp: '',
    sessionId: 's',
  }
  if (index === 0)
    return { ...links, type: 'user', message: { role: 'user', content: 'go' } } as SessionRecord
  const id = `c${Math.ceil(index / 2)}`
  const isCall = index % 2 === 1
  const content = isCall
    ? [{ type: 'tool_use', id, name: 'Read', input: { file_path: `/src/${index % 40}` } }]
    : [{ type: 'tool_result', tool_use_id: id, content: `text of ${id} `.repeat(40) }]
  const usage = { input_tokens: 10_000 + 100 * index, output_tokens: 50 }
  const message = isCall
    ? { id: `m${id}`, role: 'assistant', model: 'm', content, usage }
    : { role: 'user', content }
  return { ...links, type: isCall ? 'assistant' : 'user', message } as unknown as SessionRecord
}

interface Kept {
  readonly register: ToolResultIndex
  readonly meter: ContextMeter
}

function planned({ register, meter }: Kept): ContextPlan {
  return makeContextPlan({
    register,
    meter,
    pins: [],
    policy: POLICY,
    scaled: SCALED,
    profile: PROFILE,
    calibration: CALIBRATION,
    prefixTokens: 10_000,
    source: 'repl_main_thread',
    moment: 'call',
    cache: CACHE,
    rates: RATES,
    write: 'write5m',
    idleMs: 1_000,
    retrieval: NO_RETRIEVAL,
    tools: ['Read'],
    thinks: false,
    thinkingMode: null,
    tracking: EMPTY_PLAN_TRACKING,
  })
}

/** The views of so many further turns, and the books as they stood before them. */
function turnsFrom(length: number): () => ContextPlan | null {
  let session = emptySessionLog()
  let view = emptyContextView()
  let before: ContextView | null = null
  const views: ContextView[] = []
  for (let index = 0; views.length < TURNS; index += 1) {
    session = appendRecord(session, recordAt(index))
    view = updateContextView(view, session)
    if (index === length) before = view
    if (index > length) views.push(view)
  }
  if (before === null) throw new Error('no view')
  const start = {
    register: updateToolResultIndex(createToolResultIndex(RULES), before),
    meter: updateMeter(createMeter(ESTIMATOR), before),
  }
  return () => {
    let [kept, last]: [Kept, ContextPlan | null] = [start, null]
    for (const each of views) {
      kept = { register: updateToolResultIndex(kept.register, each), meter: updateMeter(kept.meter, each) }
      last = planned(kept)
      if (last.act !== 'wait')
        throw new Error(`expected to wait: ${last.trace.map(({ why }) => why).join('; ')}`)
    }
    return last
  }
}

export const benchCase: BenchCase = {
  name: 'plan-is-flat',
  compares: `register + meter + plan of ${TURNS} records at 5,000 with the same at 100`,
  bound: { atMost: 1.5 },
  rounds: ROUNDS,
  prepare: () => ({ subject: turnsFrom(5_000), baseline: turnsFrom(100) }),
}
