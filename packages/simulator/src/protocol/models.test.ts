import { describe, expect, it } from 'vitest'
import { canReadThinking, createModelTable } from './models.ts'

describe('models', () => {
  const table = createModelTable()
  it.each([
    {
      id: 'claude-fable-5-1',
      window: 1_000_000,
      maxOutput: 128_000,
      cacheMinimum: 512,
      thinking: ['adaptive'],
      binding: 'prefix',
    },
    {
      id: 'claude-mythos-5-1',
      window: 1_000_000,
      maxOutput: 128_000,
      cacheMinimum: 512,
      thinking: ['adaptive'],
      binding: 'model',
    },
    {
      id: 'claude-opus-5-5',
      window: 1_000_000,
      maxOutput: 128_000,
      cacheMinimum: 512,
      thinking: ['adaptive'],
      binding: 'prefix',
    },
    {
      id: 'claude-opus-5',
      window: 1_000_000,
      maxOutput: 128_000,
      cacheMinimum: 512,
      thinking: ['adaptive', 'disabled'],
      binding: 'none',
    },
    {
      id: 'claude-opus-4-8',
      window: 1_000_000,
      maxOutput: 128_000,
      cacheMinimum: 1_024,
      thinking: ['adaptive', 'disabled'],
      binding: 'none',
    },
    {
      id: 'claude-opus-4-6',
      window: 1_000_000,
      maxOutput: 128_000,
      cacheMinimum: 4_096,
      thinking: ['adaptive', 'enabled', 'disabled'],
      binding: 'none',
    },
    {
      id: 'claude-sonnet-5',
      window: 1_000_000,
      maxOutput: 128_000,
      cacheMinimum: 1_024,
      thinking: ['adaptive', 'disabled'],
      binding: 'none',
    },
    {
      id: 'claude-haiku-4-5',
      window: 200_000,
      maxOutput: 64_000,
      cacheMinimum: 4_096,
      thinking: ['enabled', 'disabled'],
      binding: 'none',
    },
  ])('$id', (expected) => {
    expect(table.find(expected.id)).toMatchObject(expected)
  })

  it('are found by their dated names too', () => {
    expect(table.find('claude-haiku-4-5-20251001')?.id).toBe('claude-haiku-4-5')
    expect(table.find('claude-haiku-4-5-2025')).toBeUndefined()
    expect(table.find('gpt-5')).toBeUndefined()
  })

  it('can be replaced, added and limited to one window', () => {
    const model = table.find('claude-opus-5')
    if (model === undefined) throw new Error('no model')
    const own = createModelTable(
      [
        { ...model, maxOutput: 7 },
        { ...model, id: 'my-model', aliases: ['mine'] },
      ],
      5_000,
    )
    expect([
      own.find('claude-opus-5')?.maxOutput,
      own.find('mine')?.id,
      own.find('claude-haiku-4-5')?.window,
    ]).toEqual([7, 'my-model', 5_000])
    expect(own.all).toHaveLength(table.all.length + 1)
  })

  it('read each other’s thinking as the provider says', () => {
    const reads = (reader: string, author: string): boolean => {
      const [one, other] = [table.find(reader), table.find(author)]
      return one !== undefined && other !== undefined && canReadThinking(one, other)
    }
    expect(reads('claude-fable-5-1', 'claude-opus-5')).toBe(true)
    expect(reads('claude-opus-5', 'claude-fable-5-1')).toBe(false)
    expect(reads('claude-opus-5-5', 'claude-opus-5-5')).toBe(true)
  })
})
