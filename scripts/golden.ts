/** `npm run golden`: writes the golden hashes as they are now. Read the difference before committing it. */
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { differences, observeAll } from '../test/golden/observe.ts'

const path = fileURLToPath(new URL('../test/golden/golden.json', import.meta.url))
const before = JSON.parse(readFileSync(path, 'utf8'))
const now = await observeAll(process.env.GOLDEN_DUMP)
writeFileSync(path, `${JSON.stringify(now, null, 2)}\n`)
const changes = differences(before, now)
console.log(changes.length === 0 ? 'The golden file is as it was.' : changes.join('\n'))
