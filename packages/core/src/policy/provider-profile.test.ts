import { defineMessagesProfile, strictProfile } from '@tidemark/wire/profiles/provider-profile'
import { describe, expect, it } from 'vitest'
import { TidemarkError } from '../errors.ts'
import type { ProviderProfileOverrides } from './provider-profile.ts'

function problemsOf(overrides: unknown): unknown {
  try {
    defineMessagesProfile(overrides as ProviderProfileOverrides)
  } catch (error) {
    if (error instanceof TidemarkError && error.code === 'bad-profile') {
      return (error.details.problems as { path: string }[]).map(({ path }) => path)
    }
    throw error
  }
  return null
}

describe('createProfile', () => {
  it('applies overrides to the strict profile and keeps the rest', () => {
    const profile = defineMessagesProfile({
      name: 'mine',
      window: 200_000,
      roles: { prefill: 'allowed' },
      betas: [],
    })
    expect(profile).toEqual({
      ...strictProfile,
      name: 'mine',
      window: 200_000,
      roles: { ...strictProfile.roles, prefill: 'allowed' },
    })
  })

  it('is the same after a JSON round trip, and frozen', () => {
    const { spelling: _, ...rules } = strictProfile
    expect(defineMessagesProfile(JSON.parse(JSON.stringify(rules)))).toEqual(strictProfile)
    expect(Object.isFrozen(strictProfile.roles)).toBe(true)
  })

  it.each<[string, unknown, readonly string[]]>([
    ['a misspelt field', { roles: { prefil: 'allowed' } }, ['roles.prefil']],
    ['a word that is none of the choices', { roles: { first: 'assistant' } }, ['roles.first']],
    ['a window of nothing', { window: 0 }, ['window']],
    ['half a token', { maxOutput: 0.5 }, ['maxOutput']],
    ['a pattern that does not compile', { tools: { namePattern: '(' } }, ['tools.namePattern']],
    ['an empty pattern', { tools: { idPattern: '' } }, ['tools.idPattern']],
    ['a mode nobody knows', { thinking: { modes: ['enabled', 'maybe'] } }, ['thinking.modes']],
    ['a beta rule without betas', { betas: [{ where: 'block', name: 'x' }] }, ['betas']],
    [
      'a beta rule with a field too many',
      { betas: [{ where: 'edit', name: 'x', betas: [], y: 1 }] },
      ['betas'],
    ],
    ['a refusal for an unknown role', { refusedBlocks: [{ role: 'tool', type: 'text' }] }, ['refusedBlocks']],
    ['a lifetime of no time', { cache: { ttls: [{ name: '5m', seconds: 0 }] } }, ['cache.ttls']],
    ['a default lifetime that is not offered', { cache: { defaultTtl: '1d' } }, ['cache.defaultTtl']],
    [
      'lifetimes out of order',
      {
        cache: {
          ttls: [
            { name: '5m', seconds: 300 },
            { name: '1h', seconds: 3600 },
          ],
        },
      },
      ['cache.ttls'],
    ],
    [
      'two lifetimes of one name',
      {
        cache: {
          ttls: [
            { name: '5m', seconds: 3600 },
            { name: '5m', seconds: 300 },
          ],
        },
      },
      ['cache.ttls'],
    ],
    [
      'an absent mode that is not accepted',
      { thinking: { whenAbsent: 'between_tools' } },
      ['thinking.whenAbsent'],
    ],
    ['a looser limit for many images', { sizes: { manyImagePixels: 9000 } }, ['sizes.manyImagePixels']],
    ['several at once', { window: -1, cache: { maxMarkers: '4' } }, ['window', 'cache.maxMarkers']],
  ])('refuses %s', (_, overrides, paths) => {
    expect(problemsOf(overrides)).toEqual(paths)
  })

  it('accepts a refusal of one field of a block, and its own lists', () => {
    const refusedBlocks = [{ role: 'user', type: 'text', field: 'citations' }] as const
    const betas = [{ where: 'message-field', name: 'clear_at', betas: ['b-1', 'b-2'] }] as const
    expect(defineMessagesProfile({ refusedBlocks, betas })).toEqual({
      ...strictProfile,
      refusedBlocks,
      betas,
    })
  })
})
