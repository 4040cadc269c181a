/** A process of its own: opens sessions from their files and prints the next request body of each, as a JSON list. */
import { text } from 'node:stream/consumers'
import { createFakeClock } from '@tidemark/core/testing'
import { createFileJournal } from 'tidemark'
import { SMALL, sized, wayNamed } from '../clearing/ways.ts'
import { changingWorld } from '../first-turn/changing-world.ts'
import { SimulatedSession, type SimulatedSessionOptions } from './simulated-session.ts'
import type { NextBodyInput } from './two-processes.ts'

function optionsFor({ kind, world }: NextBodyInput): SimulatedSessionOptions {
  return kind === 'changing world' ? { ...changingWorld({ ttl: '5m' }), world } : sized(wayNamed(kind), SMALL)
}

const inputs: readonly NextBodyInput[] = JSON.parse(await text(process.stdin))
const bodies: string[] = []
for (const input of inputs) {
  const journal = createFileJournal({ home: input.home })
  const session = new SimulatedSession({ ...optionsFor(input), journal, clock: createFakeClock(input.now) })
  bodies.push(await session.nextBody(input.prompt))
  await journal.close()
}
process.stdout.write(JSON.stringify(bodies))
