/** A process of its own: an agent on one of the APIs, as a session or as a client under `fetch`. Prints what it was answered. */
import { writeSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import { createKillWorld, type KillInput } from './kill-world.ts'

const input: KillInput = JSON.parse(process.argv[2] ?? '{}')
const world = createKillWorld(input)
/** Writes synchronously, so that no line is lost when the process is killed. */
const print = (line: string): void => void writeSync(1, `${line}\n`)

/** Streams come in small pieces with pauses, so that a kill comes in the middle of one. */
async function* drip(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const chunk of body)
    for (let at = 0; at < chunk.length; at += 400) {
      yield chunk.subarray(at, at + 400)
      await wait(1)
    }
}

const upstream: typeof globalThis.fetch = async (url, init) => {
  const response = await world.simulator.fetch(url, init)
  print('asked')
  if (response.body === null) return response
  return new Response(ReadableStream.from(drip(response.body)), response)
}

await world.work(upstream, print)
