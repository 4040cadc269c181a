/** A host that makes room, with the simulator's coder as its model: results large enough to cross the lines often. */
import {
  createEstimator,
  createPolicy,
  type Journal,
  type JsonObject,
  type Policy,
  type PriceList,
  type Profile,
  placeSections,
  type Room,
  registerRules,
  type Switches,
  scalePolicy,
  section,
  type TurnHost,
} from '@tidemark/core'
import type { FakeClock } from '@tidemark/core/testing'
import {
  type Coder,
  createCoder,
  createSimulator,
  type RequestRecord,
  type Simulator,
  type SimulatorOptions,
} from '@tidemark/simulator'
import {
  estimatorWeights,
  lookUpModel,
  type ModelEntry,
  modelCatalogue,
  pricesOn,
  profileFor,
} from '@tidemark/wire'
import { createAnthropicModel, systemIds } from 'tidemark'

/** A model, a policy, and what the provider can do. */
export interface SetUp {
  readonly model: string
  readonly policy?: Parameters<typeof createPolicy>[0]
  readonly switches?: Switches
  readonly profile?: (profile: Profile) => Profile
  readonly simulator?: SimulatorOptions
  readonly parameters?: JsonObject
  /** Tokens of the window that the lines are drawn in; the model's own unless given. */
  readonly window?: number
  /** Tokens of reading a file or running the tests. */
  readonly resultTokens?: number
  readonly thinkingTokens?: number
  /** Calls of one turn, before the last word. */
  readonly turns?: number
  /** How long the person is away before the prompt of that number, in milliseconds. */
  readonly pause?: (prompt: number) => number
  /** Nothing makes room: the conversation only grows. */
  readonly isRoomless?: boolean
}

export interface Machine {
  readonly journal: Journal
  readonly clock: FakeClock
  readonly onRequest: (record: RequestRecord) => void
}

export interface ClearingHost {
  readonly host: TurnHost
  readonly simulator: Simulator
  readonly coder: Coder
}

export function clearingHost(setUp: SetUp, { journal, clock, onRequest }: Machine): ClearingHost {
  const { resultTokens = 3_000, thinkingTokens = 0, turns = 14 } = setUp
  const coder = createCoder({ turns, resultTokens, thinkingTokens, textTokens: 30 })
  const entry = entryOf(setUp.model)
  const policy = createPolicy({ compact: { priceDecides: false }, ...setUp.policy })
  const known = profileFor(entry)
  const profile = setUp.profile?.(known) ?? known
  const simulator = createSimulator({
    script: coder.script,
    clock,
    window: 10_000_000,
    keepRequests: 4,
    deltaSize: 4_000,
    onRequest,
    ...setUp.simulator,
  })
  const host: TurnHost = {
    journal,
    model: createAnthropicModel({
      baseUrl: 'http://simulator.test',
      credentials: { style: 'key', secret: 'any' },
      fetch: simulator.fetch,
      clock,
    }),
    clock,
    ids: systemIds,
    policy,
    profile,
    ...(setUp.switches === undefined ? {} : { switches: setUp.switches }),
    source: 'sdk',
    isInteractive: false,
    pricesOf,
    sections: SECTIONS,
    offered: () => ({
      tools: coder.tools,
      model: setUp.model,
      parameters: { max_tokens: 4_000, ...setUp.parameters },
    }),
    runTool: async (call) => {
      await clock.advance(4_000)
      const { content, is_error } = coder.toolResult(call)
      return { content: String(content), ...(is_error === true ? { is_error } : {}) }
    },
  }
  if (setUp.isRoomless === true) return { host, simulator, coder }
  return { host: { ...host, room: roomOf(setUp, policy, entry) }, simulator, coder }
}

function roomOf(setUp: SetUp, policy: Policy, entry: ModelEntry): Room {
  const estimator = createEstimator(estimatorWeights(entry.tokenizer ?? 'claude-from-4.7', policy.estimate))
  const window = setUp.window ?? entry.window
  const scaled = scalePolicy(policy, { window, maxOutput: entry.maxOutput }, setUp.switches)
  return {
    estimator,
    scaled,
    rules: registerRules({ estimator, policy: policy.clear, largeInput: scaled.budgets.clear.largeInput }),
    deadlines: { within: async (_ms, work) => ({ ok: true, value: await work({ aborted: false }) }) },
    retrieval: { historyTool: null, transcript: null },
    writeSummary: () => Promise.resolve('Summary:\nThe limits are being raised, one after the other.'),
  }
}

export function entryOf(model: string): ModelEntry {
  const looked = lookUpModel(modelCatalogue, model)
  if (!looked.found) throw new Error(looked.reason)
  return looked.model
}

export const pricesOf: PriceList = (model, at) => {
  const looked = lookUpModel(modelCatalogue, model)
  return looked.found ? pricesOn(looked.model, at) : null
}

const SECTIONS: TurnHost['sections'] = placeSections({
  attribution: 'x-billing: clearing',
  identity: 'You are a coder.',
  sections: [section('rules', () => 'Keep to the rules of the house. '.repeat(300))],
})
