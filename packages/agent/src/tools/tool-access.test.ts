import { mkdirSync, symlinkSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, it } from 'vitest'
import { createAgentFolder } from '../../test/agent-folder.ts'
import { createAgentTools } from './agent-tools.ts'
import { describeToolAccess, resolveRealPath } from './tool-access.ts'

function open() {
  const folder = createAgentFolder()
  const { cwd } = folder.environment
  const outside = join(dirname(cwd), 'outside')
  mkdirSync(join(outside, 'sub'), { recursive: true })
  mkdirSync(folder.path('src'))
  symlinkSync(outside, folder.path('link'))
  symlinkSync('../outside/new.txt', folder.path('dangling'))
  symlinkSync('loop', folder.path('loop'))
  symlinkSync('dangling', folder.path('chain'))
  return { cwd, outside }
}

it.each<
  readonly [
    name: string,
    input: object,
    kind: string,
    path: (place: { cwd: string; outside: string }) => string,
  ]
>([
  ['Read', { file_path: 'src/a.ts' }, 'read', ({ cwd }) => `${cwd}/src/a.ts`],
  ['Read', { file_path: '/etc/../etc/hosts' }, 'read', () => '/etc/hosts'],
  ['Read', { file_path: '../x' }, 'read', ({ cwd }) => join(dirname(cwd), 'x')],
  ['Read', { file_path: '~/x-none' }, 'read', () => resolveRealPath(join(homedir(), 'x-none'))],
  ['Read', { file_path: 'link/secret' }, 'read', ({ outside }) => `${outside}/secret`],
  ['Write', { file_path: 'link/new/deep/a' }, 'write', ({ outside }) => `${outside}/new/deep/a`],
  ['Write', { file_path: 'dangling' }, 'write', ({ outside }) => `${outside}/new.txt`],
  ['Edit', { file_path: 'chain' }, 'write', ({ outside }) => `${outside}/new.txt`],
  ['Edit', { file_path: 'dangling/x' }, 'write', ({ outside }) => `${outside}/new.txt/x`],
  ['MultiEdit', { file_path: 'loop' }, 'write', ({ cwd }) => `${cwd}/loop`],
  ['Grep', { pattern: 'x' }, 'read', ({ cwd }) => cwd],
  ['Grep', { pattern: 'x', path: 'link' }, 'read', ({ outside }) => outside],
  ['Glob', { pattern: '*.ts' }, 'read', ({ cwd }) => cwd],
  ['Glob', { pattern: 'src/*.ts' }, 'read', ({ cwd }) => `${cwd}/src`],
  ['Glob', { pattern: '../outside/**' }, 'read', ({ outside }) => outside],
  ['Glob', { pattern: 'sub/*', path: 'link' }, 'read', ({ outside }) => `${outside}/sub`],
  ['Glob', { pattern: '/etc/*' }, 'read', () => '/etc'],
])('%s %j accesses the place that its path leads to', (name, input, kind, path) => {
  const place = open()
  expect(describeToolAccess(name, input, place.cwd)).toMatchObject({ kind, paths: [path(place)] })
})

it('commands, pages and other tools', () => {
  expect([
    describeToolAccess('Bash', { command: 'ls' }, '/p'),
    describeToolAccess('WebFetch', { url: 'https://example.com' }, '/p'),
    describeToolAccess('TodoWrite', {}, '/p'),
    describeToolAccess('history', {}, '/p'),
    describeToolAccess('SomethingElse', {}, '/p'),
    describeToolAccess('Read', null, '/p'),
  ]).toEqual([
    { kind: 'execute', paths: [], command: 'ls' },
    { kind: 'network', paths: [], url: 'https://example.com' },
    { kind: 'none', paths: [] },
    { kind: 'none', paths: [] },
    { kind: 'execute', paths: [] },
    { kind: 'read', paths: [] },
  ])
})

it('a tool that is added must say what it accesses', () => {
  const { environment } = createAgentFolder()
  const kinds = Object.keys(createAgentTools(environment)).map((name) => [
    name,
    describeToolAccess(name, {}, environment.cwd).kind,
  ])
  expect(Object.fromEntries(kinds)).toEqual({
    Read: 'read',
    Write: 'write',
    Edit: 'write',
    MultiEdit: 'write',
    Bash: 'execute',
    BashOutput: 'none',
    KillShell: 'none',
    Grep: 'read',
    Glob: 'read',
    WebFetch: 'network',
    TodoWrite: 'none',
    AskUser: 'none',
  })
})
