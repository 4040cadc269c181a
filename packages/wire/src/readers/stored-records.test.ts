import type { SessionRecord } from '@tidemark/core/log/record'
import { describe, expect, it } from 'vitest'
import { fromStoredRecord, toStoredRecord } from './stored-records.ts'

const LINKS = { uuid: 'u', parentUuid: null, sessionId: 's', timestamp: '2026-03-09T09:00:00.000Z' }
const COUNTS = { input: 3, read: 0, writes: { short: 0, long: 0 }, output: 5 }

function response(fields: object, more: object = {}): SessionRecord {
  const message = { id: 'm', role: 'assistant', model: 'x', content: [], ...fields }
  return { ...LINKS, type: 'assistant', message, ...more } as SessionRecord
}

describe('a response', () => {
  it.each([
    ['end_turn', 'done'],
    ['stop_sequence', 'sequence'],
    ['tool_use', 'tools'],
    ['max_tokens', 'cut'],
    ['pause_turn', 'paused'],
    ['model_context_window_exceeded', 'window'],
    ['refusal', 'refused'],
    ['compaction', 'compacted'],
    ['moon_phase', 'other'],
  ])('that ended with %s is read as %s, and stored as it came', (stop_reason, stop) => {
    const stored = response({ stop_reason, usage: { input_tokens: 3, output_tokens: 5 } })
    const read = fromStoredRecord(stored)
    expect(read).toEqual({ ...stored, usage: COUNTS, stop })
    expect(toStoredRecord(read)).toEqual(stored)
  })

  it('that is still under way has no stop', () => {
    expect(fromStoredRecord(response({ stop_reason: null }))).not.toHaveProperty('stop')
  })

  it('of another provider is stored with what its own fields would not tell', () => {
    const given = response(
      { usage: { prompt_tokens: 3, completion_tokens: 5 } },
      { usage: COUNTS, stop: 'cut' },
    )
    expect(toStoredRecord(given)).toEqual(given)
    expect(fromStoredRecord(toStoredRecord(given))).toEqual(given)
  })
})

describe('a call whose response broke off', () => {
  const call = (usage: object, tokens?: object) =>
    ({
      ...LINKS,
      type: 'system',
      modelCall: { id: 'm', source: 'sdk', model: 'x', usage, tokens },
    }) as SessionRecord

  it('is stored with its estimated output in the words of the Messages API', () => {
    const tokens = { ...COUNTS, output: 40, assumed: ['output'] }
    const stored = toStoredRecord(call({ input_tokens: 3, output_tokens: 1 }, tokens))
    expect(stored).toMatchObject({
      modelCall: { usage: { input_tokens: 3, output_tokens: 40, output_tokens_estimated: true } },
    })
    expect(stored).not.toHaveProperty('modelCall.tokens')
    expect(fromStoredRecord(stored)).toMatchObject({ modelCall: { tokens } })
  })

  it('of another provider is stored with its tokens', () => {
    const given = call({ prompt_tokens: 3 }, { ...COUNTS, output: 40, assumed: ['output'] })
    expect(toStoredRecord(given)).toEqual(given)
  })
})
