/** `npm run map`: gives new files their line in ARCHITECTURE.md, from their own headers. Read them, and say it better. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { headerOf } from './architecture/file-header.ts'
import { checkMap, isMapped, MAP_FILE } from './architecture/map.ts'
import { tell } from './architecture/source.ts'
import { filesUnder, readText } from './architecture/tree.ts'
import { updateMap } from './architecture/update-map.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const files = filesUnder(root).filter(isMapped)
const before = readText(root, MAP_FILE)
const after = updateMap(before, files, (path) => headerOf({ path, text: readText(root, path) }))
writeFileSync(join(root, MAP_FILE), after)
console.log(after === before ? `${MAP_FILE} is as it was.` : `${MAP_FILE} has been brought up to date.`)
const left = tell(checkMap(after, files))
if (left !== '') console.log(`Left for you:\n${left}`)
