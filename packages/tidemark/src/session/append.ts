/**
 * Implements `session.append`: writes messages durably at the end of the log. Prompts and attachments may also be
 * appended while a run is in progress; responses and tool results may not, because the run appends its own.
 */
import { collectOpeningRecords } from '@tidemark/core/engine/announce-updates'
import { finishModelCall } from '@tidemark/core/engine/call-model'
import type { TurnEvent, TurnFailure } from '@tidemark/core/engine/events'
import { createUndoNotice, UNDO_NOTICE_TYPE } from '@tidemark/core/engine/measure-context'
import type { Reply } from '@tidemark/core/engine/reply'
import {
  appendUnlinkedBatches,
  appendUnlinkedRecords,
  refreshSession,
  type TurnContext,
  type UnlinkedRecord,
  yieldToHost,
} from '@tidemark/core/engine/session-writer'
import { fitReplyToolInputs } from '@tidemark/core/engine/tool-input'
import { TidemarkError } from '@tidemark/core/errors'
import { createRecordedUserInputs } from '@tidemark/core/facts/user-input'
import {
  type Block,
  isTextBlock,
  isToolResult,
  isToolUse,
  type ToolUseBlock,
  toBlocks,
} from '@tidemark/core/log/block'
import { countStringCharacters, isObject, type JsonObject, omitUndefined } from '@tidemark/core/log/json'
import {
  type AssistantRecord,
  isKnownRecord,
  type RecordedUserInput,
  type SessionRecord,
  type SpilledContent,
  type UserRecord,
} from '@tidemark/core/log/record'
import type { SessionLog } from '@tidemark/core/log/session-log'
import { replaceLoneSurrogates } from '@tidemark/core/text/truncate-text'
import { createToolResultRecord } from '@tidemark/core/turn/run-tools'
import { countTurnAndRecordClearing } from '@tidemark/core/turn/turn'
import type { ClientMessage, ClientRequest } from '@tidemark/wire/providers/client-request'
import { readMessageReply } from '@tidemark/wire/providers/message-object'
import { findCodec } from '../models/providers.ts'
import { REMINDER_TYPE } from '../sources/reminder-source.ts'
import { drainEvents } from './events.ts'
import { type AttachmentInput, type Message, type MessageInput, parseMessageInput } from './messages.ts'
import { emitSessionEvent, type OpenSession, trackWork } from './open-session.ts'
import { checkNotRepeated } from './repeated-messages.ts'
import { createTurnContext } from './turn-host.ts'

/**
 * Appends messages to the log and returns the uuids of their records in order, when they are on disk. A response has one record
 * per block. Throws `bad-record` for a message that does not fit the conversation, and `busy`, `locked` or `io-failed`.
 */
export async function appendMessages(
  session: OpenSession,
  inputs: readonly unknown[],
): Promise<readonly string[]> {
  // If other work is in progress, it may be an append whose message comes before this one in the log.
  const isAlone = session.pendingWork.size === 0
  return trackWork(session, async () => {
    const replies = inputs.map((input) => readOwnResponse(session, input))
    const messages = inputs.map((input, index) => parseMessageInput(replies[index]?.message ?? input))
    const given = replaceLoneSurrogates(messages)
    const { id, state, awaited } = session
    checkNotRepeated(id, state.session, given, awaited.request !== null)
    const byId = new Map(replies.flatMap((reply) => (reply === null ? [] : [[reply.message.id, reply]])))
    return writeInBatches(session, given, isAlone, byId)
  })
}

/**
 * Reads a response in the provider's own format, which has no role; null for other input. Only the codec can read its
 * usage and exact texts.
 */
function readOwnResponse({ model }: OpenSession, input: unknown): Reply | null {
  if (!isObject(input) || input.role !== undefined) return null
  const read = findCodec(model.choice).decodeBody(JSON.stringify(input))
  return read.ok ? read.reply : null
}

type OwnReplies = ReadonlyMap<string, Reply>
const NO_REPLIES: OwnReplies = new Map()

/**
 * Appends messages of a client's request. They may repeat messages of a branch that the client has left. Thousands of messages
 * are written in parts, each with one flush to disk. If the process is killed, the log has the first parts, and the next request
 * adds the rest.
 */
export async function appendClientMessages(
  session: OpenSession,
  messages: readonly ClientMessage[],
  findExactBlock: FindExactBlock,
): Promise<void> {
  await trackWork(session, async () => {
    for (const part of splitBySize(messages)) {
      const batches = toBatches(session, part, findExactBlock).filter(
        ({ reply }) => findKnownReply(session, reply) === null,
      )
      await writeWithRetries(session, () => appendClientBatches(session, batches))
      await yieldToHost(createTurnContext(session))
    }
  })
}

type FindExactBlock = ClientRequest['findExactBlock']

/** Appends the response to a client's request, with the exact texts of its blocks. Does nothing if the log already has it. */
export async function appendClientReply(session: OpenSession, given: Reply): Promise<void> {
  const message = replaceLoneSurrogates(given.message)
  const reply = message === given.message ? given : { ...given, message, rawBlocks: [] }
  const isAlone = session.pendingWork.size === 0
  await trackWork(session, async () => {
    const { id, state, awaited } = session
    checkNotRepeated(id, state.session, [message as unknown as Message], awaited.request !== null)
    if (findKnownReply(session, reply) === null)
      await writeWithRetries(session, () => appendReply(session, reply, isAlone))
  })
}

/** Maximum characters and messages that are written before other work can run. Writing them takes some milliseconds. */
const PART = { characters: 400_000, messages: 200 }

function* splitBySize(messages: readonly ClientMessage[]): Generator<readonly ClientMessage[]> {
  let from = 0
  let characters = 0
  for (const [index, message] of messages.entries()) {
    characters += countStringCharacters(message)
    if (characters < PART.characters && index - from < PART.messages && index < messages.length - 1) continue
    yield messages.slice(from, index + 1)
    ;[from, characters] = [index + 1, 0]
  }
}

/** Appends records that are not messages, such as those of calls beside the conversation. */
export async function appendOtherRecords(
  session: OpenSession,
  records: readonly UnlinkedRecord[],
): Promise<void> {
  const write = (): Writing => appendUnlinkedRecords(createTurnContext(session), records)
  if (records.length > 0) await trackWork(session, () => writeWithRetries(session, write))
}

type WritableMessage = MessageInput | ClientMessage

/** Number of batches that are written before other work can run; they take some milliseconds. */
const BATCHES_IN_A_ROW = 20

async function writeInBatches(
  session: OpenSession,
  given: readonly WritableMessage[],
  isAlone: boolean,
  replies: OwnReplies,
): Promise<readonly string[]> {
  const uuids: string[] = []
  for (const [place, { reply, messages }] of toBatches(session, given, null, replies).entries()) {
    // A caller may append thousands of messages. A journal in memory takes them without a pause, so pauses are made here.
    if (place % BATCHES_IN_A_ROW === BATCHES_IN_A_ROW - 1) await yieldToHost(createTurnContext(session))
    const write = (): Writing =>
      reply === null ? appendUserMessages(session, messages) : appendReply(session, reply, isAlone)
    uuids.push(...(findKnownReply(session, reply) ?? (await writeWithRetries(session, write))))
  }
  return uuids
}

/**
 * Returns the records of a response that is already in the log. It is then not appended again, unless it answers the
 * request that `next` returned.
 */
function findKnownReply({ state, awaited }: OpenSession, reply: Reply | null): readonly string[] | null {
  return reply === null || awaited.request !== null ? null : findResponseRecords(state.session, reply)
}

interface Batch {
  readonly reply: Reply | null
  readonly messages: WritableMessage[]
}

/**
 * Groups messages into batches that are in the log as a whole or not at all. Consecutive user messages and attachments form
 * one batch. Each response is a batch of its own, because it ends the model call that it answers.
 */
function toBatches(
  { settings, model, tools, client }: OpenSession,
  inputs: readonly WritableMessage[],
  findExactBlock: FindExactBlock,
  replies: OwnReplies = NO_REPLIES,
): readonly Batch[] {
  const batches: Batch[] = []
  for (const input of inputs) {
    const last = batches.at(-1)
    if (input.role === 'assistant') {
      const reply =
        replies.get(String((input as Message).id)) ??
        toReply(input as Message, settings.ids.next('response'), model.choice.id)
      // Inputs of a client's calls are not converted: the client sends them again as it has them.
      const own =
        client === null
          ? fitReplyToolInputs(reply, tools.definitions)
          : withExactBlocks(reply, findExactBlock)
      batches.push({ reply: own, messages: [] })
    } else if (last === undefined || last.reply !== null) batches.push({ reply: null, messages: [input] })
    else last.messages.push(input)
  }
  return batches
}

function withExactBlocks(reply: Reply, findExactBlock: FindExactBlock): Reply {
  if (findExactBlock === null) return reply
  const rawBlocks = toBlocks(reply.message.content).flatMap((block, index) => {
    const text = findExactBlock(block)
    return text === undefined ? [] : [{ index, text }]
  })
  return rawBlocks.length === 0 ? reply : { ...reply, rawBlocks }
}

const MAX_TRIES = 8

type Writing = AsyncGenerator<TurnEvent, TurnFailure | null>

/**
 * Writes records to the log. If another process has appended records in the meantime, they are read and the write is tried again.
 */
async function writeWithRetries(session: OpenSession, write: () => Writing): Promise<readonly string[]> {
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const records: SessionRecord[] = []
    const failure = await drainEvents(
      { events: write(), onEvent: (event) => emitSessionEvent(session, event) },
      (event) => {
        if (event.type === 'appended') records.push(...event.records)
      },
    )
    if (failure === null) return messageUuids(records)
    if (failure.reason !== 'conflict') throw toAppendError(session, failure)
    await refreshSession(createTurnContext(session))
  }
  throw new TidemarkError(
    'busy',
    `append: other processes keep writing to the session ${session.id}. Try again.`,
  )
}

/** Types of the attachments that the engine adds to the caller's messages. */
const ENGINE_TYPES: ReadonlySet<unknown> = new Set([UNDO_NOTICE_TYPE, REMINDER_TYPE])

/** Returns the uuids of the caller's messages, without those of records that the engine added. */
function messageUuids(records: readonly SessionRecord[]): readonly string[] {
  return records.flatMap((record) => {
    if (!isKnownRecord(record) || record.type === 'system') return []
    return record.type === 'attachment' && ENGINE_TYPES.has(record.attachment.type) ? [] : [record.uuid]
  })
}

function toAppendError({ id }: OpenSession, failure: TurnFailure): TidemarkError {
  if (failure.reason === 'port') return new TidemarkError('io-failed', `append: ${failure.message}`)
  if (failure.reason !== 'locked') return new TidemarkError('io-failed', `append: ${failure.reason}.`)
  const { owner, message } = failure.refusal as { readonly owner: string; readonly message: string }
  return new TidemarkError('locked', message, { details: { session: id, owner } })
}

async function* appendUserMessages(session: OpenSession, messages: readonly WritableMessage[]): Writing {
  const run = createTurnContext(session, { waitsForReply: true })
  const callIds = listAnsweredCalls(messages)
  if (callIds.length > 0) checkNoRun(session)
  checkResults(callIds, (id) => (session.arrivingResults.has(id) ? 0 : countOpenCalls(run.state.session, id)))
  for (const id of callIds) session.arrivingResults.add(id)
  try {
    if (session.client !== null) for (const id of callIds) findCall(run.state.session, id)
    const bodies: UnlinkedRecord[] = []
    for (const message of messages)
      if (message.role === 'attachment')
        bodies.push({ type: 'attachment', isMeta: true, attachment: (message as AttachmentInput).attachment })
      else if (message.role === 'system' || session.client !== null)
        bodies.push(toClientRecord(message as ClientMessage))
      else bodies.push(yield* toUserRecord(run, message as Message))
    const opening = hasPrompt(messages) ? yield* collectRecordsBeforePrompt(run) : []
    return yield* appendUnlinkedRecords(run, [...opening, ...bodies])
  } finally {
    for (const id of callIds) session.arrivingResults.delete(id)
  }
}

/** Appends batches of a client's list, and removes the written ones from `batches`. */
async function* appendClientBatches(session: OpenSession, batches: Batch[]): Writing {
  checkNoRun(session)
  const run = createTurnContext(session, { waitsForReply: true })
  checkClientResults(session, batches)
  const callIds = batches.flatMap(({ messages }) => listAnsweredCalls(messages))
  for (const id of callIds) session.arrivingResults.add(id)
  try {
    const first = batches.findIndex(({ messages }) => hasPrompt(messages))
    const opening = first === -1 ? [] : yield* collectRecordsBeforePrompt(run)
    const records = batches.map(({ reply, messages }, index) => [
      ...(index === first ? opening : []),
      ...(reply === null
        ? messages.map((message) => toClientRecord(message as ClientMessage))
        : toAssistantRecords(reply, { billedUsage: NOTHING_BILLED })),
    ])
    const failure = yield* appendUnlinkedBatches(run, records)
    batches.splice(0, batches.length - records.length)
    return failure
  } finally {
    for (const id of callIds) session.arrivingResults.delete(id)
  }
}

function checkNoRun({ busyWith }: OpenSession): void {
  if (busyWith === 'run')
    throw new TidemarkError(
      'busy',
      'append: a run is under way, and it appends its responses and tool results itself.',
    )
}

function hasPrompt(messages: readonly WritableMessage[]): boolean {
  return messages.some(({ role }) => role === 'user')
}

async function* collectRecordsBeforePrompt(
  run: TurnContext,
): AsyncGenerator<TurnEvent, readonly UnlinkedRecord[]> {
  return [...(yield* collectOpeningRecords(run)), ...createUndoNotice(run)]
}

/**
 * Converts a client's message to a record, with fields that the engine does not know. Tool results stay whole in the
 * record, and are not moved to blobs: the client does not know that its model would have to read them there.
 */
function toClientRecord(given: ClientMessage): UnlinkedRecord {
  if (given.role === 'system') return { type: 'user', message: given as UserRecord['message'] }
  const { role: _, content, ...fields } = given
  const messageFields = Object.keys(fields).length === 0 ? {} : { messageFields: fields as JsonObject }
  return { type: 'user', message: { role: 'user', content }, ...messageFields }
}

/** Returns the ids of the tool calls whose results are in the messages. */
function listAnsweredCalls(messages: readonly WritableMessage[]): readonly string[] {
  return messages
    .flatMap((message) => (message.role === 'attachment' ? [] : [...toBlocks((message as Message).content)]))
    .flatMap((block) => (isToolResult(block) ? [block.tool_use_id] : []))
}

/** Checks the tool results of batches that are written together: each call must be in the log or in an earlier batch. */
function checkClientResults({ state, arrivingResults }: OpenSession, batches: readonly Batch[]): void {
  const open = new Map<string, number>()
  for (const { reply, messages } of batches) {
    const calls = toBlocks(reply?.message.content ?? []).filter(isToolUse)
    for (const { id } of calls) open.set(id, calls.filter((call) => call.id === id).length)
    const ids = listAnsweredCalls(messages)
    checkResults(
      ids,
      (id) => open.get(id) ?? (arrivingResults.has(id) ? 0 : countOpenCalls(state.session, id)),
    )
    for (const id of ids) {
      if (!open.has(id)) findCall(state.session, id)
      open.set(id, (open.get(id) ?? countOpenCalls(state.session, id)) - 1)
    }
  }
}

/**
 * Throws if a call gets more results than it needs, because API requests leave out a second result. `countOpen`: number
 * of calls with this id that have no result yet.
 */
function checkResults(ids: readonly string[], countOpen: (id: string) => number): void {
  const left = new Map<string, number>()
  for (const id of ids) {
    const open = left.get(id) ?? countOpen(id)
    if (open < 1)
      throw new TidemarkError(
        'bad-record',
        `append: the tool call ${id} has a result already, and the model would not see a second one. A turn that continues without a result answers the call itself.`,
        { details: { id } },
      )
    left.set(id, open - 1)
  }
}

/**
 * Returns how many calls with this id, in the newest response that has one, lack a result; without such a call, 1 until a result
 * came.
 */
function countOpenCalls(session: SessionLog, id: string): number {
  let [calls, results] = [0, 0]
  let response: string | null = null
  for (const { type, message } of messagesBackwards(session)) {
    if (type === 'assistant' && response !== null && message.id !== response) break
    for (const block of toBlocks(message.content)) {
      if (isToolResult(block) && block.tool_use_id === id && response === null) results += 1
      if (type !== 'assistant' || !isToolUse(block) || block.id !== id) continue
      calls += 1
      response = message.id
    }
  }
  return calls === 0 ? 1 - results : calls - results
}

function* messagesBackwards({ records }: SessionLog) {
  for (let index = records.length - 1; index >= 0; index -= 1) {
    const record = records.at(index)
    if (record === undefined || !isKnownRecord(record)) continue
    if (record.type === 'user' || record.type === 'assistant') yield record
  }
}

/** Converts a user message to a record. Large tool results are moved to the blob store. */
async function* toUserRecord(
  run: TurnContext,
  { content, userInputs: given }: Message,
): AsyncGenerator<TurnEvent, UnlinkedRecord> {
  // `toolResult` sets the field on the messages that it creates.
  const recorded = Array.isArray(given) ? (given as readonly RecordedUserInput[]) : []
  const userInputs = [...createRecordedUserInputs(content), ...recorded]
  if (typeof content === 'string') return { type: 'user', message: { role: 'user', content }, userInputs }
  const blocks: Block[] = []
  const spilled: SpilledContent[] = []
  for (const block of content) {
    if (!isToolResult(block)) blocks.push(block)
    else {
      const arrived = yield* createToolResultRecord(
        run,
        findCall(run.state.session, block.tool_use_id),
        block,
      )
      blocks.push(arrived.result)
      spilled.push(...(arrived.body.spilled ?? []))
    }
  }
  const record: UnlinkedRecord = { type: 'user', message: { role: 'user', content: blocks }, userInputs }
  return spilled.length === 0 ? record : { ...record, spilled }
}

/**
 * Returns the tool call with this id. Throws if the log has no such tool call, because API requests leave out a result
 * without its call.
 */
function findCall(session: SessionLog, id: string): ToolUseBlock {
  for (const { type, message } of messagesBackwards(session)) {
    if (type !== 'assistant') continue
    for (const block of toBlocks(message.content)) if (isToolUse(block) && block.id === id) return block
  }
  throw new TidemarkError(
    'bad-record',
    `append: there is no tool call ${id} in this session. Append the response that made it first.`,
    { details: { id } },
  )
}

async function* appendReply(session: OpenSession, reply: Reply, isAlone: boolean): Writing {
  checkNoRun(session)
  const run = createTurnContext(session)
  const { request } = session.awaited
  const late = findLateAnchor(session, isAlone)
  const bodies = toAssistantRecords(reply, omitUndefined({ afterUuid: late }))
  if (request === null) return yield* appendUnlinkedRecords(run, bodies)
  const { message } = reply
  const { cacheModel, cacheMonitor } = run.state
  const { failure } = yield* finishModelCall(run, request, { reply, bodies, isInConversation: true })
  if (failure !== null) {
    // The response was not written to the log. The cache model and cache monitor are restored, because they will
    // process the response again at the next attempt.
    run.state = { ...run.state, cacheModel, cacheMonitor }
    return failure
  }
  session.awaited.settle(request)
  session.refusal = null
  yield { type: 'answered', reply, usage: message.usage ?? null, forecast: request.forecast }
  const halt = yield* countTurnAndRecordClearing(run, reply)
  const isTurnEnd = !toBlocks(message.content).some(isToolUse)
  if (halt === null) run.host.startBackgroundWork?.(run.state, isTurnEnd ? 'turn-end' : 'response')
  return halt
}

/**
 * Returns the uuid of the last record in the pending request if later messages were appended or are being appended. In
 * the context they come after the response, because the request did not contain them. The sent prefix stays unchanged.
 */
function findLateAnchor({ awaited, state }: OpenSession, isAlone: boolean): string | undefined {
  const { lastUuid } = awaited.request ?? {}
  if (lastUuid === undefined) return undefined
  const { entries } = state.view
  for (let index = entries.length - 1; index >= 0; index -= 1) {
    const record = entries.at(index)?.record
    if (record?.uuid === lastUuid) return isAlone ? undefined : lastUuid
    if (record?.type === 'user' || record?.type === 'attachment') break
  }
  return lastUuid
}

/** The billed usage of a response in a client's list: zero, because it was counted when it came through the session. */
const NOTHING_BILLED = { input_tokens: 0, output_tokens: 0 }

/** Converts a response to log records, one per content block, as `session.run` does. */
function toAssistantRecords(
  { message, usage, stop, rawBlocks }: Reply,
  place: Pick<AssistantRecord, 'billedUsage'> & { readonly afterUuid?: string },
): readonly UnlinkedRecord[] {
  const rest = { ...place, ...omitUndefined({ usage, stop }) }
  const blocks = toBlocks(message.content)
  if (blocks.length === 0) return [{ type: 'assistant', message: { ...message, content: [] }, ...rest }]
  return blocks.map((block, index) => {
    const raw = rawBlocks.find((each) => each.index === index)
    const exact = raw === undefined ? {} : { rawBlocks: [{ index: 0, text: raw.text }] }
    return { type: 'assistant', message: { ...message, content: [block] }, ...exact, ...rest }
  })
}

/** Converts a response in the format of the SDK. `id` and `model` are defaults for a response without these fields. */
function toReply({ content, ...fields }: Message, id: string, model: string): Reply {
  const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : content
  // Copies the response without fields that JSON leaves out.
  const response = JSON.parse(JSON.stringify({ id, model, ...fields, type: 'message', content: blocks }))
  const reply = readMessageReply(response as JsonObject)
  if (reply !== null) return reply
  throw new TidemarkError(
    'bad-record',
    'append: expected a response of the model. It must have id, model and content.',
  )
}

/** Returns the uuids of the records that have the response, in order; null if the log does not have all its blocks. */
function findResponseRecords(session: SessionLog, { message }: Reply): readonly string[] | null {
  if (session.responseStarts.get(message.id) === undefined) return null
  const uuids: string[] = []
  const blocks = toBlocks(message.content).map((block) => JSON.stringify(block))
  let missing = blocks.length
  for (const record of messagesBackwards(session)) {
    if (missing === 0) break
    if (record.type !== 'assistant' || record.message.id !== message.id) continue
    const found = toBlocks(record.message.content).map((block) => JSON.stringify(block))
    const isNext = found.length > 0 && found.join() === blocks.slice(missing - found.length, missing).join()
    if (!isNext) return null
    missing -= found.length
    uuids.unshift(record.uuid)
  }
  return uuids.length > 0 && missing === 0 ? uuids : null
}

/** Returns the text of a reply, without thinking and tool calls. */
export function extractReplyText({ message }: Reply): string {
  return toBlocks(message.content)
    .flatMap((block) => (isTextBlock(block) ? [block.text] : []))
    .join('')
}
