/** A process of its own that works on a session without end: turns, compactions, clearings, undoing. It says what is done. */
import { writeSync } from 'node:fs'
import { openSession } from '@tidemark/core'
import { createFakeClock } from '@tidemark/core/testing'
import { createFileJournal } from 'tidemark'
import { clearOnce, compactOnce, promptOnce, undoOnce } from './session-work.ts'
import { SESSION, workHost } from './work-host.ts'

const [home = '', start = '0'] = process.argv.slice(2)
const journal = createFileJournal({ home })
const host = workHost({ journal, clock: createFakeClock(Number(start)) })

/** At once, so that nothing said is lost with the process. */
function say(line: string): void {
  writeSync(1, `${line}\n`)
}

const ACTS = [
  () => compactOnce(host),
  () => promptOnce(host, 'Read on.'),
  () => promptOnce(host, 'And on.'),
  () => clearOnce(host).catch(() => null),
  () => undoOnce(host),
  () => promptOnce(host, 'Once more.'),
]

say('ready')
for (let number = 0; ; number += 1) {
  await ACTS[number % ACTS.length]?.()
  const { position, view } = await openSession(journal, SESSION)
  say(`done ${position} ${view.acts.length}`)
}
