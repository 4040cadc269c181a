import { basename, dirname } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  checkSessionId,
  type HomeEnvironment,
  isSessionId,
  resolveHome,
  sessionPaths,
  tidemarkHome,
} from './home-paths.ts'

describe('tidemarkHome', () => {
  it.each<[HomeEnvironment, string]>([
    [{}, '/u/.local/share/tidemark'],
    [{ TIDEMARK_HOME: '', XDG_DATA_HOME: '' }, '/u/.local/share/tidemark'],
    [{ XDG_DATA_HOME: '/data' }, '/data/tidemark'],
    [{ TIDEMARK_HOME: '/own' }, '/own'],
    [{ TIDEMARK_HOME: '/own/', XDG_DATA_HOME: '/data' }, '/own'],
    [{ TIDEMARK_HOME: '/own/../other' }, '/other'],
    [{ TIDEMARK_HOME: '/own', XDG_DATA_HOME: 'relative' }, '/own'],
  ])('%j is %s', (variables, home) => {
    expect(tidemarkHome(variables, '/u')).toBe(home)
  })

  it.each<[HomeEnvironment, string]>([
    [
      { TIDEMARK_HOME: 'here' },
      'TIDEMARK_HOME is "here"; expected an absolute path. Set it to one, or unset it.',
    ],
    [
      { XDG_DATA_HOME: '~/x' },
      'XDG_DATA_HOME is "~/x"; expected an absolute path. Set it to one, or unset it.',
    ],
  ])('%j is refused in one line', (variables, message) => {
    expect(() => tidemarkHome(variables, '/u')).toThrow(
      expect.objectContaining({ code: 'bad-home', message }),
    )
  })
})

describe('a home in the options', () => {
  it('is used as it is; without one, the default home is used', () => {
    expect([resolveHome('/own/'), resolveHome(undefined)]).toEqual(['/own', tidemarkHome()])
  })

  it.each<[unknown, string]>([
    ['here', 'The home is "here"; expected an absolute path. Give one, or leave it out.'],
    ['', 'The home is ""; expected an absolute path. Give one, or leave it out.'],
    [7, 'The home is 7; expected an absolute path. Give one, or leave it out.'],
    [null, 'The home is null; expected an absolute path. Give one, or leave it out.'],
  ])('as %j is refused in one line', (home, message) => {
    expect(() => resolveHome(home as string)).toThrow(expect.objectContaining({ code: 'bad-home', message }))
  })
})

describe('a session id', () => {
  it.each([
    'a',
    '0',
    'fix-login',
    'A.b_c-d',
    'x'.repeat(128),
    'console',
    'com',
    'nul-x',
    'a.jsonl.x',
    'lock',
  ])('%s is valid', (id) => {
    expect(isSessionId(id)).toBe(true)
  })

  it.each([
    '',
    '.',
    '..',
    'a/b',
    'a\\b',
    '../x',
    '-a',
    '_a',
    '.a',
    'a.',
    'a..b',
    'a b',
    'a\n',
    'a\0',
    'ä',
    'x'.repeat(129),
    'CON',
    'nul',
    'aux.txt',
    'COM1',
    'lpt9.a',
    'a.jsonl',
    'a.LOCK',
  ])('%j is not valid', (id) => {
    expect(isSessionId(id)).toBe(false)
  })

  it.each([123, null, undefined, {}, ['a'], Symbol('a')])('%s is not valid: not a string', (id) => {
    expect(isSessionId(id)).toBe(false)
    expect(() => checkSessionId(id)).toThrow(expect.objectContaining({ code: 'bad-session-id' }))
  })

  it('that is refused gets a message with the rule', () => {
    expect(() => checkSessionId(123)).toThrow('123 cannot be a session id: use 1 to 128 letters')
    expect(() => checkSessionId('../x')).toThrow(
      '"../x" cannot be a session id: use 1 to 128 letters, digits, dots, hyphens and underscores, beginning with a letter or digit, without two dots in a row or one at the end, not ending in .jsonl or .lock, and not a Windows device name (con, nul, com1 …).',
    )
  })

  it('never leads out of the sessions folder, whatever the text', () => {
    const tried = fc.string({
      unit: fc.constantFrom('.', '/', '\\', 'a', '\0', '~', 'c', ':', ' '),
      maxLength: 8,
    })
    fc.assert(
      fc.property(tried, (id) => {
        if (!isSessionId(id)) return
        for (const path of Object.values(sessionPaths('/home', id))) {
          expect(dirname(path)).toBe('/home/sessions')
          expect(basename(path).startsWith(id)).toBe(true)
        }
      }),
    )
  })

  it('has paths that no other session has', () => {
    expect(sessionPaths('/home', 'a')).toEqual({
      log: '/home/sessions/a.jsonl',
      lock: '/home/sessions/a.lock',
      folder: '/home/sessions/a',
    })
  })
})
