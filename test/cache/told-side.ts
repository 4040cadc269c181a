/** The conversation's own side: its log, its view, what has been told of the prefix, and the request that follows. */
import {
  type FlattenedContext,
  flattenContext,
  listTracedMessages,
  type TracedMessage,
} from '@tidemark/core/context/flatten-context'
import { mustDelayUpdate } from '@tidemark/core/engine/announce-updates'
import { type Block, isToolResult, toBlocks } from '@tidemark/core/log/block'
import type { JsonObject } from '@tidemark/core/log/json'
import { AppendList } from '@tidemark/core/log/persistent-collections'
import type { PrefixSnapshot } from '@tidemark/core/log/record'
import type { TokenUsage } from '@tidemark/core/log/reply-report'
import { createPolicy } from '@tidemark/core/policy/create-policy'
import type { ProviderProfile } from '@tidemark/core/policy/provider-profile'
import { type AssembledRequest, assembleRequest } from '@tidemark/core/request/build-request'
import {
  type FirstClearableState,
  NO_FIRST_CLEARABLE,
  updateFirstClearable,
} from '@tidemark/core/request/cache-markers'
import {
  buildRequestPrefix,
  type CurrentSnapshot,
  createPrefixSnapshot,
  type DesiredPrefix,
  emptyKnownPrefix,
  type KnownPrefix,
  updateKnownPrefix,
} from '@tidemark/core/request/prefix-snapshot'
import {
  createSnapshotRecord,
  type PrefixChange,
  planPrefixChange,
  type RecordBody,
} from '@tidemark/core/request/prefix-updates'
import {
  orderPromptSections,
  SYSTEM_PROMPT_DYNAMIC_BOUNDARY,
  section,
} from '@tidemark/core/request/system-prompt'
import { SessionBuilder } from '@tidemark/core/testing'

export interface ToldSideOptions {
  readonly profile: ProviderProfile
  readonly ttl: '5m' | '1h'
  readonly clears: boolean
  readonly tools: readonly JsonObject[]
  readonly model: string
  readonly parameters: JsonObject
}

/** What one request is to say otherwise than the conversation would. */
export interface Ask {
  readonly epoch?: (epoch: PrefixSnapshot) => PrefixSnapshot
  readonly messages?: (all: readonly TracedMessage[]) => readonly TracedMessage[]
  readonly ttl?: '5m' | '1h'
  readonly extra?: JsonObject
}

const MARKERS = createPolicy({}).cache.markers
const WORDS = 'Keep to the rules of the house, and say what you did. '

export class ToldSide {
  readonly builder: SessionBuilder = new SessionBuilder('cache')
  readonly #options: ToldSideOptions
  present: DesiredPrefix
  changes: readonly PrefixChange[] = []
  #told: KnownPrefix = emptyKnownPrefix()
  #flat: FlattenedContext | undefined
  #edge: FirstClearableState = NO_FIRST_CLEARABLE
  #sent: AssembledRequest | undefined
  #answeredAt = -1
  #answeredRequest: number | null = null

  constructor(options: ToldSideOptions) {
    this.#options = options
    const { tools, model, parameters, ttl } = options
    this.present = { sections: SECTIONS, tools, model, parameters, ttl: { name: ttl, because: 'cache.ttl' } }
  }

  get flat(): FlattenedContext {
    this.#advance()
    return this.#flat ?? flattenContext(this.builder.view)
  }

  /** The request that would go out now, with what `ask` changes of it. */
  request(ask: Ask = {}): AssembledRequest {
    const standing = this.#settled()
    const { profile, clears, ttl } = this.#options
    const flat = this.flat
    const { rewrittenAt } = this.builder.view
    const isAnswered = this.#answeredAt > rewrittenAt
    this.#edge = updateFirstClearable(this.#edge, {
      firstClearable: this.clearable[0] ?? null,
      position: this.builder.records.length,
      answeredAt: this.#answeredRequest,
      isAnswered,
      restore: () => null,
    })
    const question = {
      front: buildRequestPrefix(changed(standing, ask.epoch), { previous: this.#sent?.front }),
      flat: ask.messages === undefined ? flat : rewritten(flat, ask.messages),
      profile,
      markers: MARKERS,
      ttl: ask.ttl ?? ttl,
      clears,
      edge: this.#edge,
      ...(ask.extra === undefined ? {} : { extra: ask.extra }),
    }
    this.#sent = assembleRequest(question, this.#sent)
    return this.#sent
  }

  respond({ content, usage }: { readonly content: readonly Block[]; readonly usage: TokenUsage }): void {
    const id = this.builder.id('msg')
    const message = { id, role: 'assistant' as const, model: this.present.model, content }
    this.#answeredRequest = this.builder.records.length
    this.builder.assistant(id, content, { message, usage })
    this.#answeredAt = this.builder.session.newestRecord
  }

  /** Calls whose results can still be cleared, oldest first: all but the newest three and the stubs. */
  get clearable(): readonly string[] {
    const ids = this.builder.view.entries.toArray().flatMap(({ record, cleared }) => {
      if (record.type !== 'user') return []
      const results = toBlocks(record.message.content).filter(isToolResult)
      const gone = new Set(cleared?.results.map(({ id }) => id))
      return results.map(({ tool_use_id }) => tool_use_id).filter((id) => !gone.has(id))
    })
    return ids.slice(0, -3)
  }

  /** Tier 1 at work: the results of these calls are no longer shown. */
  clear(compactedToolIds: readonly string[]): void {
    const figures = { trigger: 'auto', way: 'budget', preTokens: 0, tokensSaved: 0 } as const
    const microcompactMetadata = { ...figures, compactedToolIds, clearedAttachmentUUIDs: [] }
    this.builder.notice('microcompact_boundary', { microcompactMetadata })
  }

  /** Tier 1 by the provider: the results are deleted from the prefix it has cached. */
  delete(references: readonly string[]): void {
    const edits = references.map((reference) => ({ type: 'delete', cache_reference: reference }))
    this.builder.user([{ type: 'cache_edits', edits }], { isMeta: true })
  }

  /** Tier 2 at work: a summary in place of all. */
  compact(): void {
    const { builder } = this
    builder.batch(() => {
      const uuid = builder.id('boundary')
      const compactMetadata = { trigger: 'auto' as const, preTokens: 1 }
      builder.notice('compact_boundary', {
        uuid,
        parentUuid: null,
        logicalParentUuid: builder.tip,
        compactMetadata,
      })
      builder.user(`Summary: ${WORDS.repeat(40)}`, { parentUuid: uuid, isCompactSummary: true })
    })
  }

  #advance(): void {
    const { session, view } = this.builder
    this.#told = updateKnownPrefix(this.#told, session, view)
    this.#flat = flattenContext(view, this.#flat)
  }

  /** The epoch that stands, once all that is new about the prefix has been told. */
  #settled(): CurrentSnapshot {
    this.#advance()
    const { profile } = this.#options
    if (this.#told.current === null)
      this.#append([createSnapshotRecord(createPrefixSnapshot(this.present, profile))])
    const changes: PrefixChange[] = []
    for (;;) {
      const { current: standing } = this.#told
      if (standing === null || changes.length > 4) throw new Error('the prefix does not settle')
      const holds = mustDelayUpdate(this.flat, profile)
      const rules = { profile, volatile: 'delta', lateTools: 'announce', isBound: false, holds } as const
      const change = planPrefixChange({ ...this.#told, current: standing }, this.present, rules)
      if (change.kind === 'none') {
        this.changes = changes
        return standing
      }
      changes.push(change)
      this.#append(change.records)
    }
  }

  #append(records: readonly RecordBody[]): void {
    this.builder.batch(() => {
      for (const record of records) {
        if (record.type === 'attachment') this.builder.attachment(record.attachment, { isMeta: true })
        else if (record.type === 'user') this.builder.system(record.message.content)
        else this.builder.notice(record.subtype ?? '', { ...record })
      }
    })
    this.#advance()
  }
}

const SECTIONS: DesiredPrefix['sections'] = orderPromptSections({
  attribution: 'x-billing: cache',
  identity: 'You are a coder.',
  sections: [
    section('rules', () => WORDS.repeat(200)),
    section('tone', () => 'Be brief. '.repeat(50)),
    SYSTEM_PROMPT_DYNAMIC_BOUNDARY,
    section('environment', () => 'A machine like any other.'),
    section('git', () => 'On branch main, clean.'),
  ],
}).map(({ name, part, compute }) => ({ name, part, text: String(compute()) }))

function changed(standing: CurrentSnapshot, change: Ask['epoch']): CurrentSnapshot {
  if (change === undefined) return standing
  const epoch = change(standing.epoch)
  return { ...standing, epoch, parameters: epoch.parameters }
}

/** As after a rewrite that no record tells of: a list nobody has seen before. */
function rewritten(
  flat: FlattenedContext,
  change: (all: readonly TracedMessage[]) => readonly TracedMessage[],
): FlattenedContext {
  return { ...flat, frozen: AppendList.of(change(listTracedMessages(flat))), tail: [] }
}
