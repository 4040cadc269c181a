/** A host whose model is the simulator's coder, in a world that changes: commits are made, tools are connected. */
import {
  blocksOf,
  createPolicy,
  isToolResult,
  type Journal,
  type JsonObject,
  type Model,
  type PriceList,
  type Profile,
  placeSections,
  type SessionState,
  SYSTEM_PROMPT_DYNAMIC_BOUNDARY,
  section,
  type TurnHost,
  volatileSection,
} from '@tidemark/core'
import type { FakeClock } from '@tidemark/core/testing'
import {
  type Coder,
  createCoder,
  createSimulator,
  type RequestRecord,
  type Simulator,
} from '@tidemark/simulator'
import { lookUpModel, modelCatalogue, pricesOn, profileFor } from '@tidemark/wire'
import { createAnthropicModel, systemIds } from 'tidemark'

/** What volatile sections, tools and parameters are made of. */
export interface World {
  commits: number
  extraTools: number
  /** A parameter that the cache is kept under is given. */
  isKeyed: boolean
}

export interface HostOptions {
  readonly journal: Journal
  readonly ttl: '5m' | '1h'
  readonly model?: string
  /** Told what each request cost, by the simulator's own account. */
  readonly onRequest?: (record: RequestRecord) => void
  /** Sections say the same until the world is changed by hand, and no tool comes by itself. */
  readonly isStill?: boolean
  /** Given the simulator behind the model. */
  readonly onSimulator?: (simulator: Simulator) => void
}

export function simulatedHost(options: HostOptions, world: World, clock: FakeClock): TurnHost {
  const { journal, ttl, model = 'claude-opus-5' } = options
  const coder = createCoder({ turns: 9, resultTokens: 300, thinkingTokens: 30 })
  const profile = knownProfile(model)
  return {
    journal,
    model: simulated(coder, clock, options),
    clock,
    ids: systemIds,
    policy: createPolicy({ cache: { ttl } }),
    profile,
    source: 'sdk',
    isInteractive: false,
    pricesOf: catalogued,
    sections: sectionsOf(world, options.isStill === true ? { now: () => 0 } : clock),
    offered: () => ({
      tools: [...coder.tools, ...lateTools(world)],
      model,
      parameters: parametersOf(world, profile),
    }),
    firstClearable,
    runTool: async (call) => {
      await clock.advance(4_000)
      if (call.name === 'Edit' && options.isStill !== true) world.commits += 1
      const { content, is_error } = coder.toolResult(call)
      return { content: String(content), ...(is_error === true ? { is_error } : {}) }
    },
  }
}

export function knownProfile(model: string): Profile {
  const looked = lookUpModel(modelCatalogue, model)
  if (!looked.found) throw new Error(looked.reason)
  return profileFor(looked.model)
}

const catalogued: PriceList = (model, at) => {
  const looked = lookUpModel(modelCatalogue, model)
  return looked.found ? pricesOn(looked.model, at) : null
}

function simulated(coder: Coder, clock: FakeClock, { onRequest, onSimulator }: HostOptions): Model {
  const settings = { script: coder.script, clock, window: 10_000_000 }
  const simulator = createSimulator(onRequest === undefined ? settings : { ...settings, onRequest })
  onSimulator?.(simulator)
  return createAnthropicModel({
    baseUrl: 'http://simulator.test',
    credentials: { style: 'key', secret: 'any' },
    fetch: simulator.fetch,
    clock,
  })
}

function sectionsOf(world: World, clock: { now(): number }): TurnHost['sections'] {
  return placeSections({
    attribution: 'x-billing: first-turn',
    identity: 'You are a coder.',
    sections: [
      section('rules', () => 'Keep to the rules of the house. '.repeat(300)),
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

function parametersOf({ isKeyed }: World, { thinking }: Profile): JsonObject {
  const isAdaptive = thinking.modes.includes('adaptive')
  return {
    max_tokens: 4_000,
    thinking: isAdaptive ? { type: 'adaptive' } : { type: 'enabled', budget_tokens: 1_024 },
    ...(isKeyed ? { tool_choice: { type: 'auto', disable_parallel_tool_use: false } } : {}),
  }
}

/** The oldest result there is. */
function firstClearable({ flat }: SessionState): string | null {
  for (const { message } of [...flat.frozen.toArray(0, 12), ...flat.tail]) {
    const result = blocksOf(message.content).find(isToolResult)
    if (result !== undefined) return result.tool_use_id
  }
  return null
}
