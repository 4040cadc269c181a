/** What filled the main conversation: classes, tools, files read again. Every block counts once, however often it was sent. */
import {
  type Accounting,
  duplicateReads,
  isKnown,
  openAccount,
  type SessionRecord,
  type Tally,
} from '@tidemark/core'
import type { EstimateBlock } from './estimates.ts'
import { createRepeatedLines } from './repeated-lines.ts'
import type { RepeatedRead, TokensByKind, ToolShare } from './report.ts'

export interface Contents {
  readonly tokensByClass: TokensByKind
  readonly byTool: readonly ToolShare[]
  readonly duplicateReads: readonly RepeatedRead[]
}

/** Tools that read a file, by the names the known hosts give them. */
const READ_TOOLS: readonly string[] = ['Read', 'read', 'read_file', 'view_file', 'NotebookRead']

export function contentsOf(records: Iterable<SessionRecord>, estimate: EstimateBlock): Contents {
  const account = openAccount({ estimate, readTools: READ_TOOLS })
  const lines = createRepeatedLines()
  for (const record of records) if (isKnown(record) && !lines.isRepeated(record)) account.add(record)
  const { standing } = account
  return {
    tokensByClass: byClass(standing),
    byTool: byTool(standing),
    duplicateReads: duplicateReads(standing),
  }
}

function byClass(standing: Accounting): TokensByKind {
  const { human, assistantText, thinking, localCommandOutput, summaries, other, total, media } = standing
  return {
    human,
    assistantText,
    thinking,
    toolRequests: sum(standing.toolRequests),
    toolResults: sum(standing.toolResults),
    localCommandOutput,
    attachments: sum(standing.attachments),
    media: media.tokens,
    summaries,
    other,
    total,
  }
}

/** Largest first. */
function byTool({ toolRequests, toolResults }: Accounting): readonly ToolShare[] {
  const names = [...new Set([...toolRequests.keys(), ...toolResults.keys()])]
  const shares = names.map((tool) => ({
    tool,
    calls: toolRequests.get(tool)?.count ?? 0,
    requestTokens: toolRequests.get(tool)?.tokens ?? 0,
    resultTokens: toolResults.get(tool)?.tokens ?? 0,
  }))
  return shares.sort((one, other) => totalOf(other) - totalOf(one) || (one.tool < other.tool ? -1 : 1))
}

function totalOf({ requestTokens, resultTokens }: ToolShare): number {
  return requestTokens + resultTokens
}

function sum(tallies: ReadonlyMap<string, Tally>): number {
  return [...tallies.values()].reduce((total, { tokens }) => total + tokens, 0)
}
