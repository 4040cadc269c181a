/**
 * Tells a session: keeps the log so far with its fold and view, and makes records that follow. The steps of
 * the generator are written on top of it; so are hand-made sessions in tests.
 */
import {
  type AssistantRecord,
  type AttachmentRecord,
  advance,
  type Block,
  type Content,
  emptySession,
  emptyView,
  type NewRecord,
  reduce,
  type Session,
  type SessionRecord,
  type SystemRecord,
  type UserRecord,
  type View,
} from '@tidemark/core'

type Links = 'uuid' | 'parentUuid' | 'timestamp' | 'sessionId' | 'type' | 'seq' | 'batch'
/** What a record may be given beside what it says: another parent, flags, fields of a foreign log. */
export type Extra = Partial<Omit<UserRecord, 'message' | 'type'>> & { readonly [field: string]: unknown }

export class Teller {
  readonly sessionId: string
  readonly records: SessionRecord[] = []
  session: Session = emptySession()
  view: View = emptyView()
  #count = 0
  #batch: NewRecord[] | null = null

  constructor(sessionId = 'told') {
    this.sessionId = sessionId
  }

  id(kind: string): string {
    this.#count += 1
    return `${kind}-${this.#count}`
  }

  /** uuid of what was told last. */
  get tip(): string | null {
    const waiting = this.#batch?.at(-1)?.uuid
    return waiting ?? this.session.records.at(this.session.tip)?.uuid ?? null
  }

  user(content: Content, extra: Extra = {}): UserRecord {
    return this.#tell<UserRecord>({ type: 'user', message: { role: 'user', content }, ...extra })
  }

  system(content: Content, extra: Extra = {}): UserRecord {
    return this.#tell<UserRecord>({
      type: 'user',
      isMeta: true,
      message: { role: 'system', content },
      ...extra,
    })
  }

  assistant(id: string, content: Content, extra: Extra & Partial<AssistantRecord> = {}): AssistantRecord {
    const message = { id, role: 'assistant' as const, model: 'model-a', content }
    return this.#tell<AssistantRecord>({ type: 'assistant', message, ...extra })
  }

  result(id: string, content: string | readonly Block[], extra: Extra = {}): UserRecord {
    return this.user([{ type: 'tool_result', tool_use_id: id, content }], extra)
  }

  attachment(attachment: AttachmentRecord['attachment'], extra: Extra = {}): AttachmentRecord {
    return this.#tell<AttachmentRecord>({ type: 'attachment', attachment, ...extra })
  }

  notice(subtype: string, extra: Partial<Omit<SystemRecord, Links>> & Extra = {}): SystemRecord {
    return this.#tell<SystemRecord>({ type: 'system', subtype, ...extra })
  }

  /** A line as another program might have written it. */
  foreign(record: SessionRecord): void {
    this.#take(record)
  }

  /** Everything told by `tell` becomes one batch. */
  batch(tell: () => void): void {
    this.#batch = []
    tell()
    const records = this.#batch
    this.#batch = null
    const id = records[0]?.uuid ?? ''
    for (const [index, record] of records.entries()) {
      this.#take({ ...record, batch: { id, index, of: records.length } } as SessionRecord)
    }
  }

  #tell<R extends SessionRecord>(said: Record<string, unknown>): R {
    const record = {
      uuid: this.id('r'),
      parentUuid: this.tip,
      timestamp: new Date(1_700_000_000_000 + this.#count * 1000).toISOString(),
      sessionId: this.sessionId,
      ...said,
    } as unknown as R
    if (this.#batch === null) this.#take(record)
    else this.#batch.push(record as unknown as NewRecord)
    return record
  }

  #take(record: SessionRecord): void {
    const placed = { ...record, seq: this.records.length + 1 }
    this.records.push(placed)
    this.session = reduce(this.session, placed)
    this.view = advance(this.view, this.session)
  }
}
