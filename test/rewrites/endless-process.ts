/** A process of its own: turns, compactions, clearings and undos on a session without end. It prints each position. */
import { writeSync } from 'node:fs'
import { readSessionState } from '@tidemark/core/engine/session-state'
import { createFakeClock } from '@tidemark/core/testing'
import { createFileJournal } from 'tidemark'
import { clearSession, compactSession, promptSession, undoSession } from './rewrite-acts.ts'
import { createRewriteHost, SESSION } from './rewrite-host.ts'

const [home = '', start = '0'] = process.argv.slice(2)
const journal = createFileJournal({ home })
const host = createRewriteHost({ journal, clock: createFakeClock(Number(start)) })

/** Writes synchronously, so that no line is lost when the process is killed. */
function print(line: string): void {
  writeSync(1, `${line}\n`)
}

const ACTS = [
  () => compactSession(host),
  () => promptSession(host, 'Read on.'),
  () => promptSession(host, 'And on.'),
  () => clearSession(host).catch(() => null),
  () => undoSession(host),
  () => promptSession(host, 'Once more.'),
]

print('ready')
for (let number = 0; ; number += 1) {
  await ACTS[number % ACTS.length]?.()
  const { position, view } = await readSessionState(journal, SESSION)
  print(`done ${position} ${view.rewrites.length}`)
}
