import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, symlinkSync, utimesSync } from 'node:fs'
import { dirname } from 'node:path'
import { findProgram } from 'tidemark/tools'
import { describe, expect, it } from 'vitest'
import { createAgentFolder } from '../../test/agent-folder.ts'
import { createSearchTools } from './search-tools.ts'
import type { AgentTool } from './tool-definition.ts'

const ENGINES: readonly (readonly [name: string, env: NodeJS.ProcessEnv])[] = [
  ['our own search', { PATH: '' }],
  // Both searches must give the same results, so the tests run with ripgrep too where it is installed.
  ...(findProgram('rg', process.env) === null ? [] : [['ripgrep', process.env] as const]),
]

function open(env: NodeJS.ProcessEnv) {
  const folder = createAgentFolder({ env })
  const tools = createSearchTools(folder.environment) as Record<'Grep' | 'Glob', AgentTool>
  return {
    folder,
    grep: async (pattern: string, input: object = {}, context: object = {}) =>
      folder.call(tools.Grep, { pattern, ...input }, context),
    find: async (pattern: string, input: object = {}) =>
      (await folder.call(tools.Glob, { pattern, ...input })).text,
  }
}

function openProject(env: NodeJS.ProcessEnv) {
  const opened = open(env)
  const { folder } = opened
  folder.write('src/a.ts', 'alpha\nbeta\ngamma\nAlpha\n')
  folder.write('src/b.js', 'first\r\nalpha beta\r\nlast\r\n')
  folder.write('README.md', '# alpha\n')
  folder.write('.hidden/c.ts', 'alpha\n')
  folder.write('node_modules/x/index.js', 'alpha\n')
  folder.write('.git/config', 'alpha\n')
  folder.write('dist/out.js', 'alpha\n')
  folder.write('.gitignore', 'dist\n')
  folder.write('bin.dat', Buffer.from('alpha\0\n'))
  const order = ['.hidden/c.ts', 'README.md', 'src/a.ts', 'src/b.js']
  order.forEach((name, index) => {
    utimesSync(folder.path(name), 1_000 + index, 1_000 + index)
  })
  return opened
}

describe.each(ENGINES)('Grep with %s', (_, env) => {
  it('lists the files that match, newest first, without ignored and binary ones', async () => {
    expect((await openProject(env).grep('alpha')).text).toBe('src/b.js\nsrc/a.ts\nREADME.md\n.hidden/c.ts')
  })

  it('shows the matching lines with their numbers', async () => {
    const { grep } = openProject(env)
    expect((await grep('^alpha', { output_mode: 'content' })).text).toBe(
      '.hidden/c.ts:1:alpha\nsrc/a.ts:1:alpha\nsrc/b.js:2:alpha beta',
    )
    expect((await grep('alpha$', { output_mode: 'content', '-i': true, '-n': false, type: 'ts' })).text).toBe(
      '.hidden/c.ts:alpha\nsrc/a.ts:alpha\nsrc/a.ts:Alpha',
    )
  })

  it('counts the matching lines', async () => {
    expect((await openProject(env).grep('a', { output_mode: 'count', path: 'src' })).text).toBe(
      'src/a.ts:4\nsrc/b.js:2',
    )
  })

  it('shows lines around a match', async () => {
    const { folder, grep } = open(env)
    folder.write('a.txt', '1\n2\n3x\n4\n5\n6\n7\n8x\n9\n')
    folder.write('b.txt', 'x\n')
    expect((await grep('x', { output_mode: 'content', '-C': 1 })).text).toBe(
      'a.txt-2-2\na.txt:3:3x\na.txt-4-4\n--\na.txt-7-7\na.txt:8:8x\na.txt-9-9\n--\nb.txt:1:x',
    )
    expect((await grep('3', { output_mode: 'content', '-A': 2 })).text).toBe(
      'a.txt:3:3x\na.txt-4-4\na.txt-5-5',
    )
    expect((await grep('3', { output_mode: 'content', '-B': 1 })).text).toBe('a.txt-2-2\na.txt:3:3x')
  })

  it.each([
    [{ glob: '*.ts' }, ['src/a.ts', '.hidden/c.ts']],
    [{ glob: 'src/*.{js,ts}' }, ['src/b.js', 'src/a.ts']],
    [{ glob: '!*.ts' }, ['src/b.js', 'README.md']],
    [{ type: 'md' }, ['README.md']],
    [{ path: 'src/a.ts' }, ['src/a.ts']],
    [{ path: 'dist' }, ['dist/out.js']],
    [{ path: 'node_modules/x' }, ['node_modules/x/index.js']],
  ])('searches only what %j selects', async (input, files) => {
    expect((await openProject(env).grep('alpha', input)).text.split('\n')).toEqual(files)
  })

  it('lets a match span lines only if asked', async () => {
    const { folder, grep } = open(env)
    folder.write('a.txt', 'one\ntwo\nthree\nfour\n')
    const content = { output_mode: 'content' }
    expect((await grep('one\\s+two', content)).text).toBe('No matches found.')
    expect((await grep('two.three', { ...content, multiline: true })).text).toBe('a.txt:2:two\na.txt:3:three')
  })

  it('takes a pattern that begins with a dash, and flags in it', async () => {
    const { folder, grep } = open(env)
    folder.write('a.txt', '--files HELLO\n')
    expect((await grep('--files')).text).toBe('a.txt')
    expect((await grep('(?i)hello')).text).toBe('a.txt')
  })

  it('tells what is wrong', async () => {
    const { folder, grep } = openProject(env)
    expect(await grep('(')).toMatchObject({ isError: true })
    expect(await grep('x', { path: 'nowhere' })).toMatchObject({
      isError: true,
      text: expect.stringMatching(/^There is no file or folder .*nowhere\.$/),
    })
    expect(await grep('x', { type: 'nonsense' })).toMatchObject({ isError: true })
    execFileSync('mkfifo', [folder.path('pipe')])
    expect(await grep('x', { path: 'pipe' })).toMatchObject({
      isError: true,
      text: expect.stringContaining('cannot be searched'),
    })
    expect(await grep('zzz')).toMatchObject({ isError: false, text: 'No matches found.' })
  })

  it('shows no more than the limits allow, and says so', async () => {
    const { folder, grep } = open(env)
    folder.write('a.txt', 'x\n'.repeat(1_000))
    const content = { output_mode: 'content' }
    expect((await grep('x', { ...content, head_limit: 2 })).text).toBe(
      'a.txt:1:x\na.txt:2:x\n\n[The first 2 of 1,000 lines. Narrow the search to see the others.]',
    )
    expect((await grep('x', content)).text).toContain('[The first 250 of 1,000 lines.')
    folder.write('b.txt', `${'y'.repeat(300)}\n`.repeat(200))
    const { text } = await grep('y', { ...content, head_limit: 0 })
    expect(text).toMatch(/y\n\n\[The first 64 of 200 lines\./)
    folder.write('c.txt', `${'z'.repeat(5_000)}\n`)
    expect((await grep('z', content)).text.length).toBeLessThan(600)
  })

  it('follows no link out of the folder', async () => {
    const { folder, grep } = open(env)
    const outside = `${dirname(folder.environment.cwd)}/outside`
    mkdirSync(outside)
    folder.write('../outside/secret.txt', 'alpha')
    symlinkSync(outside, folder.path('link'))
    symlinkSync(`${outside}/secret.txt`, folder.path('file'))
    expect((await grep('alpha')).text).toBe('No matches found.')
    expect((await grep('alpha', { path: 'link' })).text).toBe(`${outside}/secret.txt`)
  })
})

it('Grep ends a pattern that would take for ever', async () => {
  const { folder, grep } = open({ PATH: '' })
  folder.write('a.txt', `${'a'.repeat(40)}b\n`)
  expect(await grep('^(a+)+$')).toMatchObject({
    isError: true,
    text: 'The pattern takes over 2 s for one file. Simplify it.',
  })
})

it('Grep and Glob end after 20 seconds, and say that there may be more', async () => {
  let now = 0
  const folder = createAgentFolder({
    env: { PATH: '' },
    now: () => {
      now += 9_000
      return now
    },
  })
  const tools = createSearchTools(folder.environment) as Record<'Grep' | 'Glob', AgentTool>
  for (const name of ['a', 'b', 'c', 'd']) folder.write(name, 'text')
  for (const name of ['Grep', 'Glob'] as const) {
    const { text } = await folder.call(tools[name], { pattern: name === 'Grep' ? 'text' : '*' })
    expect(text).toMatch(/\[The first \d of more than \d lines\./)
  }
})

it.each(ENGINES)('Grep with %s searches however many milliseconds have passed', async (_, env) => {
  let now = 0
  const folder = createAgentFolder({
    env,
    now: () => {
      now += 1
      return now
    },
  })
  folder.write('a.txt', 'text')
  const { Grep } = createSearchTools(folder.environment) as Record<'Grep', AgentTool>
  expect((await folder.call(Grep, { pattern: 'text' })).text).toBe('a.txt')
})

it('Grep can be aborted', async () => {
  const { grep } = openProject({ PATH: '' })
  expect(await grep('x', {}, { signal: AbortSignal.abort() })).toMatchObject({ isError: true })
})

describe('Glob', () => {
  it.each([
    ['*.ts', {}, ['src/a.ts', '.hidden/c.ts']],
    ['src/*', {}, ['src/b.js', 'src/a.ts']],
    ['**/*.{js,md}', {}, ['src/b.js', 'README.md']],
    ['*.js', { path: 'src' }, ['src/b.js']],
    ['src/a.ts', {}, ['src/a.ts']],
    ['dist/**', {}, ['dist/out.js']],
    ['node_modules/**/*.js', {}, ['node_modules/x/index.js']],
    ['*.py', {}, ['No matches found.']],
  ])('%s %j', async (pattern, input, files) => {
    expect((await openProject({}).find(pattern, input)).split('\n')).toEqual(files)
  })

  it('takes absolute patterns, and shows paths outside as absolute', async () => {
    const { folder, find } = openProject({})
    const outside = `${dirname(folder.environment.cwd)}/outside`
    folder.write('../outside/x.txt', '')
    expect(await find(`${folder.environment.cwd}/src/*.ts`)).toBe('src/a.ts')
    expect(await find('../outside/*')).toBe(`${outside}/x.txt`)
    expect(await find('*', { path: 'nowhere' })).toMatch(/^There is no file or folder/)
    expect(await find('*', { path: 'README.md' })).toMatch(/is a file, not a folder\.$/)
  })

  it('lists at most 100 files, and says how many there are', async () => {
    const { folder, find } = open({})
    for (let index = 0; index < 120; index += 1) folder.write(`f${index}`, '')
    expect(await find('*')).toContain('[The first 100 of 120 lines. Narrow the search to see the others.]')
  })

  it('reads .gitignore files of the folders above, within the repository', async () => {
    const { folder, find } = open({})
    mkdirSync(folder.path('.git'))
    folder.write('.gitignore', '*.log\n!keep.log\n')
    folder.write('sub/.gitignore', '!b.log\n')
    for (const name of ['a.log', 'b.log', 'keep.log', 'x.txt']) {
      utimesSync(folder.write(`sub/${name}`, ''), 5, 5)
    }
    expect((await find('sub/*')).split('\n').sort()).toEqual([
      'sub/.gitignore',
      'sub/b.log',
      'sub/keep.log',
      'sub/x.txt',
    ])
  })
})

it('a ripgrep that never ends, as one that waits for a pipe, is followed by our own search', async () => {
  const folder = createAgentFolder({ env: { PATH: '' } })
  folder.write('a.txt', 'alpha\n')
  const program = folder.write('bin/rg', '#!/bin/sh\nexec /bin/sleep 60\n')
  chmodSync(program, 0o755)
  // The search begins 200 ms before its time is over, of which ripgrep gets half.
  const times = [0, 19_800]
  const environment = {
    ...folder.environment,
    env: { PATH: dirname(program) },
    now: () => times.shift() ?? 19_900,
  }
  const { Grep } = createSearchTools(environment) as Record<'Grep', AgentTool>
  expect((await folder.call(Grep, { pattern: 'alpha' })).text).toBe('a.txt')
})

it('a search that the repository makes slow ends at once when it is interrupted, and the main thread stays free', async () => {
  const folder = createAgentFolder({ env: { PATH: '' } })
  // Each name is compared with thousands of patterns of a thousand characters, which would take hours.
  folder.write('.gitignore', `${'*a'.repeat(490)}b\n`.repeat(20_000))
  for (let index = 0; index < 50; index += 1) folder.write(`${'a'.repeat(200)}${index}`, 'text')
  const { Glob } = createSearchTools(folder.environment) as Record<'Glob', AgentTool>
  const stop = new AbortController()
  let beats = 0
  const timer = setInterval(() => {
    beats += 1
    if (beats === 20) stop.abort()
  }, 10)
  const result = await folder.call(Glob, { pattern: '*' }, { signal: stop.signal })
  clearInterval(timer)
  expect(result.isError).toBe(true)
  expect(beats).toBeLessThan(500)
})
