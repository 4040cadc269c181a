import { describe, expect, it } from 'vitest'
import { readMissReport, toCacheFigures } from './cache-break.ts'

describe('toCacheFigures', () => {
  it('tells what was read and what is cached', () => {
    const usage = {
      input_tokens: 5,
      output_tokens: 7,
      cache_read_input_tokens: 1_000,
      cache_creation_input_tokens: 300,
      cache_creation: { ephemeral_5m_input_tokens: 100, ephemeral_1h_input_tokens: 200 },
    }
    expect(toCacheFigures(usage)).toEqual({
      first: { input: 5, cacheRead: 1_000, write5m: 100, write1h: 200, output: 7 },
      lastRead: 1_000,
      cached: 1_300,
      deleted: null,
      isCompacted: false,
    })
  })

  it('takes the first run for what was read and the last for what is cached: totals add all runs up', () => {
    const run = (read: number, written: number) => ({
      type: 'message',
      input_tokens: 1,
      output_tokens: 1,
      cache_read_input_tokens: read,
      cache_creation_input_tokens: written,
    })
    const usage = {
      input_tokens: 2,
      output_tokens: 2,
      cache_read_input_tokens: 2_500,
      cache_creation_input_tokens: 700,
      iterations: [run(1_000, 500), { ...run(9, 9), type: 'advisor_message' }, run(1_500, 200)],
    }
    const { first, cached } = toCacheFigures(usage)
    expect([first.cacheRead, first.write5m, cached]).toEqual([1_000, 500, 1_700])
  })

  it.each([
    { type: 'compaction', is: true },
    { type: 'message', is: false },
  ])('a run of type $type: summarised by the provider is $is', ({ type, is }) => {
    const usage = { input_tokens: 0, output_tokens: 0, iterations: [{ type, input_tokens: 1 }] }
    expect(toCacheFigures(usage).isCompacted).toBe(is)
  })

  it('passes on what was deleted from the cached prefix', () => {
    expect(
      toCacheFigures({ input_tokens: 0, output_tokens: 0, cache_deleted_input_tokens: 40 }).deleted,
    ).toBe(40)
  })
})

describe('providerWord', () => {
  it.each([
    ['model_changed', 'model'],
    ['system_changed', 'system'],
    ['tools_changed', 'tools'],
    ['messages_changed', 'messages'],
  ])('%s lies in %s', (type, zone) => {
    const said = { cache_miss_reason: { type, cache_missed_input_tokens: 12 } }
    expect(readMissReport(said)).toEqual({ zone, missedTokens: 12, said: type })
  })

  it('is vague where the provider may just not have been able to look', () => {
    const said = { cache_miss_reason: { type: 'unavailable' } }
    expect(readMissReport(said)).toEqual({
      zone: 'other',
      missedTokens: null,
      said: 'unavailable',
      isVague: true,
    })
  })

  it('has no figure where the provider gives none', () => {
    expect(readMissReport({ cache_miss_reason: { type: 'unavailable' } })?.missedTokens).toBeNull()
  })

  it.each([
    ['not asked', null],
    ['asked and not answered', undefined],
    ['still looking', { cache_miss_reason: null }],
    ['no longer there', { cache_miss_reason: { type: 'previous_message_not_found' } }],
    ['of a kind nobody knows', { cache_miss_reason: { type: 'moon_phase' } }],
    ['no reason at all', { cache_miss_reason: 'no' }],
  ])('%s is no word', (_, diagnostics) => {
    expect(readMissReport(diagnostics)).toBeNull()
  })
})
