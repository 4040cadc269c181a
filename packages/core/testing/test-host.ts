/** The host that tests of the engine use: fake ports and defaults, each of which a test may replace. */
import { NO_RETRIEVAL } from '../src/clearing/select-results.ts'
import { createIndexRules } from '../src/clearing/tool-result-index.ts'
import type { CompactionHost, TurnHost } from '../src/engine/host.ts'
import type { Deadlines } from '../src/engine/ports.ts'
import { createPolicy } from '../src/policy/create-policy.ts'
import { scalePolicy } from '../src/policy/limits.ts'
import type { Policy } from '../src/policy/policy.ts'
import { createProfile } from '../src/policy/provider-profile.ts'
import type { Switches } from '../src/policy/switches.ts'
import { placeSections } from '../src/request/system-prompt.ts'
import { createEstimator, createFixedWeights, type Estimator } from '../src/tokens/estimator.ts'
import { createFakeModel } from './fake-model.ts'
import { createCountingIds, createFakeClock, createFakeJournal } from './fake-ports.ts'

/** A host without `room`: it never clears or compacts unless `changes` gives it one. */
export function createTestHost(changes: Partial<TurnHost> = {}): TurnHost {
  return {
    journal: createFakeJournal(),
    model: createFakeModel(),
    clock: createFakeClock(),
    ids: createCountingIds(),
    policy: createPolicy({}),
    profile: createProfile({}),
    source: 'sdk',
    isInteractive: false,
    pricesOf: () => null,
    sections: placeSections('You help.'),
    modelSettings: () => ({
      tools: [{ name: 'Read', input_schema: { type: 'object' } }],
      model: 'model-a',
      parameters: { max_tokens: 100 },
    }),
    runTool: ({ id }) => ({ content: `result of ${id}` }),
    ...changes,
  }
}

export interface TestRoomOptions {
  readonly policy?: Policy
  readonly switches?: Switches
  /** Tokens; null: not known; 200,000 unless given. */
  readonly window?: number | null
  /** Tokens; null: not known; a quarter of the window, at most 64,000, unless given. */
  readonly maxOutput?: number | null
  readonly estimator?: Estimator
}

/** What clearing and compaction need. Summaries are written by the model unless `changes` has `writeSummary`. */
export function createTestRoom(
  options: TestRoomOptions = {},
  changes: Partial<CompactionHost> = {},
): CompactionHost {
  const { policy = createPolicy({}), switches, window = 200_000 } = options
  const { maxOutput = Math.min(64_000, Math.floor((window ?? 0) / 4)) } = options
  const { estimator = createEstimator(createFixedWeights(policy.estimate)) } = options
  const scaled = scalePolicy(policy, { window, maxOutput }, switches)
  return {
    estimator,
    scaled,
    rules: createIndexRules({ estimator, policy: policy.clear, largeInput: scaled.budgets.clear.largeInput }),
    deadlines: patientDeadlines,
    retrieval: NO_RETRIEVAL,
    ...changes,
  }
}

/** Waits for the work however long it takes. */
const patientDeadlines: Deadlines = {
  within: async (_ms, work) => ({ ok: true, value: await work({ aborted: false }) }),
}

/** Runs a generator to its end and returns its result; each event goes to `onEvent`. */
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
