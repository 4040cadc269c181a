import { describe, expect, it } from 'vitest'
import {
  checkCodecImports,
  checkFolders,
  checkPackages,
  checkPublicImports,
  type Workspace,
} from './folders.ts'
import type { Source } from './source.ts'

describe('folder order', () => {
  const order = { core: ['errors.ts', 'log', 'policy', 'context', 'engine'], cli: ['.', 'render', 'main.ts'] }
  const at = (path: string, text: string): Source => ({ path: `packages/${path}`, text })

  it.each([
    ['an earlier folder', 'core/src/context/view.ts', "import { a } from '../log/record.ts'"],
    ['its own folder', 'core/src/context/view.ts', "import { a } from './flatten.ts'"],
    ['a file with its own place', 'core/src/log/record.ts', "import { TidemarkError } from '../errors.ts'"],
    ['any folder, from the index', 'core/src/index.ts', "export { a } from './engine/engine.ts'"],
    ['a file in src, from a folder', 'cli/src/render/page.ts', "import { a } from '../terminal.ts'"],
    ['another package', 'core/src/context/view.ts', "import { describe } from 'vitest'"],
    ['a package without an order', 'other/src/a/b.ts', "import { a } from '../c/d.ts'"],
    ['a test', 'core/src/log/record.test.ts', "import { a } from '../engine/engine.ts'"],
  ])('allows %s', (_what, path, text) => {
    expect(checkFolders([at(path, text)], order)).toEqual([])
  })

  it.each([
    ['a later folder', 'core/src/context/a.ts', "import { b } from '../engine/b.ts'", 'context', 'engine'],
    ['a type', 'core/src/log/a.ts', "\nimport type { B } from '../policy/b.ts'", 'log', 'policy'],
    ['an import type', 'core/src/log/a.ts', "type A = import('../engine/b.ts').B", 'log', 'engine'],
    ['a dynamic import', 'core/src/policy/a.ts', "await import('../context/b.ts')", 'policy', 'context'],
    ['the index', 'core/src/engine/a.ts', "import { b } from '../index.ts'", 'engine', 'index.ts'],
    ['a folder, from errors', 'core/src/errors.ts', "import { b } from './log/b.ts'", 'errors.ts', 'log'],
    ['main, from a folder', 'cli/src/render/a.ts', "import { b } from '../main.ts'", 'render', 'main.ts'],
  ])('refuses %s', (_what, path, text, own, folder) => {
    const source = at(path, text)
    const why = `${own} may not import from ${folder}, which comes later`
    expect(checkFolders([source], order)).toEqual([
      { file: source.path, line: text.startsWith('\n') ? 2 : 1, why },
    ])
  })

  it.each(['drawer/thing.ts', 'log/inner/thing.ts', 'thing.ts'])('refuses %s, which has no place', (path) => {
    expect(checkFolders([at(`core/src/${path}`, '')], order)).toMatchObject([
      { file: `packages/core/src/${path}`, line: 0 },
    ])
  })
})

describe('codecs in the simulator', () => {
  const whyOf = (path: string, specifier: string): readonly string[] =>
    checkCodecImports([{ path: `packages/simulator/src/${path}`, text: `import '${specifier}'` }]).map(
      ({ why }) => why,
    )

  it.each([
    ['openai/openai-models.ts', '@tidemark/wire/catalogue/catalogue'],
    ['openai/chat/completion.ts', '@tidemark/core/log/json'],
    ['server/send-answer.ts', '@tidemark/wire/anthropic/reply-frames'],
  ])('allows %s to import %s', (path, specifier) => {
    expect(whyOf(path, specifier)).toEqual([])
  })

  it.each([
    ['openai/responses/output-items.ts', '@tidemark/wire/openai/responses'],
    ['openai/chat/completion.ts', '@tidemark/wire/anthropic/response-body'],
    ['openai/chat/completion.ts', '@tidemark/wire/http/sse'],
    ['server/handle-openai.ts', '@tidemark/wire/anthropic/response-body'],
    ['server/routes.ts', '@tidemark/wire/openai/chat'],
    ['server/routes.ts', '@tidemark/wire'],
  ])('refuses that %s imports %s', (path, specifier) => {
    expect(whyOf(path, specifier)).toEqual([`imports a codec: ${specifier}`])
  })
})

describe('package order', () => {
  const workspace: Workspace = {
    packages: new Map([
      ['core', { name: '@tidemark/core', dependencies: [], exports: ['./*'] }],
      ['wire', { name: '@tidemark/wire', dependencies: ['@tidemark/core'], exports: ['.'] }],
      ['cli', { name: '@tidemark/cli', dependencies: ['@tidemark/core', 'commander'], exports: ['.'] }],
    ]),
    pure: new Set(['core', 'wire']),
    forTests: new Set(['vitest', '@tidemark/cli/testing']),
  }
  const whyOf = (path: string, specifier: string): readonly string[] =>
    checkPackages([{ path, text: `import '${specifier}'` }], workspace).map(({ why }) => why)

  it.each([
    ['packages/wire/src/a.ts', '@tidemark/core/view/view'],
    ['packages/cli/src/a.ts', 'commander'],
    ['packages/cli/src/a.ts', 'node:fs/promises'],
    ['packages/core/src/view/a.test.ts', 'vitest'],
    ['packages/core/src/view/a.test.ts', 'node:fs'],
    ['packages/core/src/view/a.test.ts', '@tidemark/cli/testing'],
    ['packages/core/test/laws.ts', '@tidemark/core/view/view'],
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
      '@tidemark/core',
      'imports @tidemark/core, which @tidemark/core does not export',
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

describe('public imports', () => {
  const whyOf = (path: string, specifier: string): readonly string[] =>
    checkPublicImports([{ path, text: `import '${specifier}'` }]).map(({ why }) => why)

  it.each([
    ['packages/agent/src/a.ts', 'tidemark'],
    ['packages/agent/src/a.ts', 'tidemark/records'],
    ['packages/agent/src/a.ts', '@tidemark/simulator'],
    ['packages/agent/src/a.ts', '@tidemark/terminal/render/text'],
    ['packages/agent/src/a.test.ts', '@tidemark/core/testing'],
    ['packages/agent/test/world.ts', '@tidemark/core/testing'],
    ['packages/cli/src/a.ts', 'tidemark/internal'],
  ])('%s may import %s', (path, specifier) => {
    expect(whyOf(path, specifier)).toEqual([])
  })

  it.each([
    ['packages/agent/src/a.ts', '@tidemark/core/log/record'],
    ['packages/agent/src/a.ts', '@tidemark/wire/anthropic/response-body'],
    ['packages/agent/src/a.ts', 'tidemark/internal'],
    ['packages/agent/src/a.ts', '@tidemark/simulator/internal'],
    ['packages/terminal/src/a.ts', 'tidemark/internal'],
  ])('%s may not import %s', (path, specifier) => {
    expect(whyOf(path, specifier)).toEqual([`imports ${specifier}, which is private`])
  })
})
