import { describe, expect, it } from 'vitest'
import { providerWord } from './provider-word.ts'

describe('providerWord', () => {
  it.each([
    ['model_changed', 'model'],
    ['system_changed', 'system'],
    ['tools_changed', 'tools'],
    ['messages_changed', 'messages'],
  ])('%s lies in %s', (type, zone) => {
    const said = { cache_miss_reason: { type, cache_missed_input_tokens: 12 } }
    expect(providerWord(said)).toEqual({ zone, missedTokens: 12, said: type })
  })

  it('is vague where the provider may just not have been able to look', () => {
    const said = { cache_miss_reason: { type: 'unavailable' } }
    expect(providerWord(said)).toEqual({
      zone: 'other',
      missedTokens: null,
      said: 'unavailable',
      isVague: true,
    })
  })

  it('has no figure where the provider gives none', () => {
    expect(providerWord({ cache_miss_reason: { type: 'unavailable' } })?.missedTokens).toBeNull()
  })

  it.each([
    ['not asked', null],
    ['asked and not answered', undefined],
    ['still looking', { cache_miss_reason: null }],
    ['no longer there', { cache_miss_reason: { type: 'previous_message_not_found' } }],
    ['of a kind nobody knows', { cache_miss_reason: { type: 'moon_phase' } }],
    ['no reason at all', { cache_miss_reason: 'no' }],
  ])('%s is no word', (_, diagnostics) => {
    expect(providerWord(diagnostics)).toBeNull()
  })
})
