/**
 * Builds a session for tests, record by record. Fills in parent links, ids and timestamps. After each added record,
 * `session` (the log) and `view` (what the model is shown) are up to date.
 */
import { type ContextView, emptyContextView, updateContextView } from '../src/context/context-view.ts'
import type { NewRecord } from '../src/engine/ports.ts'
import { applyPinRecords, NO_PINS } from '../src/engine/session-state.ts'
import type { Block, MessageContent } from '../src/log/block.ts'
import type { JsonObject } from '../src/log/json.ts'
import type {
  AssistantRecord,
  AttachmentRecord,
  SessionRecord,
  SystemRecord,
  UserRecord,
} from '../src/log/record.ts'
import { appendRecord, emptySessionLog, type SessionLog } from '../src/log/session-log.ts'
import { readTestReport } from './test-usage.ts'

type LinkField = 'uuid' | 'parentUuid' | 'timestamp' | 'sessionId' | 'type' | 'seq' | 'batch'

/**
 * Optional fields of a record besides its content: for example another parent, flags, or fields that other programs
 * write.
 */
export type ExtraRecordFields = Partial<Omit<UserRecord, 'message' | 'type'>> & {
  readonly [field: string]: unknown
}

/** A session in memory. Methods that add a record return it; the next record follows it. */
export class SessionBuilder {
  readonly sessionId: string
  readonly records: SessionRecord[] = []
  session: SessionLog = emptySessionLog()
  view: ContextView = emptyContextView()
  #count = 0
  #batch: NewRecord[] | null = null

  constructor(sessionId = 'told') {
    this.sessionId = sessionId
  }

  /** Returns a new id such as `call-7`. Ids of all kinds share one counter. */
  id(kind: string): string {
    this.#count += 1
    return `${kind}-${this.#count}`
  }

  /** The uuid of the newest record, which becomes the parent of the next record; null if there is no record. */
  get tip(): string | null {
    const waiting = this.#batch?.at(-1)?.uuid
    return waiting ?? this.session.records.at(this.session.newestRecord)?.uuid ?? null
  }

  /** uuids of the pinned records, in the order of pinning. */
  get pins(): readonly string[] {
    return [...applyPinRecords(NO_PINS, this.records)]
  }

  /** Adds a message of the user. */
  user(content: MessageContent, extra: ExtraRecordFields = {}): UserRecord {
    return this.#add<UserRecord>({ type: 'user', message: { role: 'user', content }, ...extra })
  }

  /** Adds a system message among the messages. */
  system(content: MessageContent, extra: ExtraRecordFields = {}): UserRecord {
    return this.#add<UserRecord>({
      type: 'user',
      isMeta: true,
      message: { role: 'system', content },
      ...extra,
    })
  }

  /** Adds a record of the response `id`; several records may have one id. */
  assistant(
    id: string,
    content: MessageContent,
    extra: ExtraRecordFields & Partial<AssistantRecord> = {},
  ): AssistantRecord {
    const message = { id, role: 'assistant' as const, model: 'model-a', content }
    return this.#add<AssistantRecord>({
      type: 'assistant',
      message,
      ...readTestReport(extra.message ?? message),
      ...extra,
    })
  }

  /** Adds the result of the tool call `id` as a record of its own. */
  result(id: string, content: string | readonly Block[], extra: ExtraRecordFields = {}): UserRecord {
    return this.user([{ type: 'tool_result', tool_use_id: id, content }], extra)
  }

  /** Adds a tool call and its result as two records. Returns the id of the tool call. */
  call(
    name: string,
    input: JsonObject,
    result = 'ok',
    options: { readonly isError?: boolean; readonly thinks?: boolean } = {},
  ): string {
    const id = this.id('call')
    const thinking =
      options.thinks === true ? [{ type: 'thinking', thinking: 'hm', signature: this.id('sig') }] : []
    this.assistant(this.id('msg'), [...thinking, { type: 'tool_use', id, name, input }])
    const error = options.isError === true ? { is_error: true } : {}
    // Claude Code logs an error a second time, beside the result.
    const logged = options.isError === true ? { toolUseResult: `Error: ${result}` } : {}
    this.user([{ type: 'tool_result', tool_use_id: id, content: result, ...error }], logged)
    return id
  }

  /** Adds a response that contains only text. */
  answer(text = 'done'): AssistantRecord {
    return this.assistant(this.id('msg'), [{ type: 'text', text }])
  }

  attachment(attachment: AttachmentRecord['attachment'], extra: ExtraRecordFields = {}): AttachmentRecord {
    return this.#add<AttachmentRecord>({ type: 'attachment', attachment, ...extra })
  }

  /** Adds a system record, such as a compaction boundary, a pin or a prefix snapshot. */
  notice(
    subtype: string,
    extra: Partial<Omit<SystemRecord, LinkField>> & ExtraRecordFields = {},
  ): SystemRecord {
    return this.#add<SystemRecord>({ type: 'system', subtype, ...extra })
  }

  /**
   * Adds the records of a full compaction: boundary record, attachments before the summary, summary, attachments after
   * it.
   */
  compact(
    summary: string,
    options: {
      readonly kept?: readonly string[]
      readonly front?: readonly AttachmentRecord['attachment'][]
      readonly behind?: readonly AttachmentRecord['attachment'][]
    } = {},
  ): void {
    const { kept = [], front = [], behind = [] } = options
    this.batch(() => {
      const summaryUuid = this.id('summary')
      this.notice('compact_boundary', {
        parentUuid: null,
        logicalParentUuid: this.tip,
        compactMetadata: {
          trigger: 'manual',
          preTokens: 1_000,
          ...(kept.length > 0 ? { preservedMessages: { anchorUuid: summaryUuid, uuids: kept } } : {}),
        },
      })
      for (const attachment of front) this.attachment(attachment)
      this.user(summary, { uuid: summaryUuid, isCompactSummary: true, isVisibleInTranscriptOnly: true })
      for (const attachment of behind) this.attachment(attachment)
    })
  }

  /** Adds a record as given, without filling in any field, as another program might have written it. */
  foreign(record: SessionRecord): void {
    this.#append(record)
  }

  /** Adds all records that `build` creates as one batch, which a reader accepts completely or not at all. */
  batch(build: () => void): void {
    this.#batch = []
    build()
    const records = this.#batch
    this.#batch = null
    const id = records[0]?.uuid ?? ''
    for (const [index, record] of records.entries()) {
      this.#append({ ...record, batch: { id, index, of: records.length } } as SessionRecord)
    }
  }

  #add<R extends SessionRecord>(fields: Record<string, unknown>): R {
    const record = {
      uuid: this.id('r'),
      parentUuid: this.tip,
      timestamp: new Date(1_700_000_000_000 + this.#count * 1000).toISOString(),
      sessionId: this.sessionId,
      ...fields,
    } as unknown as R
    if (this.#batch === null) this.#append(record)
    else this.#batch.push(record as unknown as NewRecord)
    return record
  }

  #append(record: SessionRecord): void {
    const placed = { ...record, seq: this.records.length + 1 }
    this.records.push(placed)
    this.session = appendRecord(this.session, placed)
    this.view = updateContextView(this.view, this.session)
  }
}
