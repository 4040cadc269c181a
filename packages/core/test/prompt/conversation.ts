/**
 * A conversation as the engine would lead it, request by request: what is new about the prefix is appended, the
 * request assembled, its reading foreseen, sent to a cache, learnt from and answered. For laws and tests.
 */

import { SessionBuilder } from '@tidemark/core/testing'
import { defineMessagesProfile } from '@tidemark/wire/profiles/provider-profile'
import {
  type CacheForecast,
  forecastCacheRead,
  updateCacheModelFromResponse,
} from '../../src/cache/cache-forecast.ts'
import { type CacheModel, EMPTY_CACHE_MODEL } from '../../src/cache/cache-model.ts'
import { type FlattenedContext, flattenContext } from '../../src/context/flatten-context.ts'
import type { Payload } from '../../src/context/payload.ts'
import { mustDelayUpdate } from '../../src/engine/announce-updates.ts'
import type { Block } from '../../src/log/block.ts'
import type { JsonObject } from '../../src/log/json.ts'
import type { PrefixSnapshot } from '../../src/log/record.ts'
import type { TokenUsage } from '../../src/log/reply-report.ts'
import { runStepsAtOnce } from '../../src/log/work-steps.ts'
import { createPolicy } from '../../src/policy/create-policy.ts'
import type { ProviderProfile } from '../../src/policy/provider-profile.ts'
import {
  type AssembledRequest,
  assembleRequest,
  findRequestProblems,
  toPayload,
} from '../../src/request/build-request.ts'
import {
  type FirstClearableState,
  NO_FIRST_CLEARABLE,
  updateFirstClearable,
} from '../../src/request/cache-markers.ts'
import {
  buildRequestPrefix,
  type CompactionSnapshotResult,
  createPrefixSnapshot,
  createSnapshotForCompaction,
  type DesiredPrefix,
  emptyKnownPrefix,
  type KnownPrefix,
  type RequestPrefix,
  updateKnownPrefix,
} from '../../src/request/prefix-snapshot.ts'
import {
  createSnapshotRecord,
  type PrefixChange,
  type PrefixUpdateRules,
  planPrefixChange,
  type RecordBody,
} from '../../src/request/prefix-updates.ts'
import type { Finding } from '../../src/validate/findings.ts'
import {
  startValidation,
  updateValidation,
  type ValidationState,
} from '../../src/validate/validate-request.ts'
import { ProviderCache } from '../provider-cache.ts'

/** What a present-day provider takes. */
export const PROFILE: ProviderProfile = defineMessagesProfile({
  roles: { consecutive: 'merged', system: 'placed', prefill: 'allowed' },
  thinking: { closing: 'not-at-end', firstInModes: [], binding: 'none' },
  cache: { collapsesToolRuns: true },
})
export const POLICY = createPolicy({})

export function tool(name: string, description = name): JsonObject {
  return { name, description, input_schema: { type: 'object' } }
}

export const PRESENT: DesiredPrefix = {
  sections: [
    { name: '@attribution', part: 'static', text: 'bill: me' },
    { name: '@identity', part: 'static', text: 'You are an agent.' },
    { name: 'rules', part: 'static', text: 'Be careful.' },
    { name: 'environment', part: 'dynamic', text: 'Linux' },
    { name: 'git', part: 'volatile', text: 'clean' },
  ],
  tools: [tool('Read'), tool('Bash'), tool('Edit')],
  model: 'model-a',
  parameters: { max_tokens: 1000 },
}

export interface Asked {
  readonly request: AssembledRequest
  readonly payload: Payload
  readonly findings: readonly Finding[]
  readonly forecast: CacheForecast
  readonly usage: TokenUsage
  readonly changes: readonly PrefixChange[]
}

export class Conversation {
  readonly builder: SessionBuilder
  readonly profile: ProviderProfile
  readonly cache: ProviderCache
  now = 1_800_000_000_000
  present: DesiredPrefix = PRESENT
  rules: Partial<PrefixUpdateRules> = {}
  clears = true
  ttl: string | null = '5m'
  told: KnownPrefix = emptyKnownPrefix()
  flat: FlattenedContext | undefined
  front: RequestPrefix | undefined
  previous: AssembledRequest | undefined
  lineage: CacheModel = EMPTY_CACHE_MODEL
  edge: FirstClearableState = NO_FIRST_CLEARABLE
  #checked: ValidationState
  #answeredAt = -1
  #answeredRequest: number | null = null

  constructor(profile: ProviderProfile = PROFILE, builder: SessionBuilder = new SessionBuilder('led')) {
    this.builder = builder
    this.profile = profile
    this.cache = new ProviderCache({ minimum: profile.cache.minimumTokens ?? 0 })
    this.#checked = startValidation(profile)
  }

  open(): PrefixSnapshot {
    const epoch = createPrefixSnapshot(this.present, this.profile)
    this.append([createSnapshotRecord(epoch)])
    return epoch
  }

  append(records: readonly RecordBody[]): void {
    this.builder.batch(() => {
      for (const record of records) {
        if (record.type === 'attachment') this.builder.attachment(record.attachment, { isMeta: true })
        else if (record.type === 'user') this.builder.system(record.message.content)
        else this.builder.notice(record.subtype ?? '', { ...record })
      }
    })
  }

  /** Everything up to the request, which is not sent yet. */
  assemble(): { readonly request: AssembledRequest; readonly changes: readonly PrefixChange[] } {
    const changes: PrefixChange[] = []
    this.#advance()
    if (this.told.current === null) this.open()
    for (let change = this.#change(); change.kind !== 'none'; change = this.#change()) {
      changes.push(change)
      this.append(change.records)
      if (changes.length > 3) throw new Error(`no end of changes: ${JSON.stringify(changes)}`)
    }
    return { request: this.#assembled(), changes }
  }

  ask(): Asked {
    const { request, changes } = this.assemble()
    const findings = findRequestProblems(this.#checked, request)
    const payload = toPayload(request)
    const forecast = forecastCacheRead(this.lineage, { request, now: this.now, profile: this.profile })
    const usage = this.cache.ask(payload, this.now)
    this.lineage = updateCacheModelFromResponse(this.lineage, forecast, usage)
    this.previous = request
    return { request, payload, findings, forecast, usage, changes }
  }

  /** Everything becomes a summary, and the epoch turns with it in one batch where it may. */
  compact(): CompactionSnapshotResult {
    const { builder, profile } = this
    this.#advance()
    const { current: standing } = this.told
    if (standing === null) throw new Error('no epoch')
    const turn = createSnapshotForCompaction(standing.epoch, this.present, { records: [], profile })
    builder.batch(() => {
      const boundary = builder.id('boundary')
      const compactMetadata = { trigger: 'auto' as const, preTokens: 1 }
      const links = { uuid: boundary, parentUuid: null, logicalParentUuid: builder.tip }
      builder.notice('compact_boundary', { ...links, compactMetadata })
      builder.user(`Summary ${builder.id('s')}`, { parentUuid: boundary, isCompactSummary: true })
      if (turn.isReplaced) builder.notice('epoch', { epoch: turn.epoch })
    })
    return turn
  }

  answer(blocks: readonly Block[]): string {
    const id = this.builder.id('msg')
    this.#answeredRequest = this.builder.records.length
    this.builder.assistant(id, blocks)
    this.#answeredAt = this.builder.session.newestRecord
    return id
  }

  #advance(): void {
    const { session, view } = this.builder
    this.told = updateKnownPrefix(this.told, session, view)
    this.flat = flattenContext(view, this.flat)
    this.#checked = runStepsAtOnce(updateValidation(this.#checked, this.flat))
  }

  #change(): PrefixChange {
    this.#advance()
    const { told, flat, profile } = this
    if (told.current === null || flat === undefined) throw new Error('no epoch')
    return planPrefixChange({ ...told, current: told.current }, this.present, {
      profile,
      volatile: 'delta',
      lateTools: 'announce',
      isBound: false,
      holds: mustDelayUpdate(flat, profile),
      ...this.rules,
    })
  }

  #assembled(): AssembledRequest {
    const { told, flat, profile, ttl, clears } = this
    if (told.current === null || flat === undefined) throw new Error('no epoch')
    const { rewrittenAt } = this.builder.view
    const isAnswered = this.#answeredAt > rewrittenAt
    this.edge = updateFirstClearable(this.edge, {
      firstClearable: this.firstClearable(),
      position: this.builder.records.length,
      answeredAt: this.#answeredRequest,
      isAnswered,
      restore: () => null,
    })
    this.front = buildRequestPrefix(told.current, { previous: this.front })
    const { markers } = POLICY.cache
    const question = { front: this.front, flat, profile, markers, ttl, clears, edge: this.edge }
    return assembleRequest(question, this.previous)
  }

  /** Every result but the stubs left by a clearing, for want of a tier that knows better. */
  firstClearable(): string | null {
    for (const { record, cleared } of this.builder.view.entries) {
      if (record.type !== 'user' || typeof record.message.content === 'string') continue
      for (const block of record.message.content) {
        const id = String(block.tool_use_id)
        if (block.type === 'tool_result' && !cleared?.results.some((result) => result.id === id)) return id
      }
    }
    return null
  }
}
