/** A session with state around it: files on a disk in memory, and compactions as the engine writes them. */
import type { SessionBuilder } from '@tidemark/core/testing'
import {
  arrange,
  type Carried,
  type Carrier,
  type CarryOutcome,
  type CompactionQuestion,
  carry,
  createPolicy,
  type DeepPartial,
  type Entry,
  type FileReader,
  formerCarried,
  type Policy,
  scalePolicy,
} from '../../src/index.ts'

/** Four characters a token, never none. */
export const measure = (text: string): number => Math.max(1, Math.ceil(text.length / 4))

export function contextOf(
  builder: Pick<SessionBuilder, 'session'>,
  kept: readonly Entry[] = [],
  overrides: DeepPartial<Policy> = {},
): CompactionQuestion {
  const policy = createPolicy(overrides)
  const { budgets } = scalePolicy(policy, { window: 200_000, maxOutput: 64_000 })
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

let calls = 0

/** A call and its answer. */
export function call(
  builder: SessionBuilder,
  name: string,
  input: Record<string, string | number | readonly object[]>,
  answer: { readonly text?: string; readonly isError?: boolean } = {},
): string {
  calls += 1
  const id = `call-${calls}`
  builder.assistant(`m-${id}`, [{ type: 'tool_use', id, name, input: JSON.parse(JSON.stringify(input)) }])
  const { text = 'content', isError = false } = answer
  builder.user([
    { type: 'tool_result', tool_use_id: id, content: text, ...(isError ? { is_error: true } : {}) },
  ])
  return id
}

export interface Compacted {
  readonly outcome: CarryOutcome
  readonly placed: readonly Carried[]
}

/** One compaction as the engine would commit it: boundary, what stays in front, summary, the rest. */
export async function compact(
  builder: SessionBuilder,
  carriers: readonly Carrier[],
  options: { readonly kept?: readonly Entry[]; readonly carriersFirst?: boolean } = {},
): Promise<Compacted> {
  const kept = options.kept ?? []
  const outcome = await carry(carriers, contextOf(builder, kept))
  const { front, behind } = options.carriersFirst
    ? arrange(outcome.carried, formerCarried(builder.view))
    : { front: [], behind: outcome.carried }
  const uuids = kept.map(({ record }) => record.uuid).filter((uuid) => !outcome.superseded.includes(uuid))
  builder.batch(() => {
    const summaryUuid = builder.id('summary')
    const preserved = uuids.length === 0 ? {} : { preservedMessages: { anchorUuid: summaryUuid, uuids } }
    const compactMetadata = { trigger: 'auto' as const, preTokens: 1_000, ...preserved }
    builder.notice('compact_boundary', {
      content: 'Conversation compacted',
      parentUuid: null,
      compactMetadata,
    })
    for (const { attachment } of front) builder.attachment(attachment)
    builder.user('Summary: work.', { uuid: summaryUuid, isCompactSummary: true })
    for (const { attachment } of behind) builder.attachment(attachment)
  })
  return { outcome, placed: [...front, ...behind] }
}
