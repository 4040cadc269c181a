/** The API calls of a recorded session: what each context came to by the provider's count, and what was added to it. */

import { entryEndsTurn, isShown, partsOf } from '../context/message-parts.ts'
import { type Block, blocksOf } from '../log/block.ts'
import { isObject } from '../log/json.ts'
import {
  type AssistantRecord,
  isCompactBoundary,
  isKnown,
  isMicrocompactBoundary,
  isPrompt,
  type KnownRecord,
  type SessionRecord,
  SYNTHETIC_MODEL,
} from '../log/record.ts'
import { contextOf } from '../tokens/usage.ts'

/** Why a context cannot be compared with the one before. */
export type BreakReason = 'boundary' | 'clearing' | 'restart' | 'rewind'

export interface ApiCall {
  readonly model: string
  /** Tokens of the context that was sent. */
  readonly context: number
  /** The response to the call before. */
  readonly said: readonly Block[]
  /** What came since: tool results, prompts, attachments. */
  readonly heard: readonly Block[]
  /** What came since ended the turn that the call before was of. */
  readonly endsTurn: boolean
  readonly broken: BreakReason | null
}

/** Was the host that wrote this log started anew here? Its prefix may then have changed. */
export type IsRestart = (record: SessionRecord, before: SessionRecord | undefined) => boolean

/** In the order of the log. Lines of other conversations, and responses without usage, are no calls. */
export function apiCalls(
  records: Iterable<SessionRecord>,
  isRestart: IsRestart = () => false,
): readonly ApiCall[] {
  const draft: Draft = {
    calls: [],
    said: [],
    heard: [],
    endsTurn: false,
    broken: null,
    response: null,
    chain: new Map(),
  }
  let before: SessionRecord | undefined
  for (const record of records) {
    if (record.isSidechain === true) continue
    if (isRestart(record, before)) draft.broken ??= 'restart'
    if (isKnown(record)) take(draft, record)
    before = record
  }
  return draft.calls
}

interface Draft {
  readonly calls: ApiCall[]
  said: Block[]
  heard: Block[]
  endsTurn: boolean
  broken: BreakReason | null
  /** `message.id` of the newest call. */
  response: string | null
  /** Record → the newest response on its way up, or null. */
  readonly chain: Map<string, string | null>
}

function take(draft: Draft, record: KnownRecord): void {
  const above = draft.chain.get(record.parentUuid ?? '')
  if (record.type === 'assistant' && record.message.model !== SYNTHETIC_MODEL) {
    takeResponse(draft, record)
    draft.chain.set(record.uuid, record.message.id === draft.response ? draft.response : (above ?? null))
    return
  }
  draft.broken = breakAt(draft, record, above)
  if (above !== undefined || record.parentUuid === null) draft.chain.set(record.uuid, above ?? null)
  const entry = { record, index: 0 }
  if (record.type === 'assistant' || !isShown(entry)) return
  draft.heard.push(...partsOf(entry).map((part) => part.block))
  draft.endsTurn ||= entryEndsTurn(entry)
}

function breakAt(draft: Draft, record: KnownRecord, above: string | null | undefined): BreakReason | null {
  if (isCompactBoundary(record)) return 'boundary'
  if (draft.broken !== null) return draft.broken
  if (isMicrocompactBoundary(record)) return 'clearing'
  // Words that a host puts in the model's mouth, other than errors, mend a turn that an exit cut off.
  if (record.type === 'assistant' && record.isApiErrorMessage !== true) return 'restart'
  return isPrompt(record) && above !== undefined && above !== draft.response ? 'rewind' : null
}

/** Several records may hold one response; the first of them is where the call was made. */
function takeResponse(draft: Draft, { message }: AssistantRecord): void {
  const context = contextOf(message.usage)
  if (message.id !== draft.response && context > 0) {
    const { said, heard, endsTurn, broken } = draft
    const edited = hasEdits(message.context_management)
    draft.calls.push({ model: message.model, context, said, heard, endsTurn, broken: broken ?? edited })
    Object.assign(draft, { said: [], heard: [], endsTurn: false, broken: null, response: message.id })
  }
  draft.said.push(...blocksOf(message.content))
}

/** The provider itself left something out of the context of this call. */
function hasEdits(management: unknown): 'clearing' | null {
  const edits = isObject(management) ? management.applied_edits : undefined
  return Array.isArray(edits) && edits.length > 0 ? 'clearing' : null
}
