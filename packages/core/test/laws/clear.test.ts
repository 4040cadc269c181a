import { COLD_CACHE, countPropertyRuns, SessionBuilder } from '@tidemark/core/testing'
import { defineMessagesProfile } from '@tidemark/wire/profiles/provider-profile'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type ClearProposal, NO_RETRIEVAL } from '../../src/clearing/clear-candidates.ts'
import { type ClearingDecisionInput, decideClearing } from '../../src/clearing/propose-clearing.ts'
import {
  createEmptyToolResultIndex,
  createToolResultRules,
  type ToolResultIndex,
  type ToolResultRules,
} from '../../src/clearing/tool-result-index.ts'
import { updateToolResultIndex } from '../../src/clearing/update-tool-result-index.ts'
import {
  type ContextView,
  emptyContextView,
  findUndoTarget,
  updateContextView,
} from '../../src/context/context-view.ts'
import { flattenContext, toApiMessages } from '../../src/context/flatten-context.ts'
import { MISSING_RESULT_TEXT } from '../../src/context/message-repair.ts'
import { isThinkingBlock, isToolResult, isToolUse, toBlocks } from '../../src/log/block.ts'
import { appendRecord, emptySessionLog } from '../../src/log/session-log.ts'
import { createPolicy } from '../../src/policy/create-policy.ts'
import type { ProviderProfile } from '../../src/policy/provider-profile.ts'
import { computeScaledLimits } from '../../src/policy/scale-policy.ts'
import { validateRequest } from '../../src/validate/validate-request.ts'
import { BINDING, ESTIMATOR, PLAIN, RATES } from '../clear/situation.ts'
import { generatedSessions } from './generated-sessions.ts'

/** Small figures, so that generated sessions, whose results are short but for pictures, come to be cleared. */
const KEEP = 2
const MINIMUM = 1_500
const POLICY = createPolicy({
  clear: {
    tools: ['Read', 'Edit'],
    keptFiles: 0,
    budget: { keep: KEEP, targetTokens: 2_500, minimumFreedTokens: MINIMUM },
    idle: { keep: KEEP, minimumFreedTokens: MINIMUM },
    cached: { fireAt: 3, keep: KEEP },
  },
})
const RULES: ToolResultRules = createToolResultRules({
  estimator: ESTIMATOR,
  policy: POLICY.clear,
  largeInput: POLICY.clear.largeInputTokens,
})
const SCALED = computeScaledLimits(POLICY, { window: 200_000, maxOutput: 64_000 })

function questionOf(
  builder: SessionBuilder,
  overrides: Partial<ClearingDecisionInput> = {},
): ClearingDecisionInput {
  return {
    register: updateToolResultIndex(createEmptyToolResultIndex(RULES), builder.view),
    policy: POLICY,
    scaled: SCALED,
    profile: PLAIN,
    pins: builder.pins,
    cache: COLD_CACHE,
    prices: { rates: RATES, write: 'writeShort' },
    retrieval: NO_RETRIEVAL,
    context: { expected: 150_000, high: 150_000 },
    scale: 1,
    idleMs: 0,
    thinkingMode: null,
    tools: [],
    thinks: false,
    ...overrides,
  }
}

function clear(builder: SessionBuilder, { metadata }: ClearProposal): void {
  builder.notice('microcompact_boundary', { microcompactMetadata: metadata })
}

const request = (view: ContextView): string => JSON.stringify(toApiMessages(flattenContext(view)))

/** A session and what would be cleared in it. */
function clearings(overrides: Partial<ClearingDecisionInput> = {}) {
  return generatedSessions()
    .map(({ builder }) => ({ builder, proposal: decideClearing(questionOf(builder, overrides)).proposal }))
    .filter((case_): case_ is { builder: SessionBuilder; proposal: ClearProposal } => case_.proposal !== null)
}

/** A memory file, attached again after the model thought about the first copy, in front of results to be cleared. */
function staleMemoryInFront(): { builder: SessionBuilder; proposal: ClearProposal } {
  const builder = new SessionBuilder('stale-memory')
  const memory = { type: 'nested_memory', path: '/src/notes.md', content: 'login' }
  builder.user('login')
  builder.attachment(memory)
  for (const round of [1, 2, 3]) {
    const thinking = { type: 'thinking', thinking: 'login', signature: `sig-${round}` }
    const call = {
      type: 'tool_use',
      id: `call-${round}`,
      name: 'Read',
      input: { file_path: `/src/${round}.ts` },
    }
    builder.assistant(`msg-${round}`, [thinking, call])
    builder.result(call.id, 'abc '.repeat(4_000))
  }
  builder.attachment(memory)
  builder.assistant('msg-4', [{ type: 'text', text: 'done' }])
  const { proposal } = decideClearing(questionOf(builder, { profile: BINDING }))
  if (proposal === null) throw new Error('nothing would be cleared')
  return { builder, proposal }
}

/** Two responses in a row call tools, with a third between them; their results come in the other order. */
function resultsOutOfOrder(): { builder: SessionBuilder; proposal: ClearProposal } {
  const builder = new SessionBuilder('out-of-order')
  const call = (id: string) => ({
    type: 'tool_use',
    id,
    name: 'Read',
    input: { file_path: `/src/${id}.ts` },
  })
  builder.user('login')
  builder.assistant('msg-1', [call('first')])
  builder.assistant('msg-2', [{ type: 'text', text: 'login' }])
  builder.assistant('msg-3', [call('second')])
  builder.result('second', 'abc '.repeat(4_000))
  builder.result('first', 'abc '.repeat(4_000))
  builder.assistant('msg-4', [call('third')])
  builder.result('third', 'login')
  const { proposal } = decideClearing(questionOf(builder))
  if (proposal === null) throw new Error('nothing would be cleared')
  return { builder, proposal }
}

interface Shown {
  readonly id: string
  readonly tool: string
  readonly uuid: string
  readonly place: number
  readonly isCleared: boolean
}

/** Written apart from the register: what a request shows of each answered call. */
function shownResults(view: ContextView): readonly Shown[] {
  const tools = new Map<string, string>()
  const seen = new Set<string>()
  const shown: Shown[] = []
  const sent = new Set(
    toApiMessages(flattenContext(view))
      .flatMap(({ content }) => toBlocks(content))
      .filter(isToolResult)
      .filter(({ content }) => content !== MISSING_RESULT_TEXT)
      .map(({ tool_use_id }) => tool_use_id),
  )
  for (const [place, { record, cleared }] of view.entries.toArray().entries()) {
    if (record.type !== 'user' && record.type !== 'assistant') continue
    for (const block of toBlocks(record.message.content)) {
      if (isToolUse(block)) tools.set(block.id, String(block.name))
      if (!isToolResult(block) || seen.has(block.tool_use_id)) continue
      const id = block.tool_use_id
      const isCleared = cleared?.results.some((result) => result.id === id) === true
      if (!sent.has(id)) continue
      seen.add(id)
      shown.push({ id, tool: tools.get(id) ?? '', uuid: record.uuid, place, isCleared })
    }
  }
  return shown
}

describe('laws of clearing', () => {
  it('law 7: clearing then undo gives exactly the requests from before', () => {
    fc.assert(
      fc.property(clearings(), ({ builder, proposal }) => {
        const before = request(builder.view)
        clear(builder, proposal)
        expect(request(builder.view)).not.toBe(before)
        const choice = findUndoTarget(builder.view)
        if (!choice.ok) throw new Error(choice.message)
        builder.notice(choice.subtype, { of: choice.act.uuid })
        expect(request(builder.view)).toBe(before)
      }),
      { numRuns: countPropertyRuns(60, 12) },
    )
  })

  it('clears only what is clearable, seen, unpinned and not among the newest, each result once', () => {
    fc.assert(
      fc.property(clearings(), ({ builder, proposal }) => {
        const { compactedToolIds: ids, clearedInputs = [] } = proposal.metadata
        const results = shownResults(builder.view).filter(({ tool }) => tool === 'Read' || tool === 'Edit')
        const newest = results.filter(({ isCleared }) => !isCleared).slice(-KEEP)
        const answered = builder.view.entries
          .toArray()
          .findLastIndex(({ record }) => record.type === 'assistant' && record.isApiErrorMessage !== true)
        for (const id of [...ids, ...clearedInputs.map(({ toolUseId }) => toolUseId)]) {
          const result = results.find((each) => each.id === id)
          expect(result, id).toMatchObject({ isCleared: false })
          expect(result?.place).toBeLessThan(answered)
          expect(builder.pins).not.toContain(result?.uuid)
          expect(newest.map((each) => each.id)).not.toContain(id)
        }
        expect(new Set(ids).size).toBe(ids.length)
      }),
      { numRuns: countPropertyRuns(60, 12), examples: [[resultsOutOfOrder()]] },
    )
  })

  it('is idempotent: what was cleared is not proposed again', () => {
    fc.assert(
      fc.property(clearings(), fc.boolean(), ({ builder, proposal }, isIdle) => {
        clear(builder, proposal)
        const idle = isIdle ? { idleMs: 61 * 60_000 } : { context: { expected: 0, high: 170_000 } }
        const again = decideClearing(questionOf(builder, idle)).proposal
        const both = again?.metadata.compactedToolIds.filter((id) =>
          proposal.metadata.compactedToolIds.includes(id),
        )
        expect(both ?? []).toEqual([])
      }),
      { numRuns: countPropertyRuns(60, 12) },
    )
  })

  it('frees what it says, and never less than a rewrite must be worth', () => {
    fc.assert(
      fc.property(clearings(), ({ builder, proposal }) => {
        const tokens = (view: ContextView): number =>
          ESTIMATOR.payload({ model: '', messages: toApiMessages(flattenContext(view)) })
        const before = tokens(builder.view)
        expect(proposal.freedTokens).toBeGreaterThanOrEqual(MINIMUM)
        clear(builder, proposal)
        const { clearedInputs = [], clearedAttachmentUUIDs } = proposal.metadata
        // Inputs and memory files are weighed in a form a little other than that in which they are sent.
        if (clearedInputs.length + clearedAttachmentUUIDs.length > 0) return
        expect(before - tokens(builder.view)).toBe(proposal.freedTokens)
      }),
      { numRuns: countPropertyRuns(60, 12) },
    )
  })

  it('leaves requests valid that were', () => {
    const profile: ProviderProfile = defineMessagesProfile({
      roles: { consecutive: 'merged', prefill: 'allowed', system: 'placed', first: 'any' },
      thinking: { closing: 'allowed', signed: false, firstInModes: [], binding: 'prefix' },
    })
    fc.assert(
      fc.property(clearings({ profile }), ({ builder, proposal }) => {
        const payload = (view: ContextView) => ({
          model: 'm',
          max_tokens: 5,
          tools: [{ name: 'Read' }],
          messages: toApiMessages(flattenContext(view)),
        })
        const codes = (view: ContextView) => validateRequest(payload(view), profile).map(({ code }) => code)
        const before = new Set(codes(builder.view))
        clear(builder, proposal)
        expect(codes(builder.view).filter((code) => !before.has(code))).toEqual([])
      }),
      { numRuns: countPropertyRuns(60, 12) },
    )
  })

  it('law 12: on binding models no thinking stays behind what was cleared, and all before it stays as it was', () => {
    fc.assert(
      fc.property(clearings({ profile: BINDING }), ({ builder, proposal }) => {
        const before = toApiMessages(flattenContext(builder.view))
        clear(builder, proposal)
        const after = toApiMessages(flattenContext(builder.view))
        const changed = after.findIndex(
          (message, index) =>
            JSON.stringify(withoutThinking(message)) !== JSON.stringify(withoutThinking(before[index])),
        )
        expect(changed).not.toBe(-1)
        for (const [index, message] of after.entries()) {
          if (index > changed) expect(toBlocks(message.content).filter(isThinkingBlock)).toEqual([])
          else if (index < changed - 1) expect(message).toEqual(before[index])
        }
      }),
      { numRuns: countPropertyRuns(60, 12), examples: [[staleMemoryInFront()]] },
    )
  })

  it('the register kept up entry by entry is the one made from scratch, after every record', () => {
    fc.assert(
      fc.property(generatedSessions(), ({ records }) => {
        let [session, view] = [emptySessionLog(), emptyContextView()]
        let register = createEmptyToolResultIndex(RULES)
        for (const record of records) {
          session = appendRecord(session, record)
          view = updateContextView(view, session)
          register = updateToolResultIndex(register, view)
        }
        expect(told(register)).toEqual(told(updateToolResultIndex(createEmptyToolResultIndex(RULES), view)))
      }),
      { numRuns: countPropertyRuns(80, 12) },
    )
  })

  it('with clearing switched off nothing is proposed', () => {
    const policy = createPolicy({ switches: { microcompactEnabled: false } })
    fc.assert(
      fc.property(generatedSessions(), ({ builder }) => {
        const { proposal, native } = decideClearing(questionOf(builder, { policy, idleMs: 90 * 60_000 }))
        expect([proposal, native]).toEqual([null, null])
      }),
      { numRuns: countPropertyRuns(30, 8) },
    )
  })
})

function withoutThinking(message: { readonly content: unknown } | undefined): unknown {
  if (message === undefined || !Array.isArray(message.content)) return message
  return { ...message, content: message.content.filter((block) => !isThinkingBlock(block)) }
}

/** Everything in a register that is not private to a class. */
function told(register: ToolResultIndex): unknown {
  const {
    calls,
    results,
    responses,
    memories,
    thinkingResponses,
    supersession,
    removedByProvider,
    newestReadByPath,
    referringCalls,
  } = register
  const {
    clearable,
    clearableSinceLast,
    deletions,
    native,
    clearedThinkingCount,
    openResponses,
    firstOpenCall,
    lastResponsePlace,
    lastPromptPlace,
  } = register
  const sorted = (entries: Iterable<readonly [string, unknown]>) =>
    [...entries].toSorted(([a], [b]) => (a < b ? -1 : 1))
  return [
    [calls, results, responses, memories, thinkingResponses].map((list) => [...(list as Iterable<unknown>)]),
    [supersession.superseded, removedByProvider, newestReadByPath, referringCalls].map((map) => sorted(map)),
    {
      clearable,
      clearableSinceLast,
      deletions,
      native,
      clearedThinkingCount,
      openResponses,
      firstOpenCall,
      lastResponsePlace,
      lastPromptPlace,
    },
  ]
}
