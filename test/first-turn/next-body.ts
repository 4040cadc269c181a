/** A process of its own: opens a session from its file and says the body of the request that a prompt leads to. */
import { openSession } from '@tidemark/core'
import { createFakeClock } from '@tidemark/core/testing'
import { createFileJournal } from 'tidemark'
import { SESSION, Talk } from './talk.ts'

const { home, now, world, prompt } = JSON.parse(process.argv[2] ?? '{}')
const journal = createFileJournal({ home })
const talk = new Talk({ journal, ttl: '5m', clock: createFakeClock(now), world })
process.stdout.write(await talk.nextBody(await openSession(journal, SESSION), prompt))
await journal.close()
