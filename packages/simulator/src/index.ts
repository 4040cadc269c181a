/** The public names of the simulator, one by one. */

export type { Block, Json, JsonObject, MessageParam, MessagesBody } from './api.ts'
export type { CacheMissReason } from './cache/diagnostics.ts'
export type { KeySettings } from './cache/key.ts'
export { type Clock, type ManualClock, manualClock, systemClock } from './clock.ts'
export type { BindingSettings, Transformation } from './context/binding.ts'
export type { AppliedEdit } from './context/edits.ts'
export { APPLIED_HEADER } from './faults/apply.ts'
export type { ErrorEventFault, Fault, FaultPlace, StatusFault } from './faults/fault.ts'
export { type ParsedFault, parseFault } from './faults/parse-fault.ts'
export { FAULT_HEADER } from './faults/requested.ts'
export type { ScheduledFault } from './faults/schedule.ts'
export { type ModelTable, modelTable, type SimulatedModel, simulatedModel } from './models.ts'
export type { SimulatorOptions } from './options.ts'
export {
  ADVERSARY_NAMES,
  type AdversaryName,
  adversaries,
  INJECTED,
  onSummaryRequest,
} from './script/adversaries.ts'
export {
  CODER_DEFAULTS,
  type Coder,
  type CoderOptions,
  type CoderSettings,
  createCoder,
} from './script/coder.ts'
export { echo } from './script/echo.ts'
export { type LoadedScript, loadScript } from './script/load-script.ts'
export { type NamedScript, namedScript, SCRIPT_NAMES } from './script/named-script.ts'
export { prose } from './script/prose.ts'
export { lastResults, lastUserText, type ToolCall } from './script/said.ts'
export type { Condition } from './script/scenario/condition.ts'
export { type ParsedScenario, parseScenario } from './script/scenario/parse-scenario.ts'
export { playScenario, type Scenario, type ScenarioTurn } from './script/scenario.ts'
export type {
  Delays,
  Reply,
  ReplyBlock,
  Script,
  ScriptContext,
  ScriptRequest,
  StopReason,
} from './script/script.ts'
export { SESSION_HEADER } from './script/session-key.ts'
export { createSummariser, type SummariserOptions, summariser, withSummaries } from './script/summariser.ts'
export { isSummaryRequest } from './script/summary/summary-request.ts'
export { lineOf } from './seeing/line.ts'
export type {
  CacheAnalysis,
  CacheMiss,
  CostFigures,
  Divergence,
  MissReason,
  RequestRecord,
  TokenFigures,
} from './seeing/record.ts'
export { type ServedSimulator, type ServeOptions, serveSimulator } from './serve.ts'
export type { Account, Accounts } from './server/account.ts'
export type { RateLimits } from './server/rate-limit.ts'
export { createSimulator, type Simulator } from './simulator.ts'
