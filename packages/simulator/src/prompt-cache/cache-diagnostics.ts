/**
 * Implements the request parameter `diagnostics`, which reports how a request differs from an earlier one. Requests
 * are compared as the client sent them. They are stored for one hour per organization and workspace.
 */

import { hashText } from '../protocol/clock-and-ids.ts'
import { isObject, type MessagesBody } from '../protocol/messages-request.ts'
import type { SimulatedModel } from '../protocol/models.ts'
import {
  type Account,
  formatContextManagement,
  formatEffortSetting,
  formatOutputFormat,
  formatPromptBetas,
  formatThinkingSetting,
  formatToolChoice,
} from './cache-key.ts'
import type { Prompt } from './prompt.ts'
import { renderBlock } from './prompt-tree.ts'

type CacheMissReason =
  | {
      readonly type: 'model_changed' | 'system_changed' | 'tools_changed' | 'messages_changed'
      readonly cache_missed_input_tokens: number
    }
  | { readonly type: 'previous_message_not_found' | 'unavailable' }

/** The field `diagnostics` of a response; null if the request did not ask for diagnostics or if nothing changed. */
export type CacheDiagnosis = { readonly cache_miss_reason: CacheMissReason } | null

interface DiagnosticsRequest {
  readonly scope: Account
  readonly body: MessagesBody
  readonly model: SimulatedModel
  readonly betas: ReadonlySet<string>
  /** The prompt as the client sent it, before blocks were dropped or edited. */
  readonly prompt: Prompt
  readonly now: number
}

export interface CacheDiagnostics {
  /** Compares the request with the one that it names in `diagnostics.previous_message_id`. */
  diagnose(request: DiagnosticsRequest): CacheDiagnosis
  /** Stores the request under the id of its response, so that a later request can be compared with it. */
  remember(messageId: string, request: DiagnosticsRequest): void
}

const DIAGNOSTICS_LIFETIME_MS = 3_600_000
const MAX_DIAGNOSED_REQUESTS = 2_000

/** A stored request, reduced to what a comparison needs: hashes and token counts, no content. */
interface RequestFingerprint {
  readonly scope: Account
  readonly now: number
  readonly model: string
  readonly tools: string
  readonly system: string
  readonly settings: string
  readonly chains: readonly string[]
  /** Token counts of the prefixes whose hashes are in `chains`. */
  readonly tokens: readonly number[]
}

export function createCacheDiagnostics(): CacheDiagnostics {
  const kept = new Map<string, RequestFingerprint>()
  return {
    diagnose(request) {
      const asked: unknown = request.body.diagnostics?.previous_message_id
      if (!isObject(request.body.diagnostics) || typeof asked !== 'string') return null
      const previous = kept.get(asked)
      if (previous === undefined || !isComparable(previous, request))
        return { cache_miss_reason: { type: 'previous_message_not_found' } }
      const reason = compareFingerprints(previous, createFingerprint(request))
      return reason === null ? null : { cache_miss_reason: reason }
    },
    remember(messageId, request) {
      if (!isObject(request.body.diagnostics)) return
      if (kept.size >= MAX_DIAGNOSED_REQUESTS) kept.delete(kept.keys().next().value ?? '')
      kept.set(messageId, createFingerprint(request))
    },
  }
}

function createFingerprint(request: DiagnosticsRequest): RequestFingerprint {
  const { scope, now, prompt } = request
  return {
    scope,
    now,
    model: `${request.model.id}/${request.body.speed ?? 'standard'}`,
    tools: hashFront(prompt, 'tools'),
    system: hashFront(prompt, 'system'),
    settings: formatRequestSettings(request),
    chains: prompt.positions.map((node) => node.chain),
    tokens: prompt.positions.map((node) => node.tokens),
  }
}

function isComparable(previous: RequestFingerprint, { now, scope }: DiagnosticsRequest): boolean {
  return (
    now - previous.now < DIAGNOSTICS_LIFETIME_MS &&
    previous.scope.organization === scope.organization &&
    previous.scope.workspace === scope.workspace
  )
}

/**
 * Returns the first difference between two requests: model, tools, system prompt, settings, then messages. Null if
 * there is none.
 */
function compareFingerprints(
  previous: RequestFingerprint,
  request: RequestFingerprint,
): CacheMissReason | null {
  const total = previous.tokens.at(-1) ?? 0
  if (previous.model !== request.model) return { type: 'model_changed', cache_missed_input_tokens: total }
  const common = countCommonChains(previous.chains, request.chains)
  const missed = total - (previous.tokens[common - 1] ?? 0)
  if (previous.tools !== request.tools) return { type: 'tools_changed', cache_missed_input_tokens: missed }
  if (previous.system !== request.system) return { type: 'system_changed', cache_missed_input_tokens: missed }
  if (previous.settings !== request.settings) return { type: 'unavailable' }
  return common < previous.chains.length
    ? { type: 'messages_changed', cache_missed_input_tokens: missed }
    : null
}

function countCommonChains(one: readonly string[], other: readonly string[]): number {
  const differs = one.findIndex((chain, index) => chain !== other[index])
  return differs < 0 ? one.length : differs
}

/**
 * Hashes either the tools or the system prompt. Blocks are distinguished by their type, because web tools are stored
 * among the system blocks.
 */
function hashFront({ positions, starts }: Prompt, part: 'tools' | 'system'): string {
  const front = positions.slice(0, starts.messages).map((node) => node.block)
  const wanted = front.filter((block) => (block.type === 'text') === (part === 'system'))
  return hashText(wanted.map(renderBlock).join('\n'))
}

function formatRequestSettings({ body, model, betas }: DiagnosticsRequest): string {
  return [
    formatToolChoice(body.tool_choice),
    formatThinkingSetting(body, model),
    formatEffortSetting(body, model),
    formatOutputFormat(body),
    formatContextManagement(body),
    formatPromptBetas(betas),
  ].join('\n')
}
