import { describe, expect, it } from 'vitest'
import { matchesPattern, parentKey, watchKey } from './sources.ts'

describe('matchesPattern', () => {
  it.each([
    ['claude-haiku-4-5', '*haiku*', true],
    ['Claude-HAIKU-4', '*haiku*', true],
    ['claude-sonnet-5', '*haiku*', false],
    ['gpt-mini', 'gpt-*', true],
    ['my-gpt-mini', 'gpt-*', false],
    ['a-mini', '*-mini', true],
    ['a-mini-b', '*-mini', false],
    ['exact', 'exact', true],
    ['exactly', 'exact', false],
    ['aa', 'a*a*a', false],
    ['a.c', 'a?c', false],
    ['abcbd', 'a*b*d', true],
    ['', '*', true],
  ])('%s against %s: %s', (name, pattern, matches) => {
    expect(matchesPattern(name, pattern)).toBe(matches)
  })
})

describe('watchKey', () => {
  it('is one for the main thread, whatever it calls itself', () => {
    const names = ['repl_main_thread', 'repl_main_thread:style', 'sdk', '', 'agent:a', 'speculation']
    const main = 'repl_main_thread'
    expect(names.map(watchKey)).toEqual([main, main, main, main, 'agent:a', 'speculation'])
  })
})

describe('parentKey', () => {
  it('is the source whose cache is read', () => {
    expect([
      parentKey('compact', undefined),
      parentKey('compact', 'agent:a'),
      parentKey('session_memory', 'sdk'),
      parentKey('agent:a', undefined),
    ]).toEqual(['repl_main_thread', 'agent:a', 'repl_main_thread', null])
  })
})
