/** A process of its own: opens a session from its file and says the body of the request that a prompt leads to. */

import { createFakeClock } from '@tidemark/core/testing'
import { createFileJournal } from 'tidemark'
import { LongTalk } from './long-talk.ts'
import { SMALL, sized, wayNamed } from './ways.ts'

const { home, now, way, prompt } = JSON.parse(process.argv[2] ?? '{}')
const journal = createFileJournal({ home })
const talk = new LongTalk(sized(wayNamed(way), SMALL), { journal, clock: createFakeClock(now) })
process.stdout.write(await talk.nextBody(prompt))
await journal.close()
