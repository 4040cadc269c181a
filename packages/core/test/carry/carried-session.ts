/** A session whose files are on a disk in memory, and compactions that carry state over, as the engine writes them. */
import type { SessionBuilder } from '@tidemark/core/testing'
import type { ContextEntry } from '../../src/context/context-entry.ts'
import { createPolicy } from '../../src/policy/create-policy.ts'
import type { Policy } from '../../src/policy/policy.ts'
import type { DeepPartial } from '../../src/policy/policy-fields.ts'
import { computeScaledLimits } from '../../src/policy/scale-policy.ts'
import {
  arrangeAttachmentsAroundSummary,
  collectSourceAttachments,
  findLastCompactionAttachments,
} from '../../src/sources/collect-sources.ts'
import type {
  CollectedSources,
  CollectSourcesInput,
  ContextSource,
  SourceAttachment,
} from '../../src/sources/context-source.ts'
import type { FileReader } from '../../src/sources/file-source.ts'

/** Four characters a token, never none. */
export const measure = (text: string): number => Math.max(1, Math.ceil(text.length / 4))

export function createCarryContext(
  builder: Pick<SessionBuilder, 'session'>,
  kept: readonly ContextEntry[] = [],
  overrides: DeepPartial<Policy> = {},
): CollectSourcesInput {
  const policy = createPolicy(overrides)
  const { budgets } = computeScaledLimits(policy, { window: 200_000, maxOutput: 64_000 })
  return { session: builder.session, kept, policy, budgets, measure }
}

/** A disk in memory: a path and its text, or the reason why it cannot be read. */
export class Disk implements FileReader {
  readonly files = new Map<string, string>()
  readonly links = new Map<string, string>()
  readonly reads: string[] = []

  async read(path: string, limitBytes: number) {
    this.reads.push(path)
    const realPath = this.links.get(path) ?? path
    const text = this.files.get(realPath)
    if (text === undefined) return { ok: false as const, why: 'there is no such file' }
    const isWhole = text.length <= limitBytes
    return { ok: true as const, text: text.slice(0, limitBytes), bytes: text.length, isWhole, realPath }
  }
}

/** A tool call and its result. */
export function addCall(
  builder: SessionBuilder,
  name: string,
  input: Record<string, string | number | readonly object[]>,
  result: { readonly text?: string; readonly isError?: boolean } = {},
): string {
  const { text = 'content', isError = false } = result
  return builder.call(name, JSON.parse(JSON.stringify(input)), text, { isError })
}

export interface CompactResult {
  readonly outcome: CollectedSources
  readonly placed: readonly SourceAttachment[]
}

/** One compaction as the engine would commit it, with what the carriers render. */
export async function compactWith(
  builder: SessionBuilder,
  carriers: readonly ContextSource[],
  options: { readonly kept?: readonly ContextEntry[]; readonly carriersFirst?: boolean } = {},
): Promise<CompactResult> {
  const kept = options.kept ?? []
  const outcome = await collectSourceAttachments(carriers, createCarryContext(builder, kept))
  const { front, behind } = options.carriersFirst
    ? arrangeAttachmentsAroundSummary(outcome.carried, findLastCompactionAttachments(builder.view))
    : { front: [], behind: outcome.carried }
  const uuids = kept.map(({ record }) => record.uuid).filter((uuid) => !outcome.superseded.includes(uuid))
  const attachments = (carried: readonly SourceAttachment[]) => carried.map(({ attachment }) => attachment)
  builder.compact('Summary: work.', { kept: uuids, front: attachments(front), behind: attachments(behind) })
  return { outcome, placed: [...front, ...behind] }
}
