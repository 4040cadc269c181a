/** A host for Tidemark's engine without disk, network or clock, so that what is timed is the engine's own work. */

import { NO_RETRIEVAL } from '@tidemark/core/clearing/clear-candidates'
import { createToolResultRules } from '@tidemark/core/clearing/tool-result-index'
import type { CompactionServices, TurnHost } from '@tidemark/core/engine/host'
import type { IdGenerator, Journal } from '@tidemark/core/engine/ports'
import type { SessionRecord } from '@tidemark/core/log/record'
import { createPolicy } from '@tidemark/core/policy/create-policy'
import type { Policy } from '@tidemark/core/policy/policy'
import { computeScaledLimits } from '@tidemark/core/policy/scale-policy'
import { orderPromptSections } from '@tidemark/core/request/system-prompt'
import { createDefaultWeights, createEstimator } from '@tidemark/core/tokens/estimator'
import { defineMessagesProfile } from '@tidemark/wire/profiles/provider-profile'
import { TOOLS } from './story.ts'

export interface RoomyHost extends TurnHost {
  readonly compaction: CompactionServices
  /** It is now the moment at which the session has so many records: a step of the story takes ten seconds. */
  readonly timeAt: (position: number) => void
}

/** Summaries are made without a model: there is none here. */
const chain = { block: false, fork: false, local: 'only' } as const
const policy: Policy = createPolicy({ compact: { chain } })

/** A rewrite comes when it must, and not when it is cheap, as it is on a log that was just opened. */
export const UNHURRIED: Policy = createPolicy({ compact: { chain, priceDecides: false } })

const estimator = createEstimator(createDefaultWeights(policy.estimate))
const rules = createToolResultRules({ estimator, policy: policy.clear, largeInput: 1_000 })
const profile = defineMessagesProfile({ thinking: { binding: 'none' } })
const tools = TOOLS.map((name) => ({ name, input_schema: { type: 'object' } }))
const START = Date.UTC(2026, 0, 1)
const RECORD_MS = 10_000 / 3

/** The warning line, where clearing starts, lies at 100,000 tokens: what the peers are set to. */
export const NARROW = 143_700

/** Nothing is ever due in it. */
export const WIDE = 10_000_000

export function hostFor(window: number, journal: Journal, inForce: Policy = policy): RoomyHost {
  let now = START
  return {
    timeAt: (position) => {
      now = START + Math.round(position * RECORD_MS)
    },
    journal,
    model: {
      stream: () => {
        throw new Error('no model is asked in this bench')
      },
    },
    clock: { now: () => now, sleep: async () => {} },
    ids: countingIds(),
    policy: inForce,
    profile,
    source: 'sdk',
    isInteractive: false,
    pricesOf: () => ({ input: 5, cacheRead: 0.5, write5m: 6.25, write1h: 10, output: 25 }),
    sections: orderPromptSections('You mend programs.'),
    readOfferedPrefix: () => ({ tools, model: 'model-a', parameters: { max_tokens: 8_192 } }),
    runTool: () => {
      throw new Error('no tool is run in this bench')
    },
    compaction: {
      estimator,
      scaled: computeScaledLimits(inForce, { window, maxOutput: 32_000 }),
      rules,
      deadlines: { within: async (_, work) => ({ ok: true, value: await work({ aborted: false }) }) },
      retrieval: NO_RETRIEVAL,
    },
  }
}

function countingIds(): IdGenerator {
  let count = 0
  return {
    next: (kind) => {
      count += 1
      return `${kind}-${count}`
    },
  }
}

/** Takes whatever comes and keeps it only where it is given a place: a session can go on from any state of it. */
export function journalOver(records: readonly SessionRecord[], kept?: SessionRecord[]): Journal {
  return {
    read: async (_, visit, from = 0) => {
      if (records.length > from) visit(records.slice(from))
      return { exists: records.length > 0, position: records.length, damage: [] }
    },
    append: async (_, after, given) => {
      const id = `batch-${after}`
      const stamped = given.map(
        (record, index) =>
          ({ ...record, seq: after + index + 1, batch: { id, index, of: given.length } }) as SessionRecord,
      )
      kept?.push(...stamped)
      return { ok: true, position: after + stamped.length, records: stamped }
    },
    list: async () => ['bench'],
    release: async () => {},
  }
}
