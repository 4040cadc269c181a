/**
 * `tidemark`: the public entry of the library. Exports sessions that keep a conversation within the model's context
 * window, and everything needed to create one. Other entries: `tidemark/logs` (past sessions), `tidemark/catalogue`
 * (models and prices), `tidemark/testing`.
 *
 * @module tidemark
 */

// Types of the policy, of context sources, and of the storage interfaces.
export {
  agentsSource,
  type BlobStore,
  type Block as ContentBlock,
  type CompactionDraft,
  type CompactionPlan,
  type CompactionResult as CompactionOutcome,
  type ContextSource,
  type CostTotals,
  createPolicy,
  DEFAULT_POLICY,
  exportMarkdown,
  type HistoryAnswer,
  hostSource,
  instructionsSource,
  type Journal,
  type NotesStore,
  type Policy,
  type PolicyOverrides,
  type PresetName,
  planModeSource,
  planSource,
  presets,
  type Receipt,
  redact,
  type SessionHooks,
  SYSTEM_PROMPT_DYNAMIC_BOUNDARY,
  section,
  skillsSource,
  TidemarkError,
  todosSource,
  type UndoResult as UndoOutcome,
  volatileSection,
} from '@tidemark/core'
// Functions for the policy, for context sources (state that is re-attached after a compaction), and for Markdown
// export.
export { type AnthropicOptions, anthropic } from './models/anthropic.ts'
export type { ModelChoice } from './models/model-choice.ts'
export type { ContextBreakdown, ContextRemaining } from './session/context-usage.ts'
export type { EventOf, SessionEvent, SessionEventType } from './session/events.ts'
export {
  assistant,
  attachment,
  type Message,
  type MessageInput,
  toolResult,
  user,
} from './session/messages.ts'
export type { NextOptions, NextOutcome } from './session/next.ts'
export type { OpenOptions } from './session/open-session.ts'
export type { TidemarkOptions } from './session/options.ts'
export type { CompactOptions } from './session/rewrite.ts'
export type { Run, RunOptions, RunOutcome } from './session/run.ts'
export type { Session } from './session/session.ts'
// Types of the `Tidemark` object and of the options of `open`.
export { createTidemark, type Tidemark } from './session/tidemark.ts'
// The entry point: `createTidemark` opens sessions.
export type { Tool, ToolContext, ToolOutput, Tools } from './session/tools.ts'
export { tool } from './session/typed-tool.ts'
export { diskSources } from './sources/disk-sources.ts'
export { memoryFiles } from './sources/memory-files.ts'
export { createBlobFolder } from './storage/blob-folder.ts'
export { createFileJournal } from './storage/file-journal.ts'
