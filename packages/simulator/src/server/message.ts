/** The message of a response, and the reply the codec turns into bytes. */
import type { Reply as WireReply } from '@tidemark/core'
import type { Block, JsonObject } from '../api.ts'
import type { Diagnosis } from '../cache/diagnostics.ts'
import { BETA } from '../validation/betas.ts'
import { editsOf } from '../validation/edit-rules.ts'
import type { Output } from './output.ts'
import type { Prepared } from './prepare.ts'

export interface MessageInput {
  readonly id: string
  readonly content: readonly Block[]
  readonly stopReason: string
  readonly stopSequence: string | null
  readonly stopDetails: JsonObject | null
  readonly usage: JsonObject
  readonly diagnosis: Diagnosis
  readonly cutInputs: Output['cutInputs']
}

export function replyWith(prepared: Prepared, input: MessageInput): WireReply {
  const { body, gate, applied, transformations } = prepared
  const managed = gate.betas.has(BETA.contextManagement) || editsOf(body).length > 0
  const message: JsonObject = {
    id: input.id,
    type: 'message',
    role: 'assistant',
    model: body.model,
    stop_reason: input.stopReason,
    stop_sequence: input.stopSequence,
    stop_details: input.stopDetails,
    container: null,
    usage: input.usage,
    diagnostics: plain(input.diagnosis),
    ...(managed
      ? { context_management: editsOf(body).length > 0 ? { applied_edits: plain(applied) } : null }
      : {}),
    ...(gate.betas.has(BETA.thinkingBinding) ? { input_transformations: plain(transformations) } : {}),
  }
  return {
    // The fields above are what a message has; the type only names those the engine reads.
    message: { ...message, content: input.content } as unknown as WireReply['message'],
    rawBlocks: [],
    cutInputs: input.cutInputs,
    unfinished: [],
    others: [],
  }
}

/** Values of our own that are JSON by construction. */
function plain(value: unknown): JsonObject {
  return value as JsonObject
}
