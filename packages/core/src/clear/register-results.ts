/** What the user's side brings to the register: results, words, and files of memory attached. */
import { type Block, blocksOf, isToolResult, type ToolResultBlock } from '../conversation/block.ts'
import type { AttachmentRecord, UserRecord } from '../conversation/record.ts'
import type { Entry } from '../view/entry.ts'
import { callOf, type Register, sizeOfItem, type Tally } from './register-state.ts'
import type { ToolCall, ToolResult } from './registered.ts'
import { supersede } from './supersede.ts'

interface Brought<R> {
  readonly entry: Entry
  readonly record: R
  readonly place: number
}

export function registerResults(register: Register, brought: Brought<UserRecord>): Register {
  const { record } = brought
  const results = blocksOf(record.message.content).filter(isToolResult)
  let next = register
  for (const block of results) next = registerResult(next, block, brought)
  return {
    ...next,
    isAnswering: true,
    userUuid: record.message.role === 'user' ? record.uuid : next.userUuid,
  }
}

/** One that comes too late or twice is not shown, and one whose call nobody knows is nobody's to clear. */
function registerResult(register: Register, block: ToolResultBlock, brought: Brought<UserRecord>): Register {
  const call = callOf(register, block.tool_use_id)
  const isLate = call === undefined || !register.asking.includes(call.response)
  if (isLate || register.resultPlaces.get(call.id) !== undefined) return register
  const result = resultFrom(register, { block, call }, brought)
  const next = {
    ...register,
    results: register.results.push(result),
    resultPlaces: register.resultPlaces.add(call.id, register.results.length),
  }
  return call.isClearable ? withMeaning(counted(next, result), result) : next
}

interface Answer {
  readonly block: ToolResultBlock
  readonly call: ToolCall
}

function resultFrom(
  register: Register,
  { block, call }: Answer,
  { entry, record, place }: Brought<UserRecord>,
): ToolResult {
  const { rules, newestRead } = register
  const isUnchanged = call.isClearable && rules.isUnchanged(block)
  const blob = blobOf(record, call.id)
  return {
    call,
    uuid: record.uuid,
    place,
    tokens: rules.estimator.block(block),
    isError: block.is_error === true,
    isComplete: !isUnchanged && blob === null && rules.isWhole(block),
    isCleared: entry.cleared?.results.some(({ id }) => id === call.id) === true,
    blob,
    pointsAt: isUnchanged && call.path !== null ? (newestRead.get(call.path) ?? null) : null,
  }
}

/** A log of another program may hold anything there. */
function blobOf({ spilled }: UserRecord, id: string): string | null {
  const found = Array.isArray(spilled) ? spilled.find((each) => each?.toolUseId === id) : undefined
  return typeof found?.blob === 'string' ? found.blob : null
}

function counted(register: Register, result: ToolResult): Register {
  const tokens = sizeOfItem(result)
  if (tokens === 0) return register
  return {
    ...register,
    active: more(register.active, tokens),
    fresh: more(register.fresh, tokens),
    firstActive: register.firstActive ?? register.results.length - 1,
  }
}

function more({ count, tokens }: Tally, added: number): Tally {
  return { count: count + 1, tokens: tokens + added }
}

/** What the result says about earlier ones. */
function withMeaning(register: Register, result: ToolResult): Register {
  const { call, isError, isComplete, pointsAt } = result
  const supersession = supersede(register.supersession, { ...call, isError, isComplete })
  const isRead =
    call.path !== null && isComplete && !isError && call.range === null && call.concern !== 'edit'
  const newestRead = isRead && call.path !== null ? register.newestRead.set(call.path, call.id) : null
  return {
    ...register,
    supersession,
    newestRead: newestRead ?? register.newestRead,
    pointedAtBy: pointsAt === null ? register.pointedAtBy : pointed(register, pointsAt, call.id),
  }
}

function pointed({ pointedAtBy }: Register, base: string, id: string): Register['pointedAtBy'] {
  return pointedAtBy.set(base, [...(pointedAtBy.get(base) ?? []), id])
}

export function registerAttachment(
  register: Register,
  { record, place }: Brought<AttachmentRecord>,
): Register {
  const next = { ...register, isAnswering: true }
  const { type, path } = record.attachment
  if (type !== 'nested_memory' || typeof path !== 'string') return next
  const block: Block = { ...record.attachment, type }
  const tokens = register.rules.estimator.block(block)
  return { ...next, memories: next.memories.push({ path, uuid: record.uuid, place, tokens }) }
}
