/**
 * `tidemark`: the library. Sessions that keep a conversation within the model's context window, and what they are made
 * with. Logs of past sessions: `tidemark/logs`. Models and prices: `tidemark/catalogue`. Tests: `tidemark/testing`.
 */

// Types: policy, sources and ports
export type {
  BlobStore,
  Block as ContentBlock,
  CommitResult as CompactionOutcome,
  CompactHooks,
  CompactionDraft,
  CompactionPlan,
  ContextSource,
  CostTotals,
  HistoryAnswer,
  Journal,
  Policy,
  PolicyOverrides,
  Receipt,
  UndoResult as UndoOutcome,
} from '@tidemark/core'
// Policy
// Context sources: what is re-attached after a compaction
// Storage and export
export {
  agentsSource,
  createPolicy,
  DEFAULT_POLICY,
  exportMarkdown,
  hostSource,
  instructionsSource,
  planModeSource,
  planSource,
  redact,
  section,
  skillsSource,
  TidemarkError,
  todosSource,
} from '@tidemark/core'
export type { AnthropicOptions } from './models/anthropic.ts'
export { anthropic } from './models/anthropic.ts'
export type { ModelChoice } from './models/model-choice.ts'
export type { EventOf, SessionEvent, SessionEventType } from './session/events.ts'
export type { Message, MessageInput } from './session/messages.ts'
export { assistant, attachment, toolResult, user } from './session/messages.ts'
export type { NextOptions, NextOutcome } from './session/next.ts'
export type { TidemarkOptions } from './session/options.ts'
// Types: rewrites and figures
export type { CompactOptions, PinOutcome } from './session/rewrite.ts'
export type { Run, RunOptions, RunOutcome } from './session/run.ts'
export type { Session } from './session/session.ts'
export type { ContextBreakdown, ContextRemaining } from './session/status.ts'
// Types: sessions
export type { OpenOptions, Tidemark } from './session/tidemark.ts'
// Sessions
export { createTidemark } from './session/tidemark.ts'
export type { Tool, ToolContext, ToolOutput, Tools } from './session/tools.ts'
export { diskSources } from './sources/disk-sources.ts'
export { createBlobFolder } from './storage/blob-folder.ts'
export { createFileJournal } from './storage/file-journal.ts'
