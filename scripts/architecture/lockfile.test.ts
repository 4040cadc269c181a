import { expect, it } from 'vitest'
import { checkLockfile, completeLockfile, type Lockfile } from './lockfile.ts'

const lock: Lockfile = {
  lockfileVersion: 3,
  packages: {
    '': { version: '0.1.0' },
    'node_modules/tool': {
      version: '2.0.0',
      dev: true,
      optionalDependencies: {
        '@tool/linux-x64-musl': '2.0.0',
        '@tool/darwin-arm64': '2.0.0',
        '@tool/linux-x64-gnu': '2.0.0',
      },
    },
    'node_modules/@tool/linux-x64-gnu': { version: '2.0.0', optional: true },
  },
}

it('finds optional packages without an entry', () => {
  expect(checkLockfile(lock).map(({ why }) => why)).toEqual([
    'has no entry node_modules/@tool/linux-x64-musl: npm run lock adds it',
    'has no entry node_modules/@tool/darwin-arm64: npm run lock adds it',
  ])
})

it('gives them one, and leaves the rest alone', () => {
  const complete = completeLockfile(lock)
  expect(complete).toEqual({
    ...lock,
    packages: {
      ...lock.packages,
      'node_modules/@tool/linux-x64-musl': {
        version: '2.0.0',
        cpu: ['x64'],
        libc: ['musl'],
        os: ['linux'],
        dev: true,
        optional: true,
      },
      'node_modules/@tool/darwin-arm64': {
        version: '2.0.0',
        cpu: ['arm64'],
        os: ['darwin'],
        dev: true,
        optional: true,
      },
    },
  })
  expect(Object.keys(complete.packages)[0]).toBe('')
  expect(checkLockfile(complete)).toEqual([])
  expect(JSON.stringify(completeLockfile(complete))).toBe(JSON.stringify(complete))
})

it('finds a download address, not a link to a package of the workspace', () => {
  const address = 'https://registry.example/a.tgz'
  const packages = {
    'node_modules/a': { version: '1.0.0', resolved: address },
    'node_modules/b': { resolved: 'packages/b', link: true },
  }
  expect(checkLockfile({ packages })).toEqual([
    { file: 'package-lock.json', line: 0, why: `holds a download address for node_modules/a: ${address}` },
  ])
})
