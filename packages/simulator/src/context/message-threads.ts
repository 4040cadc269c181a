/**
 * Message threads: the provider stores the conversation, and a request sends only new messages. A response can be
 * continued once, within five minutes, with unchanged settings.
 */

import { type Account, isSameAccount } from '../prompt-cache/cache-key.ts'
import {
  type ApiError,
  type ApiResult,
  createApiError,
  createRequestErrorWithCode,
  toRejection,
} from '../protocol/answer.ts'
import { isObject, type MessageParam, type MessagesBody } from '../protocol/messages-request.ts'
import { listContextEdits } from '../validation/context-edit-rules.ts'
import { isKeepAllValue } from './context-edits.ts'

const THREAD_LIFETIME_MS = 300_000

/** Request fields that a continuation must send with the values of the stored request. */
const FIXED_FIELDS = [
  'model',
  'thinking',
  'tool_choice',
  'output_config',
  'output_format',
  'context_management',
  'cache_control',
]

interface StoredThread {
  readonly scope: Account
  readonly body: MessagesBody
  readonly betas: string
  readonly expiresAt: number
  readonly state: 'open' | 'continuing' | 'continued'
}

export interface ThreadRequest {
  readonly body: MessagesBody
  readonly scope: Account
  readonly betas: ReadonlySet<string>
  readonly now: number
}

export interface MessageThreads {
  /**
   * Returns the request body with the whole conversation: the stored messages and the new ones. `continues` is the id
   * of the response that the request continues, or null. No other request can continue that response until `release`.
   * Returns an error if the response cannot be continued.
   */
  beginRequest(request: ThreadRequest): ApiResult<{ body: MessagesBody; continues: string | null }>
  /**
   * Stores the conversation under the id of its newest response; the response that it continued can then no longer be
   * continued. Does nothing if the request does not use a message thread.
   */
  store(request: ThreadRequest, response: { readonly id: string; readonly message: MessageParam }): void
  /** Allows a response to be continued again. Called when a request that continued this response has failed. */
  release(previous: string | null): void
}

export function createMessageThreads(): MessageThreads {
  const threads = new Map<string, StoredThread>()

  /**
   * Deletes expired threads. The threads are in the order of expiry, so the loop ends at the first thread that has
   * not expired.
   */
  function deleteExpired(now: number): void {
    for (const [id, { expiresAt }] of threads) {
      if (now < expiresAt) break
      threads.delete(id)
    }
  }

  function setState(id: string, state: StoredThread['state']): void {
    const thread = threads.get(id)
    if (thread !== undefined) threads.set(id, { ...thread, state })
  }

  return {
    beginRequest(request) {
      const { body, now } = request
      const thread = body.thread
      if (!isObject(thread)) return { ok: true, body, continues: null }
      const unsupported = listUnsupportedFields(body)
      if (unsupported.length > 0) return toRejection(threadNotSupported(unsupported))
      if (thread.type !== 'continue') return { ok: true, body, continues: null }
      const id = String(thread.previous_message_id)
      const found = threads.get(id)
      if (found === undefined || now >= found.expiresAt || !isSameAccount(found.scope, request.scope))
        return toRejection(threadNotFound(id))
      const error = findThreadError(found, request)
      if (error !== null) return toRejection(error)
      setState(id, 'continuing')
      return { ok: true, body: joinThread(found.body, body), continues: id }
    },
    store({ body, scope, betas, now }, response) {
      const thread = body.thread
      if (!isObject(thread)) return
      if (thread.type === 'continue') setState(String(thread.previous_message_id), 'continued')
      deleteExpired(now)
      threads.set(response.id, {
        scope,
        body: { ...body, messages: [...body.messages, response.message] },
        betas: formatBetas(betas),
        expiresAt: now + THREAD_LIFETIME_MS,
        state: 'open',
      })
    },
    release: (previous) => {
      if (previous !== null && threads.get(previous)?.state === 'continuing') setState(previous, 'open')
    },
  }
}

function formatBetas(betas: ReadonlySet<string>): string {
  return [...betas].sort().join(',')
}

/** Appends the messages of the request to the stored messages. `system` and `tools` come from the stored request. */
function joinThread(kept: MessagesBody, body: MessagesBody): MessagesBody {
  return {
    ...body,
    system: kept.system ?? null,
    tools: kept.tools ?? null,
    messages: [...kept.messages, ...body.messages],
  }
}

function listUnsupportedFields(body: MessagesBody): readonly string[] {
  const edits = listContextEdits(body)
  const harmless = edits.every((edit) => edit.type === 'clear_thinking_20251015' && isKeepAllValue(edit.keep))
  return [
    ...(harmless && !isObject(body.compaction) ? [] : ['context_management']),
    ...(body.fallbacks == null ? [] : ['fallbacks']),
  ]
}

function findThreadError(found: StoredThread, { body, betas }: ThreadRequest): ApiError | null {
  if (found.state === 'continued')
    return createRequestErrorWithCode(
      'thread_already_continued',
      'This response has already been continued. Continue from the newest response of the thread.',
    )
  if (found.state === 'continuing')
    return createRequestErrorWithCode(
      'thread_continue_in_flight',
      'Another request is still continuing this response.',
    )
  const differing = listChangedFields(found, body, betas)
  return differing.length === 0
    ? null
    : createRequestErrorWithCode(
        'thread_fingerprint_mismatch',
        `differing fields: ${differing.join(', ')}. Send the stored values, or start a new thread with the full conversation.`,
      )
}

function listChangedFields(
  found: StoredThread,
  body: MessagesBody,
  betas: ReadonlySet<string>,
): readonly string[] {
  const differs = (name: string): boolean =>
    JSON.stringify(found.body[name] ?? null) !== JSON.stringify(body[name] ?? null)
  return [
    ...FIXED_FIELDS.filter(differs),
    // A continuation may omit `system` and `tools`, so they are compared only if the request has them.
    ...['system', 'tools'].filter((name) => body[name] !== undefined && differs(name)),
    ...(found.betas === formatBetas(betas) ? [] : ['anthropic-beta']),
  ]
}

function threadNotFound(id: string): ApiError {
  const message = `No thread was found for \`${id}\`. Send the full conversation with \`thread: {"type": "create"}\`.`
  return createApiError(404, message, { error_code: 'thread_not_found' })
}

function threadNotSupported(unsupported: readonly string[]): ApiError {
  return createApiError(400, `\`thread\` cannot be combined with ${unsupported.join(', ')}.`, {
    error_code: 'thread_unsupported_request',
    unsupported,
  })
}
