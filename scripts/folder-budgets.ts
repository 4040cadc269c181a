/** Writes the lines of each source folder to test/folder-budgets.json, as its budget: `npm run budgets`, with a decision. */
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { countFolderLines } from './architecture/sizes.ts'
import { filesUnder, readSources } from './architecture/tree.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const sources = readSources(
  root,
  filesUnder(root).filter((path) => /^packages\/[^/]+\/(src|testing)\/.*\.tsx?$/.test(path)),
)
/** Room for repairs that need no decision. */
const SPARE = 1.02
const budgets = [...countFolderLines(sources)].map(([folder, lines]) => [
  folder,
  Math.ceil((lines * SPARE) / 10) * 10,
])
writeFileSync(`${root}/test/folder-budgets.json`, `${JSON.stringify(Object.fromEntries(budgets), null, 2)}\n`)
