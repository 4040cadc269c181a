/** A Tidemark on the simulator's coder, in this process: what the tests of the library stand on. */
import { type Coder, createCoder, createSimulator, type Simulator, withSummaries } from '@tidemark/simulator'
import { anthropic, createTidemark, type RunOptions, type Tidemark, type TidemarkOptions } from 'tidemark'

export interface Simulated {
  readonly tide: Tidemark
  readonly coder: Coder
  readonly simulator: Simulator
  /** The coder's tools, as `run` takes them. */
  readonly tools: RunOptions
}

export interface SimulatedOptions extends Partial<TidemarkOptions> {
  readonly modelId?: string
  readonly turns?: number
  readonly resultTokens?: number
  readonly window?: number
  readonly thinkingTokens?: number
}

export function simulated(options: SimulatedOptions = {}): Simulated {
  const {
    modelId = 'claude-sonnet-5-5',
    turns = 4,
    resultTokens = 300,
    window,
    thinkingTokens,
    ...rest
  } = options
  const coder = createCoder({
    turns,
    resultTokens,
    ...(thinkingTokens === undefined ? {} : { thinkingTokens }),
  })
  const simulator = createSimulator({ script: withSummaries(coder.script) })
  const isStored = rest.home !== undefined || rest.journal !== undefined
  const tide = createTidemark({
    model: anthropic(modelId, {
      apiKey: 'any',
      fetch: simulator.fetch,
      ...(window === undefined ? {} : { window, maxOutput: 4_000 }),
    }),
    ...(isStored ? {} : { memory: true }),
    env: {},
    ...rest,
  })
  const tools: RunOptions = { tools: coder.tools, runTool: (call) => answer(coder, call) }
  return { tide, coder, simulator, tools }
}

function answer(coder: Coder, call: Parameters<Coder['toolResult']>[0]) {
  const { content, is_error } = coder.toolResult(call)
  return { content: String(content), isError: is_error === true }
}
