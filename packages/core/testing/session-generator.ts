/**
 * Generates realistic sessions from a list of numbers. They contain parallel tool calls with one record per block,
 * interrupted tools, late results, thinking, media, server tools, unknown blocks, attachments, rewinds, partial
 * compactions, clearings, undo, and log lines of other programs.
 */
import { findCutPoints } from '../src/context/flatten-context.ts'
import { isToolResult, isToolUse, toBlocks } from '../src/log/block.ts'
import { isPrompt, type KnownRecord, type SessionRecord } from '../src/log/record.ts'
import {
  generateResultContent,
  generateServerToolPair,
  generateText,
  generateThinkingBlock,
  generateToolInput,
  generateUserBlocks,
} from './block-generator.ts'
import { GeneratorChoices } from './generator-choices.ts'
import { SessionBuilder } from './session-builder.ts'

/** The records, and the builder with which a test can go on. */
export interface GeneratedSession {
  readonly records: readonly SessionRecord[]
  readonly builder: SessionBuilder
}

/**
 * Generates a session from a list of numbers until the list is used up. The same numbers always give the same session.
 * With `settled`, every tool call has a result.
 */
export function generateSession(
  numbers: GeneratorChoices | readonly number[],
  options: { readonly settled?: boolean } = {},
): GeneratedSession {
  const choices = numbers instanceof GeneratorChoices ? numbers : new GeneratorChoices(numbers)
  const builder = new SessionBuilder('generated')
  if (!choices.oneIn(20)) prompt(builder, choices)
  continueSession(builder, choices, options)
  return { records: builder.records, builder }
}

/** Adds generated records to the builder's session until the numbers in `choices` are used up. */
export function continueSession(
  builder: SessionBuilder,
  choices: GeneratorChoices,
  options: { readonly settled?: boolean } = {},
): void {
  while (!choices.isSpent) STEPS[choices.below(STEPS.length)]?.(builder, choices, options.settled === true)
}

type Step = (builder: SessionBuilder, choices: GeneratorChoices, settled: boolean) => void

const STEPS: readonly Step[] = [
  prompt,
  respond,
  respond,
  respond,
  respond,
  attach,
  remark,
  rewind,
  compactSession,
  compactSession,
  clearSession,
  undo,
  keepBooks,
  others,
  lateAnswer,
]

function prompt(builder: SessionBuilder, choices: GeneratorChoices): void {
  builder.user(choices.oneIn(2) ? generateText(choices) : generateUserBlocks(choices))
}

/** Adds a response and the results of its tool calls. The response is one record, or one record per block. */
function respond(builder: SessionBuilder, choices: GeneratorChoices, settled: boolean): void {
  const response = builder.id('msg')
  const apart = choices.oneIn(2)
  const opening = openingBlocks(builder, choices)
  const calls = Array.from({ length: choices.below(4) }, () => builder.id('call'))
  const uses = calls.map((id) => ({
    type: 'tool_use',
    id,
    name: choices.pick(['Read', 'Bash', 'Edit']),
    input: generateToolInput(choices),
  }))
  if (!apart) builder.assistant(response, [...opening, ...uses])
  else for (const block of opening) builder.assistant(response, [block])
  for (const use of uses) {
    const own = apart ? builder.assistant(response, [use]) : null
    if (!settled && choices.oneIn(8)) continue
    builder.result(
      use.id,
      generateResultContent(choices),
      own !== null && choices.oneIn(2) ? { parentUuid: own.uuid } : {},
    )
    if (choices.oneIn(8)) builder.attachment({ type: 'hook_context', content: generateText(choices) })
  }
}

function openingBlocks(builder: SessionBuilder, choices: GeneratorChoices) {
  const thinking = choices.oneIn(2) ? [generateThinkingBlock(choices)] : []
  const pair = choices.oneIn(5) ? generateServerToolPair(builder.id('srv'), choices) : []
  // Sometimes the server tool call has no result yet.
  const server = pair.length > 0 && choices.oneIn(5) ? pair.slice(0, 1) : pair
  const strange = choices.oneIn(8) ? [{ type: 'hologram', frames: [1], more: { a: 1 } }] : []
  return [...thinking, ...server, ...strange, { type: 'text', text: generateText(choices) }]
}

function attach(builder: SessionBuilder, choices: GeneratorChoices): void {
  const kind = choices.pick(['todo', 'file', 'nested_memory', 'something_new'])
  const hidden = choices.oneIn(6) ? { isScreenOnly: true } : {}
  builder.attachment(
    { type: kind, path: `/src/${choices.below(3)}.md`, content: generateText(choices) },
    hidden,
  )
}

/** Adds a record that is no part of the dialogue: a meta or system message, a notice, progress, or an error of the engine. */
function remark(builder: SessionBuilder, choices: GeneratorChoices): void {
  const kind = choices.below(5)
  if (kind === 0) builder.user(generateText(choices), { isMeta: true })
  else if (kind === 4) builder.system(generateText(choices))
  else if (kind === 1) builder.notice('turn_duration', { content: 'took a while' })
  else if (kind === 2)
    builder.foreign({
      type: 'progress',
      uuid: builder.id('p'),
      parentUuid: builder.tip,
      timestamp: '2026-01-01T00:00:00.000Z',
      sessionId: 'generated',
    })
  else
    builder.assistant(builder.id('msg'), 'API error', {
      isApiErrorMessage: true,
      message: { id: builder.id('err'), role: 'assistant', model: '<synthetic>', content: 'API error' },
    })
}

/** Rewinds the session to an earlier prompt of the user and replaces that prompt. */
function rewind(builder: SessionBuilder, choices: GeneratorChoices): void {
  const prompts = builder.records.filter(isPrompt)
  const target = prompts[choices.below(prompts.length)]
  if (target !== undefined) builder.user(generateText(choices), { parentUuid: target.parentUuid })
}

/**
 * Adds a compaction that summarizes everything (`full`), the end (`from`) or the beginning (`up_to`) of the context.
 * The context is divided only where no response is split.
 */
export function compactSession(builder: SessionBuilder, choices: GeneratorChoices): void {
  const shown = builder.view.entries.toArray().map((entry) => entry.record)
  const cuts = findCutPoints(shown)
  const cut = cuts[choices.below(cuts.length)] ?? 0
  const form = choices.pick(['full', 'from', 'up_to'])
  const kept = form === 'full' ? [] : form === 'from' ? shown.slice(0, cut) : shown.slice(cut)
  const unanswered = form === 'full' ? findUnanswered(shown) : []
  builder.batch(() => {
    const boundary = builder.id('boundary')
    const summary = builder.id('summary')
    const anchor = form === 'from' ? boundary : summary
    const last = choices.oneIn(2) ? builder.id('todo') : null
    builder.notice('compact_boundary', {
      uuid: boundary,
      parentUuid: null,
      logicalParentUuid: builder.tip,
      compactMetadata: {
        trigger: 'manual',
        preTokens: 1,
        ...(kept.length > 0 ? { preservedMessages: { anchorUuid: anchor, uuids: listUuids(kept) } } : {}),
        ...(unanswered.length > 0
          ? { unansweredMessages: { anchorUuid: last ?? summary, uuids: listUuids(unanswered) } }
          : {}),
      },
    })
    builder.user(`Summary: ${generateText(choices)}`, {
      uuid: summary,
      parentUuid: boundary,
      isCompactSummary: true,
      isVisibleInTranscriptOnly: true,
    })
    if (last !== null)
      builder.attachment(
        { type: 'todo', content: generateText(choices), context: 'post-compact' },
        { uuid: last },
      )
  })
}

function listUuids(records: readonly KnownRecord[]): readonly string[] {
  return records
    .filter((record) => record.type === 'user' || record.type === 'assistant' || record.type === 'attachment')
    .map((record) => record.uuid)
}

function findUnanswered(shown: readonly KnownRecord[]): readonly KnownRecord[] {
  const last = shown.findLastIndex((record) => record.type === 'assistant')
  return shown.slice(last + 1).filter(isPrompt)
}

/** Adds a clearing of some of the tool results, attachments, thinking and inputs that are shown. */
export function clearSession(builder: SessionBuilder, choices: GeneratorChoices): void {
  const shown = builder.view.entries.toArray().map((entry) => entry.record)
  const results = shown.flatMap((record) =>
    record.type === 'user' ? toBlocks(record.message.content).filter(isToolResult) : [],
  )
  const calls = shown.flatMap((record) =>
    record.type === 'assistant' ? toBlocks(record.message.content).filter(isToolUse) : [],
  )
  const attachments = shown.filter((record) => record.type === 'attachment')
  const responses = shown.flatMap((record) => (record.type === 'assistant' ? [record.message.id] : []))
  const some = <T>(items: readonly T[]): readonly T[] => items.filter(() => choices.oneIn(2))
  const ids = some(results).map((block) => block.tool_use_id)
  builder.notice('microcompact_boundary', {
    content: 'Context microcompacted',
    microcompactMetadata: {
      trigger: 'auto',
      preTokens: 2,
      tokensSaved: 1,
      compactedToolIds: ids,
      clearedAttachmentUUIDs: some(attachments).map((record) => record.uuid),
      ...(choices.oneIn(4) ? { clearedThinking: some(responses) } : {}),
      ...(choices.oneIn(2) ? { notes: Object.fromEntries(ids.map((id) => [id, `blob ${id}`])) } : {}),
      ...(choices.oneIn(3)
        ? { clearedInputs: some(calls).map((block) => ({ toolUseId: block.id, field: 'content' })) }
        : {}),
    },
  })
}

/**
 * Undoes the newest compaction or clearing, sometimes the oldest one instead. The latter may not be allowed, but code
 * that reads the log must tolerate it.
 */
function undo(builder: SessionBuilder, choices: GeneratorChoices): void {
  const { rewrites } = builder.view
  const act = choices.oneIn(5) ? rewrites[0] : rewrites.at(-1)
  if (act !== undefined)
    builder.notice(act.kind === 'compact' ? 'compact_undone' : 'clear_undone', { of: act.uuid })
}

/** Adds a record that only the engine writes: a pin, a prefix snapshot, or a prefix update. */
function keepBooks(builder: SessionBuilder, choices: GeneratorChoices): void {
  const target = builder.tip ?? ''
  const kind = choices.below(3)
  if (kind === 0) builder.notice('pin', { pin: { target, pinned: !choices.oneIn(3) } })
  else if (kind === 1)
    builder.notice('epoch', { epoch: { sections: [], tools: [], model: 'model-a', parameters: {} } })
  else builder.notice('delta', { delta: { sections: { environment: generateText(choices) } } })
}

/** Adds a record of another conversation, a record of an unknown kind, or a copy of an existing record. */
function others(builder: SessionBuilder, choices: GeneratorChoices): void {
  const kind = choices.below(4)
  if (kind === 0) builder.user('to the subagent', { isSidechain: true })
  else if (kind === 1) builder.foreign({ type: 'file-history-snapshot' })
  else if (kind === 2)
    builder.foreign({ type: 'something-new', uuid: builder.id('x'), parentUuid: builder.tip })
  else builder.foreign(builder.records[choices.below(builder.records.length)] as SessionRecord)
}

/**
 * Adds a result for any earlier tool call. The call may already have a result, or a rewind may have removed the call.
 */
function lateAnswer(builder: SessionBuilder, choices: GeneratorChoices): void {
  const calls = builder.records.flatMap((record) =>
    record.type === 'assistant'
      ? toBlocks((record as KnownRecord & { type: 'assistant' }).message.content).filter(isToolUse)
      : [],
  )
  const call = calls[choices.below(calls.length)]
  if (call === undefined) return
  // Sometimes two responses contain a tool call with the same id.
  if (choices.oneIn(6)) builder.assistant(builder.id('msg'), [call])
  builder.result(call.id, generateText(choices))
}
