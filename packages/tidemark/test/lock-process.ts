/** Locks a session on the command `go` and holds it until it is killed or its input ends. Never releases it itself. */
import { createInterface } from 'node:readline'
import { createFileJournal } from '../src/storage/file-journal.ts'

const [home = ''] = process.argv.slice(2)
const journal = createFileJournal({ home, program: 'racer' })
console.log('ready')
for await (const command of createInterface({ input: process.stdin })) {
  if (command !== 'go') continue
  const taken = await journal.acquire('s')
  console.log(taken.ok ? 'won' : `lost ${taken.message}`)
}
