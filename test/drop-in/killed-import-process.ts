/**
 * A process of its own: a client joins with a long history, and its process is killed after so many writes to the log. Prints
 * the uuids of the records that it was told to be in the log.
 */
import { writeSync } from 'node:fs'
import { createDropInWorld } from './client-agent.ts'

const [, , home = '', body = '', writes = '1'] = process.argv
let appended = 0
const { tide, upstream } = createDropInWorld({
  home,
  onEvent(event) {
    if (event.type !== 'appended') return
    appended += 1
    for (const { uuid } of event.records) writeSync(1, `${uuid}\n`)
    if (appended === Number(writes)) process.kill(process.pid, 'SIGKILL')
  },
})
await tide.fetch({ session: 'talk', fetch: upstream })('http://api/v1/messages', { method: 'POST', body })
