/** A process of its own: a client that is killed while a request waits for its response. Prints its messages before. */
import { writeSync } from 'node:fs'
import { ClientAgent, createDropInWorld } from './client-agent.ts'

const world = createDropInWorld({ home: process.argv[2] ?? '' })
const requests: unknown[] = []
const fetch = world.tide.fetch({
  session: 'talk',
  fetch: (input, init) => {
    requests.push(input)
    if (requests.length <= 3) return world.upstream(input, init)
    writeSync(1, `${JSON.stringify(host.messages)}\n`)
    process.kill(process.pid, 'SIGKILL')
    return new Promise(() => {})
  },
})
const host = new ClientAgent(fetch, world.coder)
await host.ask('Mend the sums.')
