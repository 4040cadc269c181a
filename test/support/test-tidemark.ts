/** Tidemark on the simulator, in this process: what tests of the library stand on. */
import {
  type Coder,
  createCoder,
  createManualClock,
  createSimulator,
  type ManualClock,
  type Script,
  type Simulator,
  withSummaries,
} from '@tidemark/simulator'
import {
  anthropic,
  createTidemark,
  type RunOptions,
  type Session,
  type SessionEvent,
  type Tidemark,
  type TidemarkOptions,
} from 'tidemark'
import { createDeadlines } from 'tidemark/internal'
import { createMemoryJournal, type MemoryStore } from 'tidemark/testing'

export interface TestTidemark {
  readonly tide: Tidemark
  readonly coder: Coder
  readonly simulator: Simulator
  /** The coder's tools, as `run` takes them. */
  readonly tools: RunOptions
  /** The bodies of the requests, as they were sent. */
  readonly bodies: readonly string[]
}

export interface TestTidemarkOptions extends Partial<TidemarkOptions> {
  readonly modelId?: string
  /** The address that the model is called at; the simulator answers whatever it is. */
  readonly baseUrl?: string
  /** What the simulator answers; the coder with its summaries unless given. */
  readonly script?: Script
  readonly turns?: number
  readonly resultTokens?: number
  readonly thinkingTokens?: number
  /** Tokens of the window, as the engine knows it. */
  readonly window?: number
  /** Tokens of the window as the provider really has it; the simulator's own unless given. */
  readonly realWindow?: number
  readonly maxOutput?: number
  /** Seed of the simulator. Processes that write to one session need different ones, or their responses share ids. */
  readonly seed?: string
}

export function createTestTidemark(options: TestTidemarkOptions = {}): TestTidemark {
  const { modelId = 'claude-sonnet-5-5', turns = 4, resultTokens = 300, maxOutput = 4_000 } = options
  const { window, realWindow, thinkingTokens, script, baseUrl, seed, ...given } = options
  const coder = createCoder({
    turns,
    resultTokens,
    ...(thinkingTokens === undefined ? {} : { thinkingTokens }),
  })
  const simulator = createSimulator({
    script: script ?? withSummaries(coder.script),
    ...(given.clock === undefined ? {} : { clock: given.clock }),
    ...(seed === undefined ? {} : { seed }),
    ...(realWindow === undefined ? {} : { window: realWindow }),
  })
  const bodies: string[] = []
  const fetch: typeof globalThis.fetch = (input, init) => {
    bodies.push(String(init?.body))
    return simulator.fetch(input instanceof Request ? input : String(input), init)
  }
  const isStored = given.home !== undefined || given.journal !== undefined
  const tide = createTidemark({
    model: anthropic(modelId, {
      apiKey: 'any',
      fetch,
      ...(baseUrl === undefined ? {} : { baseUrl }),
      ...(window === undefined ? {} : { window, maxOutput }),
    }),
    ...(isStored ? {} : { memory: true }),
    env: {},
    ...own(given),
  })
  const tools: RunOptions = { tools: coder.tools, runTool: (call) => runCoderTool(coder, call) }
  return { tide, coder, simulator, tools, bodies }
}

/** What is Tidemark's own among the options. */
function own(options: TestTidemarkOptions): Partial<TidemarkOptions> {
  const { modelId: _model, turns: _turns, resultTokens: _tokens, maxOutput: _output, ...rest } = options
  return rest
}

function runCoderTool(coder: Coder, call: Parameters<Coder['toolResult']>[0]) {
  const { content, is_error } = coder.toolResult(call)
  return { content: String(content), isError: is_error === true }
}

export interface TestSession extends TestTidemark {
  readonly session: Session
  readonly clock: ManualClock
  readonly store: MemoryStore
  readonly events: readonly SessionEvent[]
}

export const SESSION = 'talk'

const TOOLS = {
  Read: {
    description: 'Reads a file.',
    inputSchema: { type: 'object', properties: { file_path: { type: 'string' } } },
    run: (): string => 'nothing',
  },
}

/** A session on a clock that stands still, in a journal in memory, with every event it emits. */
export async function openTestSession(
  options: TestTidemarkOptions & { readonly window: number },
): Promise<TestSession> {
  const { window, realWindow = window } = options
  const clock = createManualClock()
  const store: MemoryStore = new Map()
  const events: SessionEvent[] = []
  const made = createTestTidemark({
    modelId: 'claude-sonnet-4-5',
    journal: createMemoryJournal(store),
    blobs: null,
    clock,
    deadlines: createDeadlines(clock),
    system: 'You are a careful engineer.',
    onEvent: (event) => void events.push(event),
    maxOutput: Math.min(8_000, Math.floor(window / 8)),
    ...options,
    realWindow,
  })
  return { ...made, session: await made.tide.open(SESSION, { tools: TOOLS }), clock, store, events }
}
