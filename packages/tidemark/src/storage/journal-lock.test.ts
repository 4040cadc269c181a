import { createFakeClock, type FakeClock } from '@tidemark/core/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { systemIds } from '../platform/node-ports.ts'
import type { ProcessPort } from '../platform/processes.ts'
import { createSystemError } from '../testing/crash-file-node.ts'
import { type CrashFileSystem, createCrashFileSystem } from '../testing/crash-file-system.ts'
import { createFakeProcessTable } from '../testing/fake-machine.ts'
import { createFileAtomic, readFileSnapshot } from './atomic-file.ts'
import type { FileSystem } from './file-system.ts'
import {
  decodeLockFile,
  type HeldLock,
  type LockAttempt,
  type LockOptions,
  takeLock,
} from './journal-lock.ts'

const PATH = '/s.lock'
const MINUTE_MS = 60_000

interface Scene {
  readonly clock: FakeClock
  readonly files: CrashFileSystem
  place(processes: ProcessPort, files?: FileSystem): LockOptions
}

function scene(): Scene {
  const clock = createFakeClock()
  const files = createCrashFileSystem({ now: () => clock.now() })
  const settings = {
    clock,
    ids: systemIds,
    program: 'tester',
    staleLockMs: 10 * MINUTE_MS,
    session: 's',
    path: PATH,
  }
  return { clock, files, place: (processes, port = files) => ({ ...settings, processes, files: port }) }
}

async function held(attempt: Promise<LockAttempt>): Promise<HeldLock> {
  const taken = await attempt
  if (!taken.ok) throw new Error(taken.message)
  return taken.lock
}

async function messageOf(attempt: Promise<LockAttempt>): Promise<string | null> {
  const taken = await attempt
  return taken.ok ? null : taken.message
}

async function holderAt(files: FileSystem): Promise<number | undefined> {
  const file = await readFileSnapshot(files, PATH)
  return file === null ? undefined : decodeLockFile(Buffer.from(file.bytes).toString())?.pid
}

/** Except for drafts of processes that died while writing them. */
async function namesIn(files: FileSystem): Promise<readonly string[]> {
  return (await files.list('/')).map(({ name }) => name).filter((name) => !name.startsWith('.draft-'))
}

describe('a lock', () => {
  it('belongs to one writer until it is released, and leaves no file behind', async () => {
    const { files, place } = scene()
    const machine = createFakeProcessTable()
    const [one, other] = [place(machine.start()), place(machine.start())]
    const lock = await held(takeLock(one))
    expect(await messageOf(takeLock(other))).toBe(
      'Session "s" is open for writing by tester (process 1 on wren) since 2026-01-01T00:00:00.000Z: close it there first, or work in another session.',
    )
    expect(await lock.isStillHeld()).toBe(true)
    await lock.release()
    expect(await namesIn(files)).toEqual([])
    await (await held(takeLock(other))).release()
    expect(await namesIn(files)).toEqual([])
  })

  it('of a dead process is taken over, and the old holder notices', async () => {
    const { files, place } = scene()
    const machine = createFakeProcessTable()
    const [one, other] = [machine.start(), machine.start()]
    const old = await held(takeLock(place(one)))
    machine.end(one)
    const lock = await held(takeLock(place(other)))
    expect([await old.isStillHeld(), await lock.isStillHeld()]).toEqual([false, true])
    expect(await namesIn(files)).toEqual(['s.lock'])
    await old.release()
    expect(await holderAt(files)).toBe(other.own.pid)
  })

  it('of another machine is taken over after a long silence', async () => {
    const { clock, place } = scene()
    const far = createFakeProcessTable('far').start()
    const near = createFakeProcessTable('near').start()
    const lock = await held(takeLock(place(far)))
    await clock.advance(9 * MINUTE_MS)
    expect(await messageOf(takeLock(place(near)))).toBe(
      'Session "s" is open for writing by tester (process 1 on far) since 2026-01-01T00:00:00.000Z: close it there first; if that writer is gone, the session is free after 2026-01-01T00:10:00.000Z, or at once if you remove /s.lock.',
    )
    lock.renew()
    await clock.advance(9 * MINUTE_MS)
    expect(await messageOf(takeLock(place(near)))).not.toBe(null)
    await clock.advance(2 * MINUTE_MS)
    expect(await messageOf(takeLock(place(near)))).toBe(null)
    expect(await lock.isStillHeld()).toBe(false)
  })

  it('that was created although the call failed is recognized by its token', async () => {
    const { files, place } = scene()
    const link = async (from: string, to: string) => (await files.link(from, to)) && false
    const lock = await held(takeLock(place(createFakeProcessTable().start(), { ...files, link })))
    expect(await lock.isStillHeld()).toBe(true)
  })

  it('that was removed is no longer held', async () => {
    const { files, place } = scene()
    const lock = await held(takeLock(place(createFakeProcessTable().start())))
    await files.remove(PATH)
    expect(await lock.isStillHeld()).toBe(false)
    await lock.release()
  })

  it.each([
    '',
    '{"pid":1',
    '\0\0\0',
    '{"pid":1,"host":"h","token":"../x","since":"","program":""}',
    '{"pid":1,"host":"h","token":"x","since":"\\n","program":""}',
  ])('without readable content (%j) expires soon', async (content) => {
    const { clock, files, place } = scene()
    await createFileAtomic(files, PATH, Buffer.from(content))
    const near = place(createFakeProcessTable().start())
    expect(await messageOf(takeLock(near))).toBe(
      'Session "s" is open for writing by an unknown writer: close it there first; if that writer is gone, the session is free after 2026-01-01T00:00:10.000Z, or at once if you remove /s.lock.',
    )
    await clock.advance(11_000)
    expect(await messageOf(takeLock(near))).toBe(null)
    expect(await namesIn(files)).toEqual(['s.lock'])
  })

  it('stays with a slow holder that shows at the last moment that it is alive', async () => {
    const { clock, files, place } = scene()
    await held(takeLock(place(createFakeProcessTable('far').start())))
    await clock.advance(11 * MINUTE_MS)
    // The holder touches its lock after it was found silent and before it would be replaced.
    let links = 0
    files.interfere(({ kind }) => {
      links += kind === 'link' ? 1 : 0
      if (kind === 'link' && links === 2) files.touch(PATH, clock.now())
      return undefined
    })
    expect(await messageOf(takeLock(place(createFakeProcessTable('near').start())))).not.toBe(null)
  })

  it.each(['link', 'rename', 'remove'] as const)(
    'is not lost when the process that takes it over dies at any %s',
    async (kind) => {
      for (let fatal = 1; fatal <= 6; fatal += 1) {
        const { files, place } = scene()
        const machine = createFakeProcessTable()
        const [first, heir, next] = [machine.start(), machine.start(), machine.start()]
        await held(takeLock(place(first)))
        machine.end(first)
        files.interfere(dyingAt(kind, fatal))
        await takeLock(place(heir)).catch(() => null)
        files.interfere(null)
        machine.end(heir)
        await held(takeLock(place(next)))
        expect(await holderAt(files)).toBe(next.own.pid)
      }
    },
  )
})

/** Every operation fails from the `fatal`th operation of that kind on. */
function dyingAt(kind: string, fatal: number): Parameters<CrashFileSystem['interfere']>[0] {
  let seen = 0
  return (operation) => {
    seen += operation.kind === kind || seen >= fatal ? 1 : 0
    return seen >= fatal ? { error: createSystemError('EIO', operation.path) } : undefined
  }
}

/** Every file operation waits for its turn in an order that the test chooses. */
function scheduled(files: FileSystem, scheduler: fc.Scheduler): FileSystem {
  const inTurn = async <T>(act: () => Promise<T>): Promise<T> => {
    await scheduler.schedule(Promise.resolve())
    return act()
  }
  return {
    ...files,
    open: (...given) => inTurn(() => files.open(...given)),
    rename: (...given) => inTurn(() => files.rename(...given)),
    link: (...given) => inTurn(() => files.link(...given)),
    remove: (...given) => inTurn(() => files.remove(...given)),
  }
}

describe('many processes at once', () => {
  it('find the same dead writer: exactly one takes over, in any order of operations', async () => {
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), fc.integer({ min: 0, max: 2 }), async (scheduler, deadClaims) => {
        const { files, place } = scene()
        const machine = createFakeProcessTable()
        await leaveDead({ files, place }, machine, deadClaims)
        const port = scheduled(files, scheduler)
        const starters = Array.from({ length: 4 }, () => machine.start())
        const attempts = starters.map((processes) => takeLock(place(processes, port)))
        await scheduler.waitFor(Promise.all(attempts))
        const winners = (await Promise.all(attempts)).map((attempt) => attempt.ok)
        expect(winners.filter(Boolean)).toEqual([true])
        expect(await holderAt(files)).toBe(starters[winners.indexOf(true)]?.own.pid)
        expect(await namesIn(files)).toEqual(['s.lock'])
      }),
      { numRuns: 150 },
    )
  })

  it('come and go: never two hold the lock, and none removes another’s lock', async () => {
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), async (scheduler) => {
        const { files, place } = scene()
        const machine = createFakeProcessTable()
        await leaveDead({ files, place }, machine, 1)
        const port = scheduled(files, scheduler)
        let holders = 0
        const visit = async (processes: ProcessPort) => {
          const attempt = await takeLock(place(processes, port))
          if (!attempt.ok) return
          holders += 1
          expect(holders).toBe(1)
          await scheduler.schedule(Promise.resolve())
          expect(await attempt.lock.isStillHeld()).toBe(true)
          holders -= 1
          await attempt.lock.release()
        }
        await scheduler.waitFor(Promise.all(Array.from({ length: 5 }, () => visit(machine.start()))))
        expect(await namesIn(files)).toEqual([])
      }),
      { numRuns: 150 },
    )
  })
})

describe('while other processes die or wake up', () => {
  it('writers that die during a takeover are succeeded one by one', async () => {
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), async (scheduler) => {
        const { files, place } = scene()
        const machine = createFakeProcessTable()
        await leaveDead({ files, place }, machine, 0)
        const port = scheduled(files, scheduler)
        let holders = 0
        const visit = async (processes: ProcessPort) => {
          const attempt = await takeLock(place(processes, port))
          if (!attempt.ok) return
          holders += 1
          expect(holders).toBe(1)
          await scheduler.schedule(Promise.resolve())
          holders -= 1
          machine.end(processes)
        }
        await scheduler.waitFor(Promise.all(Array.from({ length: 6 }, () => visit(machine.start()))))
      }),
      { numRuns: 300 },
    )
  })

  it('a slow holder that releases at the same moment does not remove its successor’s lock', async () => {
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), async (scheduler) => {
        const { clock, files, place } = scene()
        const near = createFakeProcessTable('near')
        const port = scheduled(files, scheduler)
        const taking = held(takeLock(place(createFakeProcessTable('far').start(), port)))
        await scheduler.waitFor(taking)
        await clock.advance(11 * MINUTE_MS)
        const starters = [near.start(), near.start()]
        const attempts = Promise.all(starters.map((processes) => takeLock(place(processes, port))))
        await scheduler.waitFor(Promise.all([attempts, (await taking).release()]))
        const winners = (await attempts).map((attempt) => attempt.ok)
        expect(winners.filter(Boolean).length).toBeLessThan(2)
        expect(await holderAt(files)).toBe(starters[winners.indexOf(true)]?.own.pid)
      }),
      { numRuns: 300 },
    )
  })
})

/** A lock whose holder is gone, and processes that died between claiming it and taking it over. */
async function leaveDead(
  { files, place }: Pick<Scene, 'files' | 'place'>,
  machine: ReturnType<typeof createFakeProcessTable>,
  claims: number,
): Promise<void> {
  const first = machine.start()
  await held(takeLock(place(first)))
  machine.end(first)
  for (let count = 0; count < claims; count += 1) {
    const heir = machine.start()
    files.interfere(dyingAt('rename', 1))
    await takeLock(place(heir)).catch(() => null)
    files.interfere(null)
    machine.end(heir)
  }
}
