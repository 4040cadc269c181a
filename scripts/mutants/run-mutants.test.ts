import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, expect, it, onTestFinished, vi } from 'vitest'
import { filesUnder, readText } from '../architecture/tree.ts'
import type { Mutant } from './mutant.ts'
import { type MutantResult, runMutants } from './run-mutants.ts'

const installed = fileURLToPath(new URL('../../node_modules', import.meta.url))
let root = ''

/** A repository in small: two packages, the second of which finds the first by its name. */
const FILES: Readonly<Record<string, string>> = {
  'package.json': '{ "type": "module" }',
  'vitest.config.ts': "export default { test: { include: ['packages/**/*.test.ts'] } }",
  'packages/sums/package.json': '{ "name": "@tiny/sums", "type": "module", "exports": "./src/sums.ts" }',
  'packages/sums/src/sums.ts': 'export const add = (a: number, b: number): number => a + b\n',
  'packages/user/package.json': '{ "name": "@tiny/user", "type": "module" }',
  'packages/user/src/total.test.ts': `import { add } from '@tiny/sums'
import { describe, expect, it } from 'vitest'
describe('law: order', () => it('does not matter', () => expect(add(1, 2)).toBe(add(2, 1))))
describe('law: zero', () => it('changes nothing', () => expect(add(2, 0)).toBe(2)))
`,
  'packages/user/src/red.test.ts':
    "import { it } from 'vitest'\nit('is red', () => { throw new Error('red') })\n",
}

beforeAll(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'tidemark-tiny-')))
  for (const [path, text] of Object.entries(FILES)) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }
  mkdirSync(join(root, 'node_modules', '@tiny'), { recursive: true })
  symlinkSync(join(installed, 'vitest'), join(root, 'node_modules', 'vitest'), 'junction')
  symlinkSync(join(root, 'packages', 'sums'), join(root, 'node_modules', '@tiny', 'sums'), 'junction')
})

afterEach(() => vi.unstubAllEnvs())
afterAll(() => rmSync(root, { recursive: true, force: true }))

const mutant = (name: string, given: Partial<Mutant>): Mutant => ({
  name,
  law: 'law: order',
  file: 'packages/sums/src/sums.ts',
  find: 'a + b',
  replace: 'a - b',
  tests: ['total'],
  ...given,
})

async function run(mutants: readonly Mutant[], lines: string[] = []): Promise<MutantResult> {
  const limits = { timeoutMs: 60_000, signal: new AbortController().signal }
  return runMutants({ root, mutants, limits, progress: (line) => lines.push(line) })
}

it('tells noticed, survived, unexpected, broken and stale apart and leaves the work tree alone', async () => {
  const copies = realpathSync(mkdtempSync(join(tmpdir(), 'tidemark-copies-')))
  onTestFinished(() => rmSync(copies, { recursive: true, force: true }))
  vi.stubEnv('TMPDIR', copies)
  const lines: string[] = []
  const result = await run(
    [
      mutant('subtracts', {}),
      mutant('twists', { replace: '(a * 3 + b * 3) / 3' }),
      mutant('counts-one-more', { replace: 'a + b + 1' }),
      mutant('does-not-load', { replace: 'a +' }),
      mutant('has-moved', { find: 'a * b' }),
    ],
    lines,
  )
  expect(result.ok).toBe(false)
  expect(result.verdicts?.map(({ mutant: { name }, kind, noticedBy }) => [name, kind, noticedBy])).toEqual([
    ['subtracts', 'noticed', ['law: order > does not matter']],
    ['twists', 'survived', []],
    ['counts-one-more', 'unexpected', ['law: zero > changes nothing']],
    ['does-not-load', 'broken', []],
    ['has-moved', 'stale', []],
  ])
  expect(lines).toHaveLength(6)
  expect(lines.at(-1)).toMatch(/^5\/5 /)
  expect(Object.fromEntries(filesUnder(root).map((path) => [path, readText(root, path)]))).toEqual(FILES)
  expect(readdirSync(copies).filter((name) => name.startsWith('tidemark-'))).toEqual([])
})

it('says nothing about mutants while the tests fail without any', async () => {
  const result = await run([mutant('subtracts', { tests: ['total', 'red'] })])
  expect(result).toEqual({ ok: false, verdicts: null, failing: ['is red'] })
})

it('stops at once when the person does', async () => {
  const stopped = AbortSignal.abort(new Error('stopped'))
  const limits = { timeoutMs: 60_000, signal: stopped }
  const run = runMutants({ root, mutants: [mutant('subtracts', {})], limits, progress: () => {} })
  await expect(run).rejects.toThrow('stopped')
})
