import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { listHookParts } from './hook-files.ts'

let folder = ''

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'tidemark-hook-files-')))
})

afterEach(() => {
  rmSync(folder, { recursive: true, force: true })
})

const SCRIPTS = JSON.stringify({
  scripts: {
    lint: 'node tools/lint.mjs',
    prelint: 'npm run first',
    first: 'sh ./first.sh',
    other: 'sh ./o.sh',
  },
})
const FILES = {
  'package.json': SCRIPTS,
  'tools/lint.mjs': '',
  'first.sh': '',
  'o.sh': '',
  Makefile: 'check:\n\ttrue\n',
  'sub/Makefile': 'check:\n\ttrue\n',
  'sub/package.json': '{}',
  'sub/own.mk': '',
  'pkg/__init__.py': '',
  'pkg/check.py': '',
  'pkg/tool/__init__.py': '',
  'pkg/tool/__main__.py': '',
}
const NPM = ['first.sh', 'package.json', 'tools/lint.mjs']
it.each<[string, readonly string[]]>([
  ['npm run lint', NPM],
  ['CI=1 npm run --silent lint -- src/a.ts', NPM],
  ['node --run lint', NPM],
  ['npm test', ['package.json']],
  ['pnpm --dir sub check', ['sub/package.json']],
  ['cd sub && npm test', ['package.json', 'sub/package.json']],
  ['make check', ['Makefile']],
  ['make -C sub check', ['sub/Makefile']],
  ['make -Csub -fown.mk', ['sub/own.mk']],
  ['python3 -m pkg.check --all', ['pkg/__init__.py', 'pkg/check.py']],
  ['uv run -m pkg.tool', ['pkg/__init__.py', 'pkg/tool/__init__.py', 'pkg/tool/__main__.py']],
  ['python3 -m json.tool', []],
  ['npx eslint', []],
])('%s: a file that defines what a name runs is part of it', async (command, files) => {
  for (const [path, text] of Object.entries(FILES)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  const [part] = await listHookParts({ Stop: [{ hooks: [{ command }] }] }, folder)
  expect(part?.item.files?.map(({ path }) => path) ?? []).toEqual(files)
})
