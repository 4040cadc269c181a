/** The peers, in the order of the tables. */
import { aiSdk } from './ai-sdk.ts'
import type { Contender } from './contender.ts'
import { deepagentsSummary } from './deepagents.ts'
import { langchainEditing, langchainSummary } from './langchain.ts'
import { mastraFilter, mastraLimiter } from './mastra.ts'

export const peers: readonly Contender[] = [
  aiSdk,
  langchainEditing,
  mastraLimiter,
  mastraFilter,
  langchainSummary,
  deepagentsSummary,
]
