/**
 * The rules of the Messages API, in both versions a client may name, for one model. Where the catalogue does
 * not know, the rule that refuses more is taken: what passes under it is accepted either way.
 */
import type { Profile, ProfileOverrides } from '@tidemark/core'
import type { ModelEntry } from '../catalogue/model-entry.ts'
import { cacheOf, sizesOf, thinkingOf, windowOf } from './model-limits.ts'

type BetaRule = Profile['betas'][number]
type BlockRefusal = Profile['refusedBlocks'][number]

export type AnthropicVersion = '2023-06-01' | '2026-10-21'

const CONTEXT_MANAGEMENT = 'context-management-2025-06-27'
const THRESHOLD_COMPACTION = 'compact-2026-01-12'
const ON_DEMAND_COMPACTION = 'compact-2026-09-04'
const CLEAR_TOOL_USES = 'clear_tool_uses_20250919'
const CLEAR_THINKING = 'clear_thinking_20251015'
const COMPACT = 'compact_20260112'

/** What the API refuses as an extra input unless its beta is named. */
const BETAS: readonly BetaRule[] = [
  { where: 'field', name: 'context_management', betas: [CONTEXT_MANAGEMENT, THRESHOLD_COMPACTION] },
  { where: 'edit', name: CLEAR_TOOL_USES, betas: [CONTEXT_MANAGEMENT] },
  { where: 'edit', name: CLEAR_THINKING, betas: [CONTEXT_MANAGEMENT] },
  { where: 'edit', name: COMPACT, betas: [THRESHOLD_COMPACTION] },
  { where: 'block', name: 'compaction', betas: [ON_DEMAND_COMPACTION, THRESHOLD_COMPACTION] },
  { where: 'field', name: 'thinking.block_binding', betas: ['thinking-binding-controls-2026-08-01'] },
  { where: 'field', name: 'thread', betas: ['message-threads-2026-08-12'] },
  { where: 'field', name: 'output_config.task_budget', betas: ['task-budgets-2026-03-13'] },
  { where: 'field', name: 'speed', betas: ['fast-mode-2026-02-01'] },
  { where: 'field', name: 'fallbacks', betas: ['server-side-fallback-2026-07-01'] },
  { where: 'message-field', name: 'clear_at', betas: ['mid-conversation-system-clear-at-2026-08-21'] },
  { where: 'message-field', name: 'output_config', betas: ['mid-conversation-output-config-2026-07-01'] },
  {
    where: 'block',
    name: 'tool_addition',
    betas: ['mid-conversation-tool-changes-2026-07-01', 'inline-tools-2026-09-15'],
  },
  {
    where: 'block',
    name: 'tool_removal',
    betas: ['mid-conversation-tool-changes-2026-07-01', 'inline-tools-2026-09-15'],
  },
]

const SAMPLING = ['temperature', 'top_p', 'top_k']
const NO_PICTURES: readonly BlockRefusal[] = [{ role: 'assistant', type: 'image' }]
const REFUSED_BLOCKS: Readonly<Record<AnthropicVersion, readonly BlockRefusal[]>> = {
  '2023-06-01': NO_PICTURES,
  '2026-10-21': [
    ...NO_PICTURES,
    { role: 'assistant', type: 'document' },
    { role: 'user', type: 'text', field: 'citations' },
  ],
}

export function anthropicProfile(model: ModelEntry, version: AnthropicVersion): ProfileOverrides {
  const { capabilities } = model
  const isPlaced = capabilities.systemMessages === true
  return {
    name: `${model.id} (anthropic ${version})`,
    ...windowOf(model),
    roles: {
      first: 'user',
      consecutive: 'merged',
      prefill: capabilities.prefill === true ? 'allowed' : 'refused',
      system: isPlaced ? 'placed' : 'refused',
      turnScoped: isPlaced,
      messageEffort: capabilities.messageEffort === true,
    },
    tools: {
      namePattern: '^[a-zA-Z0-9_-]{1,128}$',
      forcedChoice: capabilities.forcedToolChoice === true ? 'allowed' : 'refused',
    },
    thinking: {
      ...thinkingOf(model),
      budgetOverBetas: ['interleaved-thinking-2025-05-14'],
      closing: 'not-at-end',
      signed: true,
    },
    cache: { ...cacheOf(model), automatic: true, collapsesToolRuns: true },
    sizes: sizesOf(model),
    ...editsOf(model),
    capabilities: {
      cacheDiagnostics: true,
      toolChanges: capabilities.toolChanges === true,
      prewarm: true,
    },
    betas: BETAS,
    refusedFields: version === '2026-10-21' || capabilities.sampling !== true ? SAMPLING : [],
    refusedBlocks: REFUSED_BLOCKS[version],
  }
}

function editsOf({ capabilities }: ModelEntry): Pick<ProfileOverrides, 'contextEdits' | 'compaction'> {
  const edits = capabilities.contextEditing === true
  const compacts = capabilities.thresholdCompaction === true
  const onDemand = capabilities.onDemandCompaction === true
  return {
    contextEdits: {
      clearThinking: edits ? CLEAR_THINKING : null,
      clearToolUses: edits ? CLEAR_TOOL_USES : null,
      compact: compacts ? COMPACT : null,
    },
    compaction: {
      blocks: compacts || onDemand,
      onDemand,
      beta: onDemand ? ON_DEMAND_COMPACTION : null,
    },
  }
}
