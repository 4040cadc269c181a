/**
 * The public names of `@tidemark/simulator`: a local double of Anthropic's Messages API, OpenAI Responses and Chat
 * Completions, with prompt caches, compaction and faults. Scripts play the model.
 *
 * @module @tidemark/simulator
 */

// Exports that create a simulator, in memory or on a port.

export type { SimulatorOptions } from './server/options.ts'
export {
  createSimulator,
  type ServeOptions,
  type Simulator,
  type SimulatorServer,
  serve,
} from './server/simulator.ts'

// Exports for scripts: the functions that play the model.

export { type Coder, type CoderOptions, createCoder } from './scripts/coder.ts'
export { loadScenario } from './scripts/load-script.ts'
export { echo, type Reply, type Script } from './scripts/script.ts'
export { createSummarizer, withSummaries } from './scripts/summarizer.ts'

// Exports for faults, the test clock and the request log.

export type { Fault } from './faults/fault.ts'
export { createManualClock, type ManualClock } from './protocol/clock-and-ids.ts'
export { formatRequestLine, type RequestRecord } from './request-log/request-log.ts'
