import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, expect, it } from 'vitest'

const bin = fileURLToPath(new URL('../bin/tidemark.mjs', import.meta.url))
const folder = realpathSync(mkdtempSync(join(tmpdir(), 'tidemark-bin-')))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function run(file: string, ...options: readonly string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [...options, file, '--version'], {
    encoding: 'utf8',
  })
  return { status, stdout, stderr }
}

it.each(['18.20.4', '22.11.0'])('tells Node %s that it is too old', (version) => {
  const pretend = `Object.defineProperty(process.versions, 'node', { value: '${version}' })`
  expect(run(bin, '--import', `data:text/javascript,${encodeURIComponent(pretend)}`)).toEqual({
    status: 1,
    stdout: '',
    stderr: `tidemark needs Node 22.12 or newer; this is Node ${version}.\n`,
  })
})

it('says how to build where the build is absent', () => {
  mkdirSync(join(folder, 'bin'))
  copyFileSync(bin, join(folder, 'bin', 'tidemark.mjs'))
  expect(run(join(folder, 'bin', 'tidemark.mjs'))).toEqual({
    status: 1,
    stdout: '',
    stderr: 'tidemark is not built: run `npm ci` or `npm run build` in its repository.\n',
  })
})
