/**
 * Sessions as they really go, from a list of choices: parallel calls stored block by block with results
 * hanging beside the chain, interrupted tools, late answers, thinking, media, server tools, unknown blocks,
 * attachments, rewinds, partial compactions upon partial compactions, clearings, undo, and lines of others.
 */
import {
  blocksOf,
  isPrompt,
  isToolResult,
  isToolUse,
  type KnownRecord,
  legalCuts,
  type SessionRecord,
} from '@tidemark/core'
import {
  type Choices,
  resultContent,
  serverPair,
  textFrom,
  thinkingBlock,
  toolInput,
  userBlocks,
} from './block-generator.ts'
import { Teller } from './session-builder.ts'

export interface GeneratedSession {
  readonly records: readonly SessionRecord[]
  readonly teller: Teller
}

/** Told until the choices are spent. With `settled`, no call is left without an answer. */
export function generateSession(
  choices: Choices,
  options: { readonly settled?: boolean } = {},
): GeneratedSession {
  const teller = new Teller('generated')
  if (!choices.oneIn(20)) prompt(teller, choices)
  continueSession(teller, choices, options)
  return { records: teller.records, teller }
}

/** The story goes on from where the teller stands. */
export function continueSession(
  teller: Teller,
  choices: Choices,
  options: { readonly settled?: boolean } = {},
): void {
  while (!choices.isSpent) STEPS[choices.below(STEPS.length)]?.(teller, choices, options.settled === true)
}

type Step = (teller: Teller, choices: Choices, settled: boolean) => void

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

function prompt(teller: Teller, choices: Choices): void {
  teller.user(choices.oneIn(2) ? textFrom(choices) : userBlocks(choices))
}

/** One response and what answers it, in one record or one a block. */
function respond(teller: Teller, choices: Choices, settled: boolean): void {
  const response = teller.id('msg')
  const apart = choices.oneIn(2)
  const opening = openingBlocks(teller, choices)
  const calls = Array.from({ length: choices.below(4) }, () => teller.id('call'))
  const uses = calls.map((id) => ({
    type: 'tool_use',
    id,
    name: choices.pick(['Read', 'Bash', 'Edit']),
    input: toolInput(choices),
  }))
  if (!apart) teller.assistant(response, [...opening, ...uses])
  else for (const block of opening) teller.assistant(response, [block])
  for (const use of uses) {
    const said = apart ? teller.assistant(response, [use]) : null
    if (!settled && choices.oneIn(8)) continue
    teller.result(
      use.id,
      resultContent(choices),
      said !== null && choices.oneIn(2) ? { parentUuid: said.uuid } : {},
    )
    if (choices.oneIn(8)) teller.attachment({ type: 'hook_context', content: textFrom(choices) })
  }
}

function openingBlocks(teller: Teller, choices: Choices) {
  const thinking = choices.oneIn(2) ? [thinkingBlock(choices)] : []
  const pair = choices.oneIn(5) ? serverPair(teller.id('srv'), choices) : []
  // Now and then the search is still under way.
  const server = pair.length > 0 && choices.oneIn(5) ? pair.slice(0, 1) : pair
  const strange = choices.oneIn(8) ? [{ type: 'hologram', frames: [1], more: { a: 1 } }] : []
  return [...thinking, ...server, ...strange, { type: 'text', text: textFrom(choices) }]
}

function attach(teller: Teller, choices: Choices): void {
  const kind = choices.pick(['todo', 'file', 'nested_memory', 'something_new'])
  const hidden = choices.oneIn(6) ? { isScreenOnly: true } : {}
  teller.attachment({ type: kind, path: `/src/${choices.below(3)}.md`, content: textFrom(choices) }, hidden)
}

function remark(teller: Teller, choices: Choices): void {
  const kind = choices.below(5)
  if (kind === 0) teller.user(textFrom(choices), { isMeta: true })
  else if (kind === 4) teller.system(textFrom(choices))
  else if (kind === 1) teller.notice('turn_duration', { content: 'took a while' })
  else if (kind === 2)
    teller.foreign({
      type: 'progress',
      uuid: teller.id('p'),
      parentUuid: teller.tip,
      timestamp: '2026-01-01T00:00:00.000Z',
      sessionId: 'generated',
    })
  else
    teller.assistant(teller.id('msg'), 'API error', {
      isApiErrorMessage: true,
      message: { id: teller.id('err'), role: 'assistant', model: '<synthetic>', content: 'API error' },
    })
}

/** The person goes back to an earlier prompt and says something else. */
function rewind(teller: Teller, choices: Choices): void {
  const prompts = teller.records.filter(isPrompt)
  const target = prompts[choices.below(prompts.length)]
  if (target !== undefined) teller.user(textFrom(choices), { parentUuid: target.parentUuid })
}

/** Full, `from` or `up_to`; the kept side begins at a legal cut. */
export function compactSession(teller: Teller, choices: Choices): void {
  const shown = teller.view.entries.toArray().map((entry) => entry.record)
  const cuts = legalCuts(shown)
  const cut = cuts[choices.below(cuts.length)] ?? 0
  const form = choices.pick(['full', 'from', 'up_to'])
  const kept = form === 'full' ? [] : form === 'from' ? shown.slice(0, cut) : shown.slice(cut)
  const unanswered = form === 'full' ? unansweredOf(shown) : []
  teller.batch(() => {
    const boundary = teller.id('boundary')
    const summary = teller.id('summary')
    const anchor = form === 'from' ? boundary : summary
    const last = choices.oneIn(2) ? teller.id('todo') : null
    teller.notice('compact_boundary', {
      uuid: boundary,
      parentUuid: null,
      logicalParentUuid: teller.tip,
      compactMetadata: {
        trigger: 'manual',
        preTokens: 1,
        ...(kept.length > 0 ? { preservedMessages: { anchorUuid: anchor, uuids: uuidsOf(kept) } } : {}),
        ...(unanswered.length > 0
          ? { unansweredMessages: { anchorUuid: last ?? summary, uuids: uuidsOf(unanswered) } }
          : {}),
      },
    })
    teller.user(`Summary: ${textFrom(choices)}`, {
      uuid: summary,
      parentUuid: boundary,
      isCompactSummary: true,
      isVisibleInTranscriptOnly: true,
    })
    if (last !== null)
      teller.attachment({ type: 'todo', content: textFrom(choices), context: 'post-compact' }, { uuid: last })
  })
}

function uuidsOf(records: readonly KnownRecord[]): readonly string[] {
  return records
    .filter((record) => record.type === 'user' || record.type === 'assistant' || record.type === 'attachment')
    .map((record) => record.uuid)
}

function unansweredOf(shown: readonly KnownRecord[]): readonly KnownRecord[] {
  const last = shown.findLastIndex((record) => record.type === 'assistant')
  return shown.slice(last + 1).filter(isPrompt)
}

export function clearSession(teller: Teller, choices: Choices): void {
  const shown = teller.view.entries.toArray().map((entry) => entry.record)
  const results = shown.flatMap((record) =>
    record.type === 'user' ? blocksOf(record.message.content).filter(isToolResult) : [],
  )
  const calls = shown.flatMap((record) =>
    record.type === 'assistant' ? blocksOf(record.message.content).filter(isToolUse) : [],
  )
  const attachments = shown.filter((record) => record.type === 'attachment')
  const responses = shown.flatMap((record) => (record.type === 'assistant' ? [record.message.id] : []))
  const some = <T>(items: readonly T[]): readonly T[] => items.filter(() => choices.oneIn(2))
  const ids = some(results).map((block) => block.tool_use_id)
  teller.notice('microcompact_boundary', {
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

/** Mostly the newest act, at times one that may not be undone: the fold must stand that too. */
function undo(teller: Teller, choices: Choices): void {
  const { acts } = teller.view
  const act = choices.oneIn(5) ? acts[0] : acts.at(-1)
  if (act !== undefined)
    teller.notice(act.kind === 'compact' ? 'compact_undone' : 'clear_undone', { of: act.uuid })
}

function keepBooks(teller: Teller, choices: Choices): void {
  const target = teller.tip ?? ''
  const kind = choices.below(3)
  if (kind === 0) teller.notice('pin', { pin: { target, pinned: !choices.oneIn(3) } })
  else if (kind === 1)
    teller.notice('epoch', { epoch: { sections: [], tools: [], model: 'model-a', parameters: {} } })
  else teller.notice('delta', { delta: { sections: { environment: textFrom(choices) } } })
}

/** Lines of other conversations, of unknown kinds, and copies. */
function others(teller: Teller, choices: Choices): void {
  const kind = choices.below(4)
  if (kind === 0) teller.user('to the subagent', { isSidechain: true })
  else if (kind === 1) teller.foreign({ type: 'file-history-snapshot' })
  else if (kind === 2) teller.foreign({ type: 'something-new', uuid: teller.id('x'), parentUuid: teller.tip })
  else teller.foreign(teller.records[choices.below(teller.records.length)] as SessionRecord)
}

/** An answer to a call that has one already, or that the conversation has left behind. */
function lateAnswer(teller: Teller, choices: Choices): void {
  const calls = teller.records.flatMap((record) =>
    record.type === 'assistant'
      ? blocksOf((record as KnownRecord & { type: 'assistant' }).message.content).filter(isToolUse)
      : [],
  )
  const call = calls[choices.below(calls.length)]
  if (call === undefined) return
  // Now and then a call id that was used before comes again.
  if (choices.oneIn(6)) teller.assistant(teller.id('msg'), [call])
  teller.result(call.id, textFrom(choices))
}
