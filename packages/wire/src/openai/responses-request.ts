/**
 * Encodes a model call as a request of the Responses API.
 */
import type { ModelStreamInput } from '@tidemark/core/engine/ports'
import type { JsonObject } from '@tidemark/core/log/json'
import type { WorkInSteps } from '@tidemark/core/log/work-steps'
import type { EncodeCallOptions, EncodedRequest } from '../providers/provider-codec.ts'
import { type BodySpelling, encodeOpenaiBody, type RequestFront } from './incremental-body.ts'
import { BREAKPOINT_FIELD, EXPLICIT_BREAKPOINT, toInputItems, toInputPart } from './input-items.ts'
import {
  readNeutralSettings,
  readNeutralTool,
  SYSTEM_ROLE_PARAMETER,
  spellToolChoice,
} from './request-settings.ts'

const RESPONSES_SPELLING: BodySpelling = {
  list: 'input',
  toFields,
  toSystemItems({ system, markedSystem, parameters }) {
    if (system.length === 0) return []
    const content = system.map((block, index) => ({
      ...toInputPart(block),
      ...(markedSystem.has(index) ? { [BREAKPOINT_FIELD]: EXPLICIT_BREAKPOINT } : {}),
    }))
    return [{ type: 'message', role: parameters[SYSTEM_ROLE_PARAMETER] ?? 'developer', content }]
  },
  toItems(messageAt, index) {
    const message = messageAt(index)
    return message === undefined ? [] : toInputItems(message, messageAt(index - 1)?.message)
  },
}

export function encodeResponsesCall(
  call: ModelStreamInput,
  options: EncodeCallOptions,
): WorkInSteps<EncodedRequest> {
  return encodeOpenaiBody(call, options, RESPONSES_SPELLING)
}

function toFields({ model, parameters, tools }: RequestFront): JsonObject {
  const { maxOutput, effort, thinks, toolChoice, others } = readNeutralSettings(parameters)
  const level = effort ?? (thinks ? null : 'none')
  return {
    model,
    ...(maxOutput === null ? {} : { max_output_tokens: maxOutput }),
    ...(level === null ? {} : { reasoning: { effort: level } }),
    ...(toolChoice === null || tools.length === 0 ? {} : spellToolChoice(toolChoice, toNamedChoice)),
    ...others,
    ...(tools.length === 0 ? {} : { tools: tools.map(toTool) }),
  }
}

function toNamedChoice(name: string): JsonObject {
  return { type: 'function', name }
}

function toTool(tool: JsonObject): JsonObject {
  const parts = readNeutralTool(tool)
  return parts === null ? tool : { type: 'function', ...parts, strict: false }
}
