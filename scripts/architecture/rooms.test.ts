import { describe, expect, it } from 'vitest'
import { checkPackages, checkRooms, type Workspace } from './rooms.ts'
import type { Source } from './source.ts'

const core = (path: string, text: string): Source => ({ path: `packages/core/src/${path}`, text })

describe('room order', () => {
  it.each([
    ['an earlier room', 'view/view.ts', "import { a } from '../conversation/record.ts'"],
    ['its own room', 'view/view.ts', "import { a } from './flatten.ts'"],
    ['errors, from the first room', 'conversation/record.ts', "import { TidemarkError } from '../errors.ts'"],
    ['any room, from the index', 'index.ts', "export { a } from './engine/engine.ts'"],
    ['another package', 'view/view.ts', "import { describe } from 'vitest'"],
  ])('allows %s', (_what, path, text) => {
    expect(checkRooms([core(path, text)])).toEqual([])
  })

  it.each([
    [
      'a later room',
      'view/view.ts',
      "import { plan } from '../plan/plan.ts'",
      'view may not import from plan, a later room',
    ],
    [
      'a type of a later room',
      'view/view.ts',
      "\nimport type { Plan } from '../plan/plan.ts'",
      'view may not import from plan, a later room',
    ],
    [
      'an import type',
      'view/view.ts',
      "type A = import('../engine/ports.ts').Clock",
      'view may not import from engine, a later room',
    ],
    [
      'a dynamic import',
      'policy/policy.ts',
      "const a = await import('../view/view.ts')",
      'policy may not import from view, a later room',
    ],
    [
      'the index, from inside',
      'engine/engine.ts',
      "import { a } from '../index.ts'",
      'engine may not import from index.ts, a later room',
    ],
    [
      'a room, from errors',
      'errors.ts',
      "import { a } from './conversation/json.ts'",
      'errors.ts may not import from conversation, a later room',
    ],
  ])('refuses %s', (_what, path, text, why) => {
    const source = core(path, text)
    expect(checkRooms([source])).toEqual([{ file: source.path, line: text.startsWith('\n') ? 2 : 1, why }])
  })

  it.each(['drawer/thing.ts', 'thing.ts'])('refuses %s, which is in no room', (path) => {
    expect(checkRooms([core(path, '')])).toMatchObject([{ file: `packages/core/src/${path}`, line: 0 }])
  })
})

describe('package order', () => {
  const workspace: Workspace = {
    packages: new Map([
      ['core', { name: '@tidemark/core', dependencies: [], exports: ['.'] }],
      ['wire', { name: '@tidemark/wire', dependencies: ['@tidemark/core'], exports: ['.'] }],
      ['cli', { name: '@tidemark/cli', dependencies: ['@tidemark/core', 'commander'], exports: ['.'] }],
    ]),
    pure: new Set(['core', 'wire']),
    forTests: new Set(['vitest', '@tidemark/cli/testing']),
  }
  const whyOf = (path: string, specifier: string): readonly string[] =>
    checkPackages([{ path, text: `import '${specifier}'` }], workspace).map(({ why }) => why)

  it.each([
    ['packages/wire/src/a.ts', '@tidemark/core'],
    ['packages/cli/src/a.ts', 'commander'],
    ['packages/cli/src/a.ts', 'node:fs/promises'],
    ['packages/core/src/view/a.test.ts', 'vitest'],
    ['packages/core/src/view/a.test.ts', 'node:fs'],
    ['packages/core/src/view/a.test.ts', '@tidemark/cli/testing'],
    ['packages/core/test/laws.ts', '@tidemark/core'],
    ['packages/core/src/view/a.ts', './b.ts'],
    ['scripts/a.ts', 'typescript'],
  ])('allows %s to import %s', (path, specifier) => {
    expect(whyOf(path, specifier)).toEqual([])
  })

  it.each([
    [
      'packages/core/src/a.ts',
      '@tidemark/wire',
      'core may not import @tidemark/wire: the order is core < wire < cli',
    ],
    [
      'packages/core/src/a.ts',
      '@tidemark/core',
      'imports its own package by name (@tidemark/core): import the file',
    ],
    ['packages/core/src/a.ts', 'node:fs', 'imports node:fs: this package is pure'],
    ['packages/wire/src/a.ts', 'fs', 'imports fs: this package is pure'],
    ['packages/cli/src/a.ts', 'fs', 'imports fs: write node:fs'],
    ['packages/core/src/a.ts', 'zod', 'imports zod, which its package.json does not declare'],
    [
      'packages/cli/src/a.ts',
      '@tidemark/wire',
      'imports @tidemark/wire, which its package.json does not declare',
    ],
    [
      'packages/cli/src/a.ts',
      '@tidemark/core/src/view/view.ts',
      'imports @tidemark/core/src/view/view.ts, which @tidemark/core does not export',
    ],
    [
      'packages/cli/src/a.ts',
      '../../core/src/index.ts',
      'leaves its package: import ../../core/src/index.ts by package name',
    ],
    ['packages/core/src/view/a.ts', 'vitest', 'imports vitest, which its package.json does not declare'],
  ])('refuses %s importing %s', (path, specifier, why) => {
    expect(whyOf(path, specifier)).toEqual([why])
  })
})
