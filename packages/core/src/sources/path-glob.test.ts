import { describe, expect, it } from 'vitest'
import { matchesGlobs } from './path-glob.ts'

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

  it('of any shape takes no long time', () => {
    const path = `${'a'.repeat(200)}/${'b/'.repeat(200)}${'a'.repeat(200)}b`
    const started = process.cpuUsage()
    for (const glob of [
      '*a'.repeat(300),
      '**/c/'.repeat(150),
      '{a,b}'.repeat(100),
      '{'.repeat(900),
      'x'.repeat(1e6),
    ])
      expect(matchesGlobs([glob], path)).toBe(false)
    expect(process.cpuUsage(started).user).toBeLessThan(500_000)
  })
})
