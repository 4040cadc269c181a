import { spawnSync } from 'node:child_process'
import { mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, expect, it } from 'vitest'

const installed = fileURLToPath(new URL('../node_modules', import.meta.url))
const reporter = fileURLToPath(new URL('./totals-reporter.ts', import.meta.url))
const folder = realpathSync(mkdtempSync(join(tmpdir(), 'tidemark-totals-')))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

it('ends the run with the real numbers: what could not be loaded counts as failed', () => {
  const file = (name: string, text: string) => writeFileSync(join(folder, name), text)
  symlinkSync(installed, join(folder, 'node_modules'), 'junction')
  file(
    'a.test.ts',
    "import { it } from 'vitest'\nit('a', () => {})\nit('b', () => {})\nit.skip('c', () => {})",
  )
  file('b.test.ts', "import { it } from 'vitest'\nit('d', () => { throw new Error('d') })")
  file('c.test.ts', "throw new Error('does not load')")
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('VITEST')))
  const args = [
    join(installed, 'vitest', 'vitest.mjs'),
    'run',
    '--reporter=default',
    `--reporter=${reporter}`,
  ]
  const { stdout, status } = spawnSync(process.execPath, args, { cwd: folder, env, encoding: 'utf8' })
  expect([stdout.trimEnd().split('\n').at(-1), status]).toEqual(['2 passed, 2 failed', 1])
})
