/** A machine with processes that start and end as told, for what has to know whether a lock's owner lives. */
import type { Processes, ProcessMark } from '../system/processes.ts'

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
