/** The public names of the simulator, one by one. */

export type { AppliedEdit } from './context/context-edits.ts'
export type { BindingSettings, Transformation } from './context/thinking-binding.ts'
export {
  APPLIED_HEADER,
  type ErrorEventFault,
  type Fault,
  type FaultPlace,
  type StatusFault,
} from './faults/fault.ts'
export { FAULT_HEADER, type ScheduledFault } from './faults/fault-schedule.ts'
export { type ParsedFault, parseFault } from './faults/parse-fault.ts'
export type { KeySettings } from './prompt-cache/cache-key.ts'
export type { CacheMissReason } from './prompt-cache/diagnostics.ts'
export type { Block, Json, JsonObject, MessageParam, MessagesBody } from './protocol/api.ts'
export { type Clock, type ManualClock, manualClock, systemClock } from './protocol/clock-and-ids.ts'
export { type ModelTable, modelTable, type SimulatedModel, simulatedModel } from './protocol/models.ts'
export {
  type CacheAnalysis,
  type CacheMiss,
  type CostFigures,
  type Divergence,
  lineOf,
  type MissReason,
  type RequestRecord,
  type TokenFigures,
} from './request-log/request-log.ts'
export {
  ADVERSARY_NAMES,
  type AdversaryName,
  adversaries,
  INJECTED,
  onSummaryRequest,
} from './scripts/adversarial-models.ts'
export {
  CODER_DEFAULTS,
  type Coder,
  type CoderOptions,
  type CoderSettings,
  createCoder,
} from './scripts/coder.ts'
export { prose } from './scripts/filler-text.ts'
export { type LoadedScript, loadScript } from './scripts/load-script.ts'
export { type NamedScript, namedScript, SCRIPT_NAMES } from './scripts/named-scripts.ts'
export { type ParsedScenario, parseScenario } from './scripts/read-scenario.ts'
export { type Condition, playScenario, type Scenario, type ScenarioTurn } from './scripts/scenario.ts'
export {
  type Delays,
  echo,
  isSummaryRequest,
  lastResults,
  lastUserText,
  type Reply,
  type ReplyBlock,
  type Script,
  type ScriptContext,
  type ScriptRequest,
  SESSION_HEADER,
  type StopReason,
  type ToolCall,
} from './scripts/script.ts'
export { createSummariser, type SummariserOptions, summariser, withSummaries } from './scripts/summarizer.ts'
export type { Account, Accounts, RateLimits } from './server/accounts.ts'
export type { SimulatorOptions } from './server/options.ts'
export {
  createSimulator,
  type ServedSimulator,
  type ServeOptions,
  type Simulator,
  serveSimulator,
} from './server/simulator.ts'
