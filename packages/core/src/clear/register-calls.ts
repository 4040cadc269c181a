/** Responses and the calls they make, taken into the register. */
import { blocksOf, isThinking, isToolUse, type ToolUseBlock } from '../conversation/block.ts'
import type { AssistantRecord } from '../conversation/record.ts'
import type { Entry } from '../view/entry.ts'
import type { Register } from './register-state.ts'
import type { ToolCall } from './registered.ts'
import { factsOfCall, type LargeInput, largeInputs } from './tool-call.ts'

export interface Said {
  readonly entry: Entry
  readonly record: AssistantRecord
  readonly place: number
}

export function registerCalls(register: Register, said: Said): Register {
  let next = withThinking(begun(register, said), said)
  const response = next.asking.at(-1) ?? 0
  for (const block of blocksOf(said.record.message.content)) {
    // The first of two calls with one id counts: flattening leaves the second out.
    if (!isToolUse(block) || next.callPlaces.get(block.id) !== undefined) continue
    const call = callFrom(block, said, { register, response })
    next = {
      ...next,
      calls: next.calls.push(call),
      callPlaces: next.callPlaces.add(call.id, next.calls.length),
    }
  }
  return { ...next, answeredAt: said.place }
}

/** Records of one response share its id; one that comes while it is being answered still belongs to it. */
function begun(register: Register, { record, place }: Said): Register {
  const { id } = record.message
  const { responses, asking, isAnswering } = register
  if (asking.some((index) => responses.at(index)?.id === id)) return register
  const index = responses.length
  return {
    ...register,
    responses: responses.push({ id, place }),
    asking: isAnswering ? [index] : [...asking, index],
    askedFrom: isAnswering ? register.calls.length : register.askedFrom,
    isAnswering: false,
  }
}

function withThinking(register: Register, { record, entry }: Said): Register {
  const { id, content } = record.message
  const thinks = entry.cleared?.thinking !== true && blocksOf(content).some(isThinking)
  if (!thinks || register.thinkers.last === id) return register
  return { ...register, thinkers: register.thinkers.push(id) }
}

interface Within {
  readonly register: Register
  readonly response: number
}

function callFrom(block: ToolUseBlock, { entry, record, place }: Said, within: Within): ToolCall {
  const { rules } = within.register
  const tool = typeof block.name === 'string' ? block.name : 'unknown'
  const isClearable = rules.isClearable(tool)
  const isWrite = rules.isWrite(tool)
  return {
    id: block.id,
    tool,
    uuid: record.uuid,
    place,
    response: within.response,
    isClearable,
    ...factsOfCall(block, isWrite),
    sameness: isClearable ? `${tool}\n${JSON.stringify(block.input)}` : '',
    inputs: isClearable && isWrite ? inputsOf(block, entry, within.register) : [],
  }
}

function inputsOf(block: ToolUseBlock, { cleared }: Entry, { rules }: Register): readonly LargeInput[] {
  const gone = (field: string): boolean =>
    cleared?.inputs.some((input) => input.toolUseId === block.id && input.field === field) === true
  return largeInputs(block, rules.largeInput, rules.estimator.text).filter(({ field }) => !gone(field))
}
