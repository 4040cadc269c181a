/** The names of the betas that gate a feature here, and which request has asked for which. */
export const BETA = {
  contextManagement: 'context-management-2025-06-27',
  thresholdCompaction: 'compact-2026-01-12',
  onDemandCompaction: 'compact-2026-09-04',
  thinkingBinding: 'thinking-binding-controls-2026-08-01',
  thinkingTokenCount: 'thinking-token-count-2026-05-13',
  thinkingUpdates: 'thinking-display-updates-2026-08-18',
  toolChanges: 'mid-conversation-tool-changes-2026-07-01',
  inlineTools: 'inline-tools-2026-09-15',
  mcpListing: 'mcp-client-2026-09-15',
  clearAt: 'mid-conversation-system-clear-at-2026-08-21',
  messageOutputConfig: 'mid-conversation-output-config-2026-07-01',
  threads: 'message-threads-2026-08-12',
  taskBudgets: 'task-budgets-2026-03-13',
  interleavedThinking: 'interleaved-thinking-2025-05-14',
  advisor: 'advisor-tool-2026-03-01',
  fallback: 'server-side-fallback-2026-07-01',
  fastMode: 'fast-mode-2026-02-01',
} as const

/** Betas come comma-joined in one header, or in several of the same name. */
export function betasOf(header: string | null | undefined): ReadonlySet<string> {
  const names = (header ?? '').split(',').map((name) => name.trim())
  return new Set(names.filter((name) => name !== ''))
}

/** Whether a beta of a family (`mcp-client-…`, whatever its date) is among them. */
export function hasFamily(betas: ReadonlySet<string>, family: string): boolean {
  for (const beta of betas) if (beta.startsWith(family)) return true
  return false
}
