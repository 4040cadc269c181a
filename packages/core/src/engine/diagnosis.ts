/** What the provider is asked about its own cache, and what it answers. */
import type { JsonObject } from '../conversation/json.ts'
import { isObject } from '../conversation/json.ts'
import { type AssistantMessage, isKnown } from '../conversation/record.ts'
import { recordAt } from '../conversation/tree.ts'
import type { SessionState } from './session-state.ts'
import type { TurnHost } from './turn-host.ts'

/** The field that asks to compare a request with the one before; nothing where the provider cannot or policy forbids. */
export function diagnosisAsked(state: SessionState, { profile, policy }: TurnHost): JsonObject {
  if (!profile.capabilities.cacheDiagnostics || !policy.cache.breaks.askProvider) return {}
  return { diagnostics: { previous_message_id: newestResponse(state) } }
}

/** From the log, so that every process asks alike. */
function newestResponse({ session, answered }: SessionState): string | null {
  if (answered < 0) return null
  const record = recordAt(session, answered)
  return isKnown(record) && record.type === 'assistant' ? record.message.id : null
}

/** The provider says that it cleared something from the request by itself. */
export function isEditedByProvider({ context_management: managed }: AssistantMessage): boolean {
  return isObject(managed) && Array.isArray(managed.applied_edits) && managed.applied_edits.length > 0
}
