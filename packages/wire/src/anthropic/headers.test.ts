import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { fromRequestHeaders, type RequestHeaderFields, toRequestHeaders } from './headers.ts'

describe('headers', () => {
  it('are written for both ways of naming oneself', () => {
    expect(
      toRequestHeaders({ version: '2023-06-01', betas: [], credentials: { style: 'key', secret: 'k' } }),
    ).toEqual({
      'content-type': 'application/json',
      'anthropic-version': '2023-06-01',
      'x-api-key': 'k',
    })
    expect(
      toRequestHeaders({
        version: '2026-10-21',
        betas: ['a', 'b', 'a'],
        credentials: { style: 'bearer', secret: 'k' },
      }),
    ).toEqual({
      'content-type': 'application/json',
      'anthropic-version': '2026-10-21',
      'anthropic-beta': 'a,b',
      authorization: 'Bearer k',
    })
  })

  it.each<[string, Record<string, string>, RequestHeaderFields]>([
    ['nothing', {}, { betas: [] }],
    [
      'any case and spaces',
      { 'Anthropic-Beta': ' a , b,,a', Authorization: 'bearer  k' },
      { betas: ['a', 'b'], credentials: { style: 'bearer', secret: 'k' } },
    ],
    [
      'both ways: the key counts',
      { 'x-api-key': 'k', authorization: 'Bearer b' },
      { betas: [], credentials: { style: 'key', secret: 'k' } },
    ],
    ['another scheme', { authorization: 'Basic x' }, { betas: [] }],
  ])('are read: %s', (_, headers, head) => {
    expect(fromRequestHeaders(headers)).toEqual(head)
  })

  it('come back as they went', () => {
    const name = fc.stringMatching(/^[a-z0-9-]+$/)
    const head = fc.record(
      {
        version: name,
        betas: fc.uniqueArray(name),
        credentials: fc.record({ style: fc.constantFrom('key' as const, 'bearer' as const), secret: name }),
      },
      { requiredKeys: ['betas'] },
    )
    fc.assert(
      fc.property(head, (each) => {
        expect(fromRequestHeaders(toRequestHeaders(each))).toEqual(each)
      }),
    )
  })
})
