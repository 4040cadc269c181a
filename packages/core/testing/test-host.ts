/**
 * Creates the host (the program that uses the engine) for tests, from fakes and default values. A test can replace each
 * of them.
 */
import { defineMessagesProfile } from '@tidemark/wire/profiles/provider-profile'
import type { CacheTemperature } from '../src/cache/cache-model.ts'
import { NO_RETRIEVAL } from '../src/clearing/clear-candidates.ts'
import { createToolResultRules } from '../src/clearing/tool-result-index.ts'
import type { CompactionServices, TurnHost } from '../src/engine/host.ts'
import type { Deadlines } from '../src/engine/ports.ts'
import type { ContextPlanInput } from '../src/planner/plan-input.ts'
import { createPolicy } from '../src/policy/create-policy.ts'
import type { Policy } from '../src/policy/policy.ts'
import { computeScaledLimits } from '../src/policy/scale-policy.ts'
import type { Switches } from '../src/policy/switches.ts'
import { orderPromptSections } from '../src/request/system-prompt.ts'
import { createDefaultWeights, createEstimator, type Estimator } from '../src/tokens/estimator.ts'
import { createFakeModel } from './fake-model.ts'
import { createCountingIds, createFakeClock, createFakeJournal } from './fake-ports.ts'

/** Creates a test host. It never clears or compacts the context unless `changes` contains `compaction`. */
export function createTestHost(changes: Partial<TurnHost> = {}): TurnHost {
  const { policy = createPolicy({}) } = changes
  return {
    journal: createFakeJournal(),
    model: createFakeModel(),
    clock: createFakeClock(),
    ids: createCountingIds(),
    policy,
    profile: defineMessagesProfile({}),
    compaction: createIdleCompaction(policy),
    source: 'sdk',
    isInteractive: false,
    pricesOf: () => null,
    sections: orderPromptSections('You help.'),
    readOfferedPrefix: () => ({
      tools: [{ name: 'Read', input_schema: { type: 'object' } }],
      model: 'model-a',
      parameters: { max_tokens: 100 },
    }),
    runTool: ({ id }) => ({ content: `result of ${id}` }),
    ...changes,
  }
}

export interface TestCompactionOptions {
  readonly policy?: Policy
  readonly switches?: Switches
  /** Context window in tokens; null if unknown. Default: 200,000. */
  readonly window?: number | null
  /**
   * Maximum output tokens of the model; null if unknown. Default: a quarter of the context window, but at most 64,000.
   */
  readonly maxOutput?: number | null
  readonly estimator?: Estimator
}

/**
 * Creates what the engine needs for clearing and compaction. The session's model writes the summaries unless `changes`
 * names another one.
 */
export function createTestCompaction(
  options: TestCompactionOptions = {},
  changes: Partial<CompactionServices> = {},
): CompactionServices {
  const { policy = createPolicy({}), switches, window = 200_000 } = options
  const { maxOutput = Math.min(64_000, Math.floor((window ?? 0) / 4)) } = options
  const { estimator = createEstimator(createDefaultWeights(policy.estimate)) } = options
  const scaled = computeScaledLimits(policy, { window, maxOutput }, switches)
  return {
    estimator,
    scaled,
    rules: createToolResultRules({
      estimator,
      policy: policy.clear,
      largeInput: scaled.budgets.clear.largeInput,
    }),
    deadlines: patientDeadlines,
    retrieval: NO_RETRIEVAL,
    ...changes,
  }
}

/** Creates services with which the engine never clears or compacts: the window is unknown, and no result is clearable. */
export function createIdleCompaction(policy: Policy = createPolicy({})): CompactionServices {
  const { rules, ...services } = createTestCompaction({ policy, window: null })
  return { ...services, rules: { ...rules, isClearable: () => false } }
}

/** A fake of the timeouts in which no deadline ever expires. */
const patientDeadlines: Deadlines = {
  within: async (_ms, work) => ({ ok: true, value: await work({ aborted: false }) }),
}

/** Runs an async generator of events to its end and returns its result. Each event is passed to `onEvent`. */
export async function runToEnd<Event, End>(
  events: AsyncGenerator<Event, End>,
  onEvent: (event: Event) => void | Promise<void> = () => {},
): Promise<End> {
  for (;;) {
    const step = await events.next()
    if (step.done === true) return step.value
    await onEvent(step.value)
  }
}

/** State of an empty cache, in which a rewrite loses nothing. */
export const COLD_CACHE: CacheTemperature = {
  isWarm: false,
  expiresAt: null,
  ttlMs: 300_000,
  expectedCalls: 0,
  countTokensToRewrite: () => 0,
}

/** A session in which nothing was compacted or undone, and no tool call waits for its result. */
export const EMPTY_PLAN_TRACKING: ContextPlanInput['tracking'] = {
  failures: 0,
  openCalls: 0,
  waitsForPrompt: false,
  justUndone: false,
  justCompacted: false,
  priceCompactedAt: null,
}
