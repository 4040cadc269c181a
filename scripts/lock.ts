/** `npm run lock`: gives the lockfile the entries for other platforms that the registry at hand did not offer. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { completeLockfile } from './architecture/lockfile.ts'
import { readText } from './architecture/tree.ts'

const FILE = 'package-lock.json'
const root = fileURLToPath(new URL('..', import.meta.url))
const before = readText(root, FILE)
const after = `${JSON.stringify(completeLockfile(JSON.parse(before)), null, 2)}\n`
if (after !== before) writeFileSync(join(root, FILE), after)
console.log(after === before ? `${FILE} is as it was.` : `${FILE} has been completed.`)
