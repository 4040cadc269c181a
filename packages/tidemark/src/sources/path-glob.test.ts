import { matchesGlob } from 'node:path'
import { countPropertyRuns } from '@tidemark/core/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { compileGlob, matchesGlobs, matchesStars } from './path-glob.ts'

describe('a glob', () => {
  it.each<[string, readonly string[], readonly string[]]>([
    ['src/a.ts', ['src/a.ts'], ['src/a.tsx', 'lib/src/a.ts']],
    ['*.md', ['a.md', '.md'], ['docs/a.md', 'a.mdx']],
    ['**/*.ts', ['a.ts', 'src/a.ts', 'src/x/.hidden/a.ts'], ['a.js']],
    ['src/**', ['src/a', 'src/x/y'], ['src', 'lib/src/a']],
    ['src/**/test/*.ts', ['src/test/a.ts', 'src/x/y/test/a.ts'], ['src/test/x/a.ts']],
    ['docs/', ['docs/a', 'docs/x/y'], ['docs']],
    ['./src/*.ts', ['src/a.ts'], []],
    ['/src/*.ts', ['src/a.ts'], ['etc/a.ts']],
    ['a?.ts', ['ab.ts', 'a✓.ts', 'a😀.ts'], ['a.ts', 'a/.ts', 'abc.ts']],
    ['[a-c]x', ['ax', 'cx'], ['dx', '[a-c]x']],
    ['[!a-c]x', ['dx'], ['ax']],
    ['[^a]x', ['bx'], ['ax']],
    ['a[b', ['a[b'], ['ab']],
    ['\\*.ts', ['*.ts'], ['a.ts']],
    ['src/*.{ts,tsx}', ['src/a.ts', 'src/a.tsx'], ['src/a.js']],
    ['{src,lib}/**/*.{t,j}s', ['src/a.ts', 'lib/x/a.js'], ['bin/a.ts']],
    ['{a,b{c,d}}', ['a', 'bc', 'bd'], ['b', 'c']],
    ['a{b}', ['a{b}'], ['ab']],
    ['{a,a}{b,c}', ['ab', 'ac'], ['a', 'aab']],
    ['../**', [], ['a', 'src/a', 'etc/passwd']],
    ['src/../../etc/*', [], ['etc/passwd', 'src/etc/passwd']],
    ['', [], ['a', '']],
    ['É*', ['Éa'], ['éa', 'E\u0301a']],
  ])('%s', (glob, matching, others) => {
    for (const path of matching) expect([path, matchesGlobs([glob], path)]).toEqual([path, true])
    for (const path of others) expect([path, matchesGlobs([glob], path)]).toEqual([path, false])
  })

  it('with an exclamation mark takes paths out again', () => {
    const globs = ['src/**', '!src/**/*.test.ts']
    expect(matchesGlobs(globs, 'src/a.ts')).toBe(true)
    expect(matchesGlobs(globs, 'src/x/a.test.ts')).toBe(false)
    expect(matchesGlobs(['!a'], 'b')).toBe(false)
  })

  it('matches what Node matches, in ordinary patterns', () => {
    const signs = [
      'a',
      'b',
      '.ts',
      '*',
      '**',
      '?',
      '/',
      '/**/',
      '**/',
      '[ab]',
      '[!a]',
      '{a,b}',
      '{a,{b,c}}',
      '-',
    ]
    const glob = fc
      .array(fc.constantFrom(...signs), { minLength: 1, maxLength: 5 })
      .map((parts) => parts.join(''))
      .filter((text) => !/^\/|\/\/|\/$|\*{3}/.test(text))
      // Nested braces count four alternatives each: five of them are beyond the limit of 256, and the glob is refused.
      .filter((text) => 2 ** (text.split('{').length - 1) <= 256)
    const name = fc.constantFrom('a', 'b', 'ab', 'a.ts', 'abc', 'a-b', 'c')
    fc.assert(
      fc.property(glob, fc.array(name, { minLength: 1, maxLength: 4 }), (pattern, names) => {
        expect(compileGlob(pattern)?.(names)).toBe(matchesGlob(names.join('/'), pattern))
      }),
      { numRuns: countPropertyRuns(4_000) },
    )
  })

  it('of any shape takes no long time', () => {
    const path = `${'a'.repeat(200)}/${'b/'.repeat(200)}${'a'.repeat(200)}b`
    const started = process.cpuUsage()
    for (const glob of [
      '*a'.repeat(300),
      '**/c/'.repeat(150),
      '{a,b}'.repeat(100),
      '{'.repeat(900),
      'x'.repeat(1e6),
      '[a-'.repeat(300),
      '\\'.repeat(999),
    ])
      expect(matchesGlobs([glob], path)).toBe(false)
    // Far above what it takes: the process counts its garbage collector too. One that backtracks takes minutes.
    expect(process.cpuUsage(started).user).toBeLessThan(10_000_000)
  })
})

describe('a pattern with stars', () => {
  it.each<[string, readonly string[], readonly string[]]>([
    ['npm run *', ['npm run a', 'npm run ', 'npm run a\nb'], ['npm run', 'xnpm run a']],
    ['a*b*c', ['abc', 'a-b-b-c'], ['ac', 'acb', 'abcd']],
    ['ab*ba', ['abba', 'abxba'], ['aba']],
    ['a', ['a'], ['', 'aa', 'A']],
    ['*', ['', 'a'], []],
    ['a.c?[x]', ['a.c?[x]'], ['abc?[x]']],
  ])('%s', (pattern, matching, others) => {
    expect([...matching, ...others].filter((text) => matchesStars(pattern, text))).toEqual(matching)
  })

  it('matches what an expression for it matches', () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'b', '*'), maxLength: 8 })
    fc.assert(
      fc.property(text, text, (pattern, given) => {
        const expression = new RegExp(`^${pattern.replaceAll('*', '.*')}$`)
        expect(matchesStars(pattern, given)).toBe(expression.test(given))
      }),
    )
  })
})
