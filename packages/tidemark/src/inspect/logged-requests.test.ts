import type { JsonObject } from '@tidemark/core/log/json'
import { lookUpModel, modelCatalogue } from '@tidemark/wire/catalogue/catalogue'
import { createProviderProfile } from '@tidemark/wire/profiles/provider-profile'
import { readAnthropicUsage } from '@tidemark/wire/providers/message-usage'
import { describe, expect, it } from 'vitest'
import type { LoggedCall } from './logged-calls.ts'
import { readCacheTtl } from './logged-requests.ts'

const HOUR = { ttl: '1h', seconds: 3600 }

function call(model: string, given: JsonObject): LoggedCall {
  const usage = readAnthropicUsage({ input_tokens: 10, output_tokens: 10, ...given })
  return {
    key: 'k',
    model,
    at: '2026-03-09',
    agent: null,
    source: null,
    isCopy: false,
    isFinal: false,
    usage,
    blocks: [],
  }
}

function split(fiveMinutes: number, hour: number): JsonObject {
  const cache_creation = { ephemeral_5m_input_tokens: fiveMinutes, ephemeral_1h_input_tokens: hour }
  return { cache_creation_input_tokens: fiveMinutes + hour, cache_creation }
}

function cacheOf(model: string) {
  const found = lookUpModel(modelCatalogue, model)
  return found.found ? createProviderProfile(found.model).cache : null
}

describe('lifetimeOf', () => {
  const unsplit = { cache_creation_input_tokens: 500 }
  it.each([
    { name: 'written for five minutes', model: 'claude-opus-4-5', usage: split(500, 0), ttl: '5m' },
    { name: 'written for an hour', model: 'claude-opus-4-5', usage: split(500, 1), ttl: '1h' },
    { name: 'written for a short time', model: 'gpt-6-sol', usage: split(500, 0), ttl: '30m' },
    { name: 'written for a long time', model: 'gpt-6-sol', usage: split(0, 500), ttl: '12h' },
    { name: 'not split', model: 'claude-opus-4-5', usage: unsplit, ttl: '5m' },
    {
      name: 'not split, of a provider with its own lifetimes',
      model: 'gpt-6-sol',
      usage: unsplit,
      ttl: '30m',
    },
    { name: 'nothing reported', model: 'gpt-5.4', usage: {}, ttl: 'some 10 minutes' },
    { name: 'nothing reported for a model with markers', model: 'gpt-6-sol', usage: {}, ttl: '30m' },
    { name: 'an unknown model that reports writes', model: 'no-such-model', usage: unsplit, ttl: '5m' },
    {
      name: 'an unknown model that reports nothing',
      model: 'no-such-model',
      usage: {},
      ttl: 'some 10 minutes',
    },
  ])('$name: $ttl', ({ model, usage, ttl }) => {
    expect(readCacheTtl(call(model, usage), cacheOf(model), null).ttl).toBe(ttl)
  })

  it('stays as before when a call does not report it', () => {
    const model = 'claude-opus-4-5'
    expect(readCacheTtl(call(model, unsplit), cacheOf(model), HOUR)).toEqual(HOUR)
    expect(readCacheTtl(call(model, split(0, 0)), cacheOf(model), HOUR)).toEqual(HOUR)
  })
})
