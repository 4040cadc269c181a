/** `npm run names`: writes the public names as they are now. Read the difference before committing it. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import {
  checkPublicNames,
  isPublicEntry,
  type PublicNames,
  publicNames,
} from './architecture/public-names.ts'
import { readEntries, readSources, readText } from './architecture/tree.ts'

const LIST = 'test/public-names.json'
const root = fileURLToPath(new URL('..', import.meta.url))
const entries = new Map([...readEntries(root)].filter(([entry]) => isPublicEntry(entry)))
const now = publicNames(readSources(root, [...entries.values()]), entries)
const before: PublicNames = JSON.parse(readText(root, LIST))
const changes = checkPublicNames(now, before)
writeFileSync(join(root, LIST), `${JSON.stringify(now, null, 2)}\n`)
console.log(changes.length === 0 ? `${LIST} is as it was.` : `${LIST}:\n${changes.join('\n')}`)
