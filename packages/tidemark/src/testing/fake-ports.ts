import type { Clock, Ids, Signal } from '@tidemark/core'
import type { Processes, ProcessMark } from '../platform/processes.ts'

/** Time that passes only when told to. */
export interface FakeClock extends Clock {
  /** Wakes, in order, the sleepers whose time has come and those whose signal was aborted. */
  advance(ms: number): Promise<void>
  /** To a moment, also backwards; sleepers go by how long they have slept. */
  set(ms: number): void
}

interface Sleeper {
  readonly until: number
  readonly signal: Signal | undefined
  readonly wake: () => void
}

export function createFakeClock(startMs: number = Date.UTC(2026, 0, 1)): FakeClock {
  let shown = startMs
  let passed = 0
  let sleepers: Sleeper[] = []
  return {
    now: () => shown,
    sleep(ms, signal) {
      if (!(ms > 0) || signal?.aborted === true) return Promise.resolve()
      return new Promise((wake) => {
        sleepers.push({ until: passed + ms, signal, wake })
      })
    },
    async advance(ms) {
      shown += ms
      passed += ms
      const due = sleepers.filter(({ until, signal }) => until <= passed || signal?.aborted === true)
      sleepers = sleepers.filter((sleeper) => !due.includes(sleeper))
      for (const { wake } of due.sort((one, other) => one.until - other.until)) wake()
      await settled()
    },
    set(ms) {
      shown = ms
    },
  }
}

/** Lets whoever was woken go on to its next wait. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/** `record-1`, `record-2`, … each kind counted by itself. */
export function createCountingIds(): Ids {
  const counts = new Map<string, number>()
  return {
    next(kind) {
      const count = (counts.get(kind) ?? 0) + 1
      counts.set(kind, count)
      return `${kind}-${count}`
    },
  }
}

// A machine with processes that start and end as told, for what has to know whether a lock's owner lives.

export interface FakeMachine {
  /** A new process; what it sees of the others is this machine. */
  start(): Processes
  end(process: Processes): void
  /** Ends them all. */
  restart(): void
}

export function createFakeMachine(host = 'wren'): FakeMachine {
  const running = new Set<number>()
  let started = 0
  return {
    start() {
      started += 1
      const own: ProcessMark = { pid: started, host, processStart: String(started), pidSpace: null }
      running.add(own.pid)
      return { own, fateOf: (mark) => (mark.host === host ? fateOf(running, mark) : 'unknown') }
    },
    end: ({ own }) => running.delete(own.pid),
    restart: () => running.clear(),
  }
}

function fateOf(running: ReadonlySet<number>, { pid }: ProcessMark): 'running' | 'gone' {
  return running.has(pid) ? 'running' : 'gone'
}
