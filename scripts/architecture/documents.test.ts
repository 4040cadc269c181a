import { expect, it } from 'vitest'
import { checkLinks, checkNamedFiles, checkNamedFolders, checkScripts, checkSnippets } from './documents.ts'

it('finds a script that is not there', () => {
  const text = 'Run `npm run bench`,\nthen `npm run dance` and npm test.'
  expect(checkScripts({ path: 'README.md', text }, new Set(['bench']))).toEqual([
    { file: 'README.md', line: 2, why: 'npm run dance: there is no such script' },
  ])
})

it('finds a link that leads nowhere', () => {
  const text = '[a](b.md) [c](../d.md#part)\n[e](docs) [f](https://example.com/x) [g](gone.md) [h](#here)'
  const paths = new Set(['notes/b.md', 'd.md', 'notes/docs/x.md'])
  expect(checkLinks({ path: 'notes/README.md', text }, paths)).toEqual([
    { file: 'notes/README.md', line: 2, why: 'links to gone.md, which is not there' },
  ])
})

it('finds a name that is not public', () => {
  const snippet =
    "import { viewOf, gone as here } from 'tidemark'\nimport { y } from '@tidemark/core'\nimport { x } from 'elsewhere'"
  const text = `# Use\n\n\`\`\`ts\n${snippet}\n\`\`\`\n`
  expect(checkSnippets({ path: 'README.md', text }, { tidemark: ['viewOf'] })).toEqual([
    { file: 'README.md', line: 3, why: 'imports gone, which tidemark does not export' },
    { file: 'README.md', line: 3, why: 'imports y, which @tidemark/core does not export' },
  ])
})

it('finds a folder that is named and not there, and one that is there and not named', () => {
  const text = 'Records: `core/log/`.\nGone: `core/desk/`. Not a package: `docs/decisions/`.'
  const paths = ['packages/core/src/log/a.ts', 'packages/core/src/turn/b.ts', 'packages/core/src/index.ts']
  expect(checkNamedFolders({ path: 'ARCHITECTURE.md', text }, paths)).toEqual([
    { file: 'ARCHITECTURE.md', line: 2, why: 'names the folder core/desk/, which is not there' },
    { file: 'ARCHITECTURE.md', line: 0, why: 'does not name the folder core/turn/' },
  ])
})

it('finds a source file that is named and not there', () => {
  const text = '1. `core/turn/turn.ts` → `runTurn`\n2. `core/desk.ts → open`, `test/laws.ts`'
  const paths = new Set(['packages/core/src/turn/turn.ts', 'test/laws.ts'])
  expect(checkNamedFiles({ path: 'ARCHITECTURE.md', text }, paths)).toEqual([
    { file: 'ARCHITECTURE.md', line: 2, why: 'names core/desk.ts, which is not there' },
  ])
})
