/** The command of a checkout says when its build is older than the sources. */
import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'

const COMMAND = fileURLToPath(new URL('../../../bin/tidemark.mjs', import.meta.url))
const BUILT = 'packages/cli/dist/index.mjs'
const NOTICE = 'tidemark: the build is older than the sources; `npm run build` in the checkout renews it.\n'

/** Runs the command in a checkout with these files, each with its time in minutes. */
function run(times: Readonly<Record<string, number>>): readonly string[] {
  const root = mkdtempSync(join(tmpdir(), 'tidemark-build-'))
  onTestFinished(() => rmSync(root, { recursive: true, force: true, maxRetries: 10 }))
  const write = (path: string, text: string): string => {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
    return join(root, path)
  }
  write('packages/cli/bin/tidemark.mjs', "console.log('ran')")
  for (const [path, minutes] of Object.entries(times)) utimesSync(write(path, ''), minutes * 60, minutes * 60)
  const command = write('bin/tidemark.mjs', '')
  copyFileSync(COMMAND, command)
  const { stdout, stderr } = spawnSync(process.execPath, [command], { encoding: 'utf8' })
  return [stdout, stderr]
}

it.each<[string, Readonly<Record<string, number>>, string]>([
  ['says so where a source is newer than the build', { [BUILT]: 5, 'packages/core/src/a/b.ts': 6 }, NOTICE],
  ['says nothing where the build is newer', { [BUILT]: 5, 'packages/core/src/a/b.ts': 4 }, ''],
  ['says nothing where only a test is newer', { [BUILT]: 5, 'packages/core/src/b.test.ts': 6 }, ''],
  ['says nothing where nothing is built', { 'packages/core/src/b.ts': 6 }, ''],
])('%s', (_, times, expected) => {
  expect(run({ 'packages/cli/src/index.ts': 1, ...times })).toEqual(['ran\n', expected])
})
