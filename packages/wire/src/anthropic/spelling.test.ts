import type { ProviderContextEdit } from '@tidemark/core/policy/provider-spelling'
import { validateRequest } from '@tidemark/core/validate/validate-request'
import { describe, expect, it } from 'vitest'
import { defineMessagesProfile } from '../profiles/provider-profile.ts'
import { anthropicSpelling } from './spelling.ts'

const { settings, limitOutput, requestEdits, changeKept, readEdits, readDiagnosis } = anthropicSpelling

const NATIVE = defineMessagesProfile({
  thinking: { binding: 'prefix', firstInModes: [] },
  contextEdits: { clearThinking: 'clear_thinking_x', clearToolUses: 'clear_tool_uses_x' },
})

describe('settings', () => {
  it('are spelt in the fields of the Messages API', () => {
    const given = { maxOutput: 9, thinking: { mode: 'enabled', budget: 4 }, effort: 'low' } as const
    expect(settings(given, NATIVE)).toEqual({
      max_tokens: 9,
      thinking: { type: 'enabled', budget_tokens: 4 },
      output_config: { effort: 'low' },
    })
  })

  it.each(['output_config', 'output_config.effort'])('leave out the effort where %s is refused', (path) => {
    const profile = defineMessagesProfile({ refusedFields: [path] })
    expect(settings({ maxOutput: 9, effort: 'low' }, profile)).toEqual({ max_tokens: 9 })
  })

  it('are lowered to what the model can answer, with the thinking budget', () => {
    const asked = { max_tokens: 90, thinking: { type: 'enabled', budget_tokens: 80 }, metadata: {} }
    expect(limitOutput(asked, 50)).toEqual({
      max_tokens: 50,
      thinking: { type: 'enabled', budget_tokens: 49 },
      metadata: {},
    })
    expect([limitOutput(asked, 90), limitOutput({}, 90)]).toEqual([asked, {}])
  })
})

const EDITS: readonly ProviderContextEdit[] = [
  { act: 'clear-thinking', keepTurns: 'all' },
  {
    act: 'clear-results',
    triggerTokens: 147_000,
    keep: 4,
    clearAtLeastTokens: 20_000,
    excludedTools: ['TodoWrite'],
    clearedInputs: ['Edit', 'Write'],
  },
]

describe('context edits', () => {
  it('are spelt by the names of the profile, as validation wants it', () => {
    const spelt = requestEdits(EDITS, NATIVE)
    expect(spelt).toEqual({
      context_management: {
        edits: [
          { type: 'clear_thinking_x', keep: 'all' },
          {
            type: 'clear_tool_uses_x',
            trigger: { type: 'input_tokens', value: 147_000 },
            keep: { type: 'tool_uses', value: 4 },
            clear_at_least: { type: 'input_tokens', value: 20_000 },
            exclude_tools: ['TodoWrite'],
            clear_tool_inputs: ['Edit', 'Write'],
          },
        ],
      },
    })
    const request = {
      model: 'm',
      max_tokens: 4_000,
      thinking: { type: 'adaptive' },
      ...spelt,
      messages: [{ role: 'user' as const, content: 'hi' }],
    }
    expect(validateRequest(request, NATIVE)).toEqual([])
    expect(requestEdits(EDITS, defineMessagesProfile())).toEqual({})
  })

  it('keep other numbers, where they have numbers', () => {
    const edits = [
      { type: 'clear_thinking_x', keep: { type: 'thinking_turns', value: 2 } },
      { type: 'clear_tool_uses_x', keep: { type: 'tool_uses', value: 3 } },
      { type: 'another', keep: { type: 'tool_uses', value: 1 } },
      { type: 'clear_thinking_x', keep: 'all' },
      null,
    ]
    const change = (act: ProviderContextEdit['act'], kept: number): number =>
      act === 'clear-results' ? kept + 10 : kept + 20
    expect(changeKept({ context_management: { edits }, other: 1 }, change, NATIVE)).toEqual({
      context_management: {
        edits: [
          { type: 'clear_thinking_x', keep: { type: 'thinking_turns', value: 22 } },
          { type: 'clear_tool_uses_x', keep: { type: 'tool_uses', value: 13 } },
          ...edits.slice(2),
        ],
      },
    })
    expect(changeKept({ max_tokens: 1 }, change, NATIVE)).toEqual({})
  })

  it('are read from a response, whatever else stands there', () => {
    const listed = [
      { type: 'clear_tool_uses_x', cleared_tool_uses: 4, cleared_input_tokens: 40_000 },
      { type: 'clear_thinking_x', cleared_thinking_turns: 2, cleared_input_tokens: 300 },
      { type: 'compact_x', cleared_input_tokens: 9 },
      null,
    ]
    expect(readEdits({ context_management: { applied_edits: listed } }, NATIVE)).toEqual({
      results: 4,
      thinkingTurns: 2,
      tokens: 40_300,
      text: JSON.stringify(listed),
    })
    for (const odd of [null, undefined, 7, { applied_edits: 'x' }, { applied_edits: [] }])
      expect(readEdits({ context_management: odd }, NATIVE)).toBeNull()
  })
})

describe("the provider's explanation of a cache miss", () => {
  it.each([
    ['model_changed', 'model'],
    ['system_changed', 'system'],
    ['tools_changed', 'tools'],
    ['messages_changed', 'messages'],
  ])('%s lies in %s', (type, zone) => {
    const said = { cache_miss_reason: { type, cache_missed_input_tokens: 12 } }
    expect(readDiagnosis({ diagnostics: said })).toEqual({ zone, missedTokens: 12, said: type })
  })

  it('is vague where the provider may just not have been able to look', () => {
    const said = { cache_miss_reason: { type: 'unavailable' } }
    expect(readDiagnosis({ diagnostics: said })).toEqual({
      zone: 'other',
      missedTokens: null,
      said: 'unavailable',
      isVague: true,
    })
  })

  it('has no figure where the provider gives none', () => {
    expect(
      readDiagnosis({ diagnostics: { cache_miss_reason: { type: 'unavailable' } } })?.missedTokens,
    ).toBeNull()
  })

  it.each([
    ['not asked', null],
    ['asked and not answered', undefined],
    ['still looking', { cache_miss_reason: null }],
    ['no longer there', { cache_miss_reason: { type: 'previous_message_not_found' } }],
    ['of an unknown kind', { cache_miss_reason: { type: 'moon_phase' } }],
    ['no reason at all', { cache_miss_reason: 'no' }],
  ])('%s is no explanation', (_, diagnostics) => {
    expect(readDiagnosis({ diagnostics })).toBeNull()
  })
})
