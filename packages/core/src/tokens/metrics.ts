/** The account as flat figures for telemetry. The names are exact. */
import { type Accounting, duplicateReads, type Tally } from './breakdown.ts'

export function accountingMetrics(accounting: Accounting): Readonly<Record<string, number>> {
  const duplicates = duplicateReads(accounting)
  const wasted = duplicates.reduce((sum, read) => sum + read.tokens, 0)
  return {
    total_tokens: accounting.total,
    human_message_tokens: accounting.human,
    assistant_message_tokens: accounting.assistantText,
    local_command_output_tokens: accounting.localCommandOutput,
    other_tokens: accounting.other,
    ...named(
      accounting.attachments,
      (type) => `attachment_${type}_count`,
      (tally) => tally.count,
    ),
    ...named(
      accounting.toolRequests,
      (tool) => `tool_request_${tool}_tokens`,
      (tally) => tally.tokens,
    ),
    ...named(
      accounting.toolResults,
      (tool) => `tool_result_${tool}_tokens`,
      (tally) => tally.tokens,
    ),
    duplicate_read_tokens: wasted,
    duplicate_read_file_count: duplicates.length,
    ...percents(accounting, wasted),
  }
}

function named(
  tallies: ReadonlyMap<string, Tally>,
  name: (key: string) => string,
  figure: (tally: Tally) => number,
): Readonly<Record<string, number>> {
  return Object.fromEntries([...tallies].map(([key, tally]) => [name(key), figure(tally)]))
}

/** Whole per cents, and only where there is something to be a share of. */
function percents(accounting: Accounting, wasted: number): Readonly<Record<string, number>> {
  if (accounting.total <= 0) return {}
  const share = (tokens: number): number => Math.round((tokens / accounting.total) * 100)
  return {
    human_message_percent: share(accounting.human),
    assistant_message_percent: share(accounting.assistantText),
    local_command_output_percent: share(accounting.localCommandOutput),
    duplicate_read_percent: share(wasted),
    tool_request_percent: share(sumOf(accounting.toolRequests)),
    tool_result_percent: share(sumOf(accounting.toolResults)),
  }
}

function sumOf(tallies: ReadonlyMap<string, Tally>): number {
  return [...tallies.values()].reduce((sum, tally) => sum + tally.tokens, 0)
}
