import { describe, expect, it } from 'vitest'
import { toRequestHeaders } from './headers.ts'

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
})
