/** A host of the engine whose model is the simulator's coder: fake time, real codec, catalogue prices. */
import type { FindModelPrices } from '@tidemark/core/cost/session-cost'
import type { CompactionServices, TurnHost } from '@tidemark/core/engine/host'
import type { Journal } from '@tidemark/core/engine/ports'
import type { SessionState } from '@tidemark/core/engine/session-state'
import { isToolResult, toBlocks } from '@tidemark/core/log/block'
import type { JsonObject } from '@tidemark/core/log/json'
import { createPolicy } from '@tidemark/core/policy/create-policy'
import type { Policy } from '@tidemark/core/policy/policy'
import type { ProviderProfile } from '@tidemark/core/policy/provider-profile'
import type { Switches } from '@tidemark/core/policy/switches'
import {
  orderPromptSections,
  SYSTEM_PROMPT_DYNAMIC_BOUNDARY,
  section,
  volatileSection,
} from '@tidemark/core/request/system-prompt'
import { createTestCompaction, createTestHost, type FakeClock } from '@tidemark/core/testing'
import { createEstimator } from '@tidemark/core/tokens/estimator'
import {
  type Coder,
  type CoderOptions,
  createCoder,
  createSimulator,
  type RequestRecord,
  type Simulator,
  type SimulatorOptions,
} from '@tidemark/simulator'
import { anthropicCodec } from '@tidemark/wire/anthropic/codec'
import { lookUpModel, modelCatalogue, pricesAtDate } from '@tidemark/wire/catalogue/catalogue'
import { createEstimatorWeights } from '@tidemark/wire/catalogue/estimator-weights'
import type { ModelEntry } from '@tidemark/wire/catalogue/model-entry'
import { createProviderProfile } from '@tidemark/wire/profiles/provider-profile'
import { createHttpModel, systemIds } from 'tidemark/internal'

/** What volatile sections, late tools and parameters are made of. A test changes it between requests. */
export interface World {
  commits: number
  extraTools: number
  /** A parameter that is part of the cache key is given. */
  hasToolChoice: boolean
}

export interface SimulatedHostOptions {
  readonly model: string
  readonly policy?: Parameters<typeof createPolicy>[0]
  readonly switches?: Switches
  readonly profile?: (profile: ProviderProfile) => ProviderProfile
  readonly simulator?: SimulatorOptions
  readonly parameters?: JsonObject
  readonly coder?: CoderOptions
  /** Tokens of the window that clearing and compaction work in (the model's own for `'model'`); none: no `room`. */
  readonly window?: number | 'model'
  /** The system prompt has volatile sections, made of this. */
  readonly world?: World
  /** Volatile sections change only when a test changes the world. */
  readonly isStill?: boolean
}

export interface SimulatedHost {
  readonly host: TurnHost
  readonly simulator: Simulator
  readonly coder: Coder
}

export function createSimulatedHost(
  options: SimulatedHostOptions,
  ports: {
    readonly journal: Journal
    readonly clock: FakeClock
    readonly onRequest: (record: RequestRecord) => void
  },
): SimulatedHost {
  const { journal, clock, onRequest } = ports
  const { world, isStill = false, switches } = options
  const coder = createCoder(options.coder)
  const entry = findModel(options.model)
  const policy = createPolicy(options.policy ?? {})
  const profile = options.profile?.(createProviderProfile(entry)) ?? createProviderProfile(entry)
  const simulator = createSimulator({
    script: coder.script,
    clock,
    window: 10_000_000,
    onRequest,
    ...options.simulator,
  })
  const host = createTestHost({
    journal,
    model: createHttpModel({
      codec: anthropicCodec,
      baseUrl: 'http://simulator.test',
      credentials: { style: 'key', secret: 'any' },
      fetch: simulator.fetch,
      clock,
    }),
    clock,
    ids: systemIds,
    policy,
    profile,
    ...(switches === undefined ? {} : { switches }),
    pricesOf: cataloguePrices,
    sections:
      world === undefined ? STILL_SECTIONS : volatileSections(world, isStill ? { now: () => 0 } : clock),
    readOfferedPrefix: () => ({
      tools: [...coder.tools, ...(world === undefined ? [] : lateTools(world))],
      model: options.model,
      parameters: {
        max_tokens: 4_000,
        ...options.parameters,
        ...(world === undefined ? {} : toolChoice(world)),
      },
    }),
    ...(world === undefined ? {} : { firstClearable: oldestResult }),
    runTool: async (call) => {
      await clock.advance(4_000)
      if (world !== undefined && call.name === 'Edit' && !isStill) world.commits += 1
      const { content, is_error } = coder.toolResult(call)
      return { content: String(content), ...(is_error === true ? { is_error } : {}) }
    },
  })
  return { host: { ...host, ...roomFor(options, policy, entry) }, simulator, coder }
}

function roomFor(
  { window, switches }: SimulatedHostOptions,
  policy: Policy,
  entry: ModelEntry,
): { readonly compaction?: CompactionServices } {
  if (window === undefined) return {}
  const estimator = createEstimator(
    createEstimatorWeights(entry.tokenizer ?? 'claude-from-4.7', policy.estimate),
  )
  const room = createTestCompaction(
    {
      policy,
      estimator,
      window: window === 'model' ? entry.window : window,
      maxOutput: entry.maxOutput,
      ...(switches === undefined ? {} : { switches }),
    },
    {
      retrieval: { historyTool: null, transcript: null },
      writeSummary: () => Promise.resolve('Summary:\nThe limits are being raised, one after the other.'),
    },
  )
  return { compaction: room }
}

export function findModel(model: string): ModelEntry {
  const found = lookUpModel(modelCatalogue, model)
  if (!found.found) throw new Error(found.reason)
  return found.model
}

export const cataloguePrices: FindModelPrices = (model, at) => {
  const found = lookUpModel(modelCatalogue, model)
  return found.found ? pricesAtDate(found.model, at) : null
}

const RULES = section('rules', () => 'Keep to the rules of the house. '.repeat(300))

const STILL_SECTIONS: TurnHost['sections'] = orderPromptSections({
  attribution: 'x-billing: clearing',
  identity: 'You are a coder.',
  sections: [RULES],
})

function volatileSections(world: World, clock: { now(): number }): TurnHost['sections'] {
  return orderPromptSections({
    attribution: 'x-billing: first-turn',
    identity: 'You are a coder.',
    sections: [
      RULES,
      SYSTEM_PROMPT_DYNAMIC_BOUNDARY,
      section('environment', () => 'A machine like any other.'),
      volatileSection('git', () => `${world.commits} commits ahead`, 'edits change it'),
      volatileSection('time', () => new Date(clock.now()).toISOString().slice(0, 15), 'time passes'),
    ],
  })
}

function lateTools({ extraTools }: World): readonly JsonObject[] {
  return Array.from({ length: extraTools }, (_, index) => ({
    name: `mcp__late__${index}`,
    description: 'A tool that was connected later.',
    input_schema: { type: 'object', properties: {} },
  }))
}

function toolChoice({ hasToolChoice }: World): JsonObject {
  return hasToolChoice ? { tool_choice: { type: 'auto', disable_parallel_tool_use: false } } : {}
}

function oldestResult({ flat }: SessionState): string | null {
  for (const { message } of [...flat.frozen.toArray(0, 12), ...flat.tail]) {
    const result = toBlocks(message.content).find(isToolResult)
    if (result !== undefined) return result.tool_use_id
  }
  return null
}
