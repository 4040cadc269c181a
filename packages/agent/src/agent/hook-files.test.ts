import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { findCommandFiles, splitHooksForTrust } from './hook-files.ts'

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
  ['pnpm --dir sub check', ['package.json', 'sub/package.json']],
  ['cd sub && npm test', ['package.json', 'sub/package.json']],
  ['make check', ['Makefile']],
  ['make -C sub check', ['Makefile', 'sub/Makefile']],
  ['make -Csub -fown.mk', ['Makefile', 'sub/Makefile', 'sub/own.mk']],
  ['python3 -m pkg.check --all', ['pkg/__init__.py', 'pkg/check.py']],
  ['uv run -m pkg.tool', ['pkg/__init__.py', 'pkg/tool/__init__.py', 'pkg/tool/__main__.py']],
  ['python3 -m json.tool', []],
  ['npx eslint', []],
])('%s: a file that defines what a name runs is part of it', async (command, files) => {
  for (const [path, text] of Object.entries(FILES)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  const [part] = await splitHooksForTrust({ Stop: [{ hooks: [{ command }] }] }, folder)
  expect(part?.item.files?.map(({ path }) => path) ?? []).toEqual(files)
})

it.each([
  './check.sh',
  'check.sh',
  'bash check.sh',
  'bash -eu ./check.sh --all',
  'sh -x "./check.sh"',
  "sh './check.sh'",
  './check.sh > /dev/null 2>&1',
  'cat < check.sh | bash',
  'cat check.sh | bash',
  'bash < ./check.sh',
  '. ./check.sh',
  'source ./check.sh; run_checks',
  'timeout 10 ./check.sh',
  'timeout -k 5 10 bash ./check.sh',
  'nice ./check.sh',
  'nice -n 5 ./check.sh',
  'ionice -c 3 ./check.sh',
  'nohup ./check.sh &',
  'setsid ./check.sh',
  'stdbuf -oL ./check.sh',
  'time -p ./check.sh',
  'env ./check.sh',
  'env -u X ./check.sh',
  'env -i PATH=/bin ./check.sh',
  "env -S './check.sh --all'",
  'sudo -n ./check.sh',
  'flock .lock ./check.sh',
  'xargs -n1 ./check.sh',
  'A=1 B="2 3" ./check.sh',
  'SCRIPT=./check.sh; $SCRIPT',
  'eval "./check.sh --all"',
  "bash -c './check.sh --all'",
  'if [ -x check.sh ]; then ./check.sh; fi',
  '[ -f check.sh ] && ./check.sh || true',
  'cd deep && cd er && ../../check.sh',
  '"$CLAUDE_PROJECT_DIR"/check.sh',
  '"$CLAUDE_PROJECT_DIR/check.sh"',
  '$TIDEMARK_PROJECT_DIR/check.sh',
  ['"$', '{CLAUDE_PROJECT_DIR}/check.sh"'].join(''),
  ['"$', '{CLAUDE_PROJECT_DIR:-.}"/check.sh'].join(''),
  ['$', '{CLAUDE_PROJECT_DIR:-$PWD}/check.sh'].join(''),
  '$PWD/check.sh',
  '"$(git rev-parse --show-toplevel)/check.sh"',
  '$(git rev-parse --show-toplevel)/check.sh',
  '`pwd`/check.sh',
  'node --import ./check.sh x.mjs',
  'node --require=./check.sh x.mjs',
  'PATH=.:$PATH check.sh',
  'test -f ./check.sh && (cd / && ~+/check.sh; true) ; ./check.sh',
  './che\\ck.sh',
  './ch"ec"k.sh',
])('the script of the hook is part of it, however the hook calls it: %s', async (command) => {
  mkdirSync(join(folder, 'deep/er'), { recursive: true })
  writeFileSync(join(folder, 'check.sh'), 'true')
  const [part] = await splitHooksForTrust({ Stop: [{ hooks: [{ command }] }] }, folder)
  expect(part?.item.files?.map(({ path }) => path)).toContain('check.sh')
})

it.each([
  "'./my check.sh'",
  './my\\ check.sh',
  '"$CLAUDE_PROJECT_DIR/my check.sh"',
  'timeout 5 "my check.sh"',
])('a script with a blank in its name is part of the hook: %s', async (command) => {
  writeFileSync(join(folder, 'my check.sh'), 'true')
  const [part] = await splitHooksForTrust({ Stop: [{ hooks: [{ command }] }] }, folder)
  expect(part?.item.files?.map(({ path }) => path)).toEqual(['my check.sh'])
})

it('a database that a server is given is no part of what it runs, and a program is', async () => {
  writeFileSync(join(folder, 'data.db'), 'SQLite\0')
  writeFileSync(join(folder, 'tool'), 'ELF\0', { mode: 0o755 })
  const files = await findCommandFiles({ command: './tool', args: ['--db', './data.db'] }, folder)
  expect(files.map(({ path }) => path)).toEqual([join(folder, 'tool')])
})
