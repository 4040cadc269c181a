/**
 * `tidemark`: the public entry of the library. Exports sessions that keep a conversation within the model's context
 * window, and everything needed to create one. The other entries, such as `tidemark/logs` (past sessions), are files
 * and folders beside this one.
 *
 * @module tidemark
 */

// From the engine: the policy, context sources, the system prompt, and the types of storage and of results.
export type { CompactionResult as CompactionOutcome } from '@tidemark/core/compaction/commit-draft'
export type { CompactionDraft } from '@tidemark/core/compaction/draft'
export type { CompactionPlan } from '@tidemark/core/compaction/plan-compaction'
export type { CostTotals } from '@tidemark/core/cost/session-cost'
export type { SessionHooks } from '@tidemark/core/engine/hooks'
export type { BlobStore, Journal, NotesStore } from '@tidemark/core/engine/ports'
export { TidemarkError } from '@tidemark/core/errors'
export { exportMarkdown } from '@tidemark/core/history/export-markdown'
export type { HistoryAnswer } from '@tidemark/core/history/history-tool'
export type { Block as ContentBlock } from '@tidemark/core/log/block'
export { createPolicy, DEFAULT_POLICY, type PolicyOverrides } from '@tidemark/core/policy/create-policy'
export type { Policy } from '@tidemark/core/policy/policy'
export { type PresetName, presets } from '@tidemark/core/policy/presets'
export {
  SYSTEM_PROMPT_DYNAMIC_BOUNDARY,
  section,
  volatileSection,
} from '@tidemark/core/request/system-prompt'
export {
  agentsSource,
  hostSource,
  instructionsSource,
  planModeSource,
  planSource,
  skillsSource,
  todosSource,
} from '@tidemark/core/sources/builtin-sources'
export type { ContextSource } from '@tidemark/core/sources/context-source'
export type { Receipt } from '@tidemark/core/summary/receipt'
export { redact } from '@tidemark/core/text/redact'
export type { UndoResult as UndoOutcome } from '@tidemark/core/turn/undo'
export type { Session } from './library/session.ts'
// The entry point: `createTidemark` opens sessions.
export { createTidemark, type Tidemark } from './library/tidemark.ts'
// Models, and the types of sessions: events, messages, requests and options.
export { type AnthropicOptions, anthropic } from './models/anthropic.ts'
export type { ModelChoice } from './models/model-choice.ts'
export { type CompatibleOptions, compatible, type OpenaiOptions, openai } from './models/openai.ts'
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
export type { NextOptions, NextOutcome } from './session/next-request.ts'
export type { OpenOptions } from './session/open-session.ts'
export type { TidemarkOptions } from './session/options.ts'
export type { CompactOptions } from './session/rewrite.ts'
export type { Run, RunOptions, RunOutcome } from './session/run.ts'
// Tools for `session.run`, context sources that read the disk, and storage.
export type { Tool, ToolContext, ToolOutput, Tools } from './session/tools.ts'
export { tool } from './session/typed-tool.ts'
export { diskSources } from './sources/disk-sources.ts'
export { memoryFiles } from './sources/memory-files.ts'
export { createBlobFolder } from './storage/blob-folder.ts'
export { checkedJournal, type RawJournal } from './storage/checked-journal.ts'
export { createFileJournal } from './storage/file-journal.ts'
