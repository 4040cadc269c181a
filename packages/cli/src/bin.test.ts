import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
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

/** Node options that make the process report `version` as its own. */
function pretendNode(version: string): readonly string[] {
  const code = `Object.defineProperty(process.versions, 'node', { value: '${version}' })`
  return ['--import', `data:text/javascript,${encodeURIComponent(code)}`]
}

/** A package in a folder of its own: the bin, and the files given. Returns the path of the bin. */
function writePackage(name: string, files: Readonly<Record<string, string>>): string {
  const home = join(folder, name)
  for (const place of ['bin', 'src', 'dist']) mkdirSync(join(home, place), { recursive: true })
  for (const [path, text] of Object.entries(files)) writeFileSync(join(home, path), text)
  copyFileSync(bin, join(home, 'bin', 'tidemark.mjs'))
  return join(home, 'bin', 'tidemark.mjs')
}

/** Sources that import a package by name, whose build is missing. */
const sources = {
  'package.json': JSON.stringify({
    name: 'made-up',
    type: 'module',
    exports: { './text': { 'tidemark-source': './src/text.ts', default: './dist/text.mjs' } },
  }),
  'src/text.ts': `export const text: string = 'from source'\n`,
  'src/index.ts': `import { text } from 'made-up/text'\nexport const run = (): void => console.log(text)\n`,
}

it.each(['18.20.4', '20.19.0', '22.12.0', '22.18.0'])('reports that Node %s is too old', (version) => {
  expect(run(bin, ...pretendNode(version))).toEqual({
    status: 1,
    stdout: '',
    stderr: `tidemark needs Node 22.19 or newer; this is Node ${version}.\n`,
  })
})

it('explains how to build if neither build nor sources exist', () => {
  expect(run(writePackage('empty', {}))).toEqual({
    status: 1,
    stdout: '',
    stderr: 'tidemark is not built: run `npm ci` or `npm run build` in its repository.\n',
  })
})

it('runs the sources if nothing is built', () => {
  expect(run(writePackage('sources', sources))).toEqual({ status: 0, stdout: 'from source\n', stderr: '' })
})

it('runs the build if there is one', () => {
  const build = { 'dist/index.mjs': `export const run = () => console.log('from the build')\n` }
  expect(run(writePackage('built', { ...sources, ...build }))).toEqual({
    status: 0,
    stdout: 'from the build\n',
    stderr: '',
  })
})

it.each(['23.11.0', '24.4.1'])('reports that Node %s cannot run the sources', (version) => {
  expect(run(writePackage(`sources-${version}`, sources), ...pretendNode(version))).toEqual({
    status: 1,
    stdout: '',
    stderr: `tidemark is not built, and its sources need Node 22.19, 24.5 or newer; this is Node ${version}.\n`,
  })
})

it('explains what to do if a package is missing', () => {
  const broken = { 'src/index.ts': `import 'made-up-and-absent'\n` }
  expect(run(writePackage('incomplete', { ...sources, ...broken }))).toEqual({
    status: 1,
    stdout: '',
    stderr: 'tidemark is not installed completely: install it again (in its repository: `npm ci`).\n',
  })
})
