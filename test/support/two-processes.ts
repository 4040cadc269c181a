/** The next request of a session, as this process builds it and as a new one does that has only the file. */
import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createFileJournal } from 'tidemark'
import { listProgramArguments } from '../../packages/tidemark/test/child-process.ts'
import type { World } from './simulated-host.ts'
import { SimulatedSession, type SimulatedSessionOptions } from './simulated-session.ts'

export interface Moment {
  /** After how many calls. */
  readonly calls: number
  /** Milliseconds between the last response and the prompt. */
  readonly pauseMs: number
}

/** What the other process is told. `kind`: the name of a way of clearing, or `changing world`. */
export interface NextBodyInput {
  readonly home: string
  readonly now: number
  readonly kind: string
  readonly world: World
  readonly prompt: string
}

const PROMPT = 'What is left to do?'

/** One session, looked at in several moments (in ascending order of calls): the next body here, and elsewhere. */
export async function nextBodies(
  kind: string,
  options: SimulatedSessionOptions,
  moments: readonly Moment[],
): Promise<readonly { readonly here: string; readonly there: string }[]> {
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-two-processes-'))
  const home = join(folder, 'home')
  const journal = createFileJournal({ home })
  try {
    const session = new SimulatedSession({ ...options, journal })
    const inputs: NextBodyInput[] = []
    const here: string[] = []
    for (const [index, { calls, pauseMs }] of moments.entries()) {
      await session.until(calls)
      const [own, copy] = ['own', 'copy'].map((name) => join(folder, `${name}-${index}`)) as [string, string]
      for (const target of [own, copy]) cpSync(home, target, { recursive: true, filter: isNoLock })
      session.world.commits += 1
      const then = session.clock.now()
      session.clock.set(then + pauseMs)
      inputs.push({ home: copy, now: then + pauseMs, kind, world: { ...session.world }, prompt: PROMPT })
      here.push(await bodyHere(session, own))
      session.clock.set(then)
    }
    const there = bodiesElsewhere(inputs)
    return here.map((body, index) => ({ here: body, there: there[index] ?? '' }))
  } finally {
    await journal.close()
    rmSync(folder, { recursive: true, force: true, maxRetries: 10 })
  }
}

function isNoLock(path: string): boolean {
  return !path.endsWith('.lock')
}

/** From the state in memory, written on to a copy of the log: the session itself is left as it is. */
async function bodyHere(session: SimulatedSession, home: string): Promise<string> {
  const journal = createFileJournal({ home })
  const body = await session.nextBody(PROMPT, { ...session.host, journal })
  await journal.close()
  return body
}

function bodiesElsewhere(inputs: readonly NextBodyInput[]): readonly string[] {
  const file = fileURLToPath(new URL('next-body-process.ts', import.meta.url))
  const given = { input: JSON.stringify(inputs), encoding: 'utf8', maxBuffer: 2 ** 28 } as const
  return JSON.parse(execFileSync(process.execPath, listProgramArguments(file), given))
}
