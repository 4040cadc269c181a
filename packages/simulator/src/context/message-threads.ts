/**
 * Message threads: the provider keeps the conversation for a short while, and a request sends only what is
 * new. Each response can be continued once, within five minutes, with the same settings it began with.
 */

import type { Scope } from '../prompt-cache/cache-key.ts'
import { type Refusal, refusal } from '../protocol/answer.ts'
import { isObject, type MessageParam, type MessagesBody } from '../protocol/api.ts'
import { editsOf } from '../validation/edit-rules.ts'

const LIFETIME_MS = 300_000

/** Fields that stay as they were for the life of a thread. */
const FIXED = [
  'model',
  'thinking',
  'tool_choice',
  'output_config',
  'output_format',
  'context_management',
  'cache_control',
]

interface Thread {
  readonly scope: Scope
  readonly body: MessagesBody
  readonly betas: string
  readonly expiresAt: number
  readonly state: 'open' | 'continuing' | 'continued'
}

export type ThreadOutcome =
  | { readonly ok: true; readonly body: MessagesBody; readonly continues: string | null }
  | { readonly ok: false; readonly refusal: Refusal }

export interface ThreadRequest {
  readonly body: MessagesBody
  readonly scope: Scope
  readonly betas: ReadonlySet<string>
  readonly now: number
}

export interface Threads {
  /** The whole conversation, where the request continues one. */
  resolve(request: ThreadRequest): ThreadOutcome
  /** Keeps the conversation under the id of its response. */
  keep(request: ThreadRequest, response: { readonly id: string; readonly message: MessageParam }): void
  /** The continuation came to nothing: the response can be continued again. */
  release(previous: string | null): void
}

export function createThreads(): Threads {
  const threads = new Map<string, Thread>()

  /** Threads are kept in the order they end, so the first that lives ends the sweep. */
  function set(id: string, thread: Thread, now: number): void {
    for (const [old, { expiresAt }] of threads) {
      if (now < expiresAt) break
      threads.delete(old)
    }
    threads.set(id, thread)
  }

  function mark(id: string, state: Thread['state']): void {
    const thread = threads.get(id)
    if (thread !== undefined) threads.set(id, { ...thread, state })
  }

  return {
    resolve(request) {
      const { body, now } = request
      const thread = body.thread
      if (!isObject(thread)) return { ok: true, body, continues: null }
      const unsupported = unsupportedIn(body)
      if (unsupported.length > 0) return { ok: false, refusal: unsupportedRequest(unsupported) }
      if (thread.type !== 'continue') return { ok: true, body, continues: null }
      const id = String(thread.previous_message_id)
      const found = threads.get(id)
      if (found === undefined || now >= found.expiresAt || !sameScope(found.scope, request.scope))
        return { ok: false, refusal: notFound(id) }
      const refused = refusalOf(found, request)
      if (refused !== null) return { ok: false, refusal: refused }
      mark(id, 'continuing')
      return { ok: true, body: joined(found.body, body), continues: id }
    },
    keep({ body, scope, betas, now }, response) {
      const thread = body.thread
      if (!isObject(thread)) return
      if (thread.type === 'continue') mark(String(thread.previous_message_id), 'continued')
      const messages = [...body.messages, response.message]
      const expiresAt = now + LIFETIME_MS
      set(
        response.id,
        {
          scope,
          body: { ...body, messages },
          betas: betaList(betas),
          expiresAt,
          state: 'open',
        },
        now,
      )
    },
    release: (previous) => {
      if (previous !== null && threads.get(previous)?.state === 'continuing') mark(previous, 'open')
    },
  }
}

function sameScope(one: Scope, other: Scope): boolean {
  return one.organization === other.organization && one.workspace === other.workspace
}

function betaList(betas: ReadonlySet<string>): string {
  return [...betas].sort().join(',')
}

/** What is new behind what is kept; `system` and `tools` are the thread's own. */
function joined(kept: MessagesBody, body: MessagesBody): MessagesBody {
  return {
    ...body,
    system: kept.system ?? null,
    tools: kept.tools ?? null,
    messages: [...kept.messages, ...body.messages],
  }
}

function unsupportedIn(body: MessagesBody): readonly string[] {
  const edits = editsOf(body)
  const harmless = edits.every((edit) => edit.type === 'clear_thinking_20251015' && keepsAll(edit.keep))
  return [
    ...(harmless && !isObject(body.compaction) ? [] : ['context_management']),
    ...(body.fallbacks == null ? [] : ['fallbacks']),
  ]
}

function keepsAll(keep: unknown): boolean {
  return keep === 'all' || (isObject(keep) && keep.type === 'all')
}

function refusalOf(found: Thread, { body, betas }: ThreadRequest): Refusal | null {
  if (found.state === 'continued')
    return thread(
      'thread_already_continued',
      'This response has already been continued. Continue from the newest response of the thread.',
    )
  if (found.state === 'continuing')
    return thread('thread_continue_in_flight', 'Another request is still continuing this response.')
  const differing = differingFields(found, body, betas)
  return differing.length === 0
    ? null
    : thread(
        'thread_fingerprint_mismatch',
        `differing fields: ${differing.join(', ')}. Send the stored values, or start a new thread with the full conversation.`,
      )
}

function differingFields(found: Thread, body: MessagesBody, betas: ReadonlySet<string>): readonly string[] {
  const same = (name: string): boolean => text(found.body[name]) === text(body[name])
  const kept = (name: string): boolean => body[name] === undefined || same(name)
  return [
    ...FIXED.filter((name) => !same(name)),
    ...['system', 'tools'].filter((name) => !kept(name)),
    ...(found.betas === betaList(betas) ? [] : ['anthropic-beta']),
  ]
}

function text(value: unknown): string {
  return JSON.stringify(value ?? null)
}

function thread(code: string, message: string): Refusal {
  return refusal(400, message, { error_code: code })
}

function notFound(id: string): Refusal {
  return refusal(
    404,
    `No thread was found for \`${id}\`. Send the full conversation with \`thread: {"type": "create"}\`.`,
    {
      error_code: 'thread_not_found',
    },
  )
}

function unsupportedRequest(unsupported: readonly string[]): Refusal {
  return refusal(400, `\`thread\` cannot be combined with ${unsupported.join(', ')}.`, {
    error_code: 'thread_unsupported_request',
    unsupported,
  })
}
